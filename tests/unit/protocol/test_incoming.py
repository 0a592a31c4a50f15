"""What a client's frames are taken for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.protocol import incoming
from ramet.protocol.incoming import parse_frame

USER: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
TOOL: JsonObject = {"name": "getWeather", "parameters": {"type": "object"}}


def chat_request(body: JsonValue, **changes: JsonValue) -> JsonObject:
    return {
        "type": "cf_agent_use_chat_request",
        "id": "req",
        "init": {"method": "POST", "body": dumps(body)},
        **changes,
    }


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            {"type": "rpc", "id": "1", "method": "increment", "args": [2]},
            incoming.RpcCall(id="1", method="increment", args=[2]),
        ),
        (
            {"type": "cf_agent_state", "state": {"count": 7}},
            incoming.StateUpdate(state={"count": 7}),
        ),
        ({"type": "cf_agent_state", "state": None}, incoming.StateUpdate(state=None)),
        (
            {"type": "cf_agent_chat_messages", "messages": [USER]},
            incoming.ChatMessagesPush(messages=[USER]),
        ),
        ({"type": "cf_agent_chat_clear"}, incoming.ChatClear()),
        ({"type": "cf_agent_chat_request_cancel", "id": "r"}, incoming.ChatCancel(id="r")),
        (
            {"type": "cf_agent_stream_resume_request"},
            incoming.ResumeRequest(probe_id=None),
        ),
        (
            {"type": "cf_agent_stream_resume_request", "probeId": "p"},
            incoming.ResumeRequest(probe_id="p"),
        ),
        ({"type": "cf_agent_stream_resume_ack", "id": "r"}, incoming.ResumeAck(id="r")),
        (
            {
                "type": "cf_agent_tool_result",
                "toolCallId": "c",
                "toolName": "",
                "output": "sunny",
                "autoContinue": True,
                "clientTools": [TOOL],
            },
            incoming.ToolResult(
                tool_call_id="c",
                tool_name="",
                output="sunny",
                state="output-available",
                error_text=None,
                auto_continue=True,
                client_tools=[TOOL],
            ),
        ),
        (
            {
                "type": "cf_agent_tool_result",
                "toolCallId": "c",
                "toolName": "t",
                "state": "output-error",
                "errorText": "no",
                "autoContinue": False,
            },
            incoming.ToolResult(
                tool_call_id="c",
                tool_name="t",
                output=None,
                state="output-error",
                error_text="no",
                auto_continue=False,
                client_tools=None,
            ),
        ),
        (
            {"type": "cf_agent_tool_approval", "toolCallId": "c", "approved": False},
            incoming.ToolApproval(tool_call_id="c", approved=False, auto_continue=False),
        ),
    ],
)
@pytest.mark.behaviour("CW-001")
def test_a_frame_becomes_its_record(frame: JsonObject, expected: incoming.Incoming) -> None:
    assert parse_frame(dumps(frame)) == expected


def test_a_chat_request_separates_its_own_keys_from_the_applications() -> None:
    frame = chat_request(
        {
            "messages": [USER],
            "trigger": "regenerate-message",
            "clientTools": [TOOL],
            "temperature": 1,
        }
    )

    assert parse_frame(dumps(frame)) == incoming.ChatRequest(
        id="req",
        messages=[USER],
        trigger="regenerate-message",
        client_tools=[TOOL],
        body={"temperature": 1},
    )


def test_a_chat_request_without_a_trigger_submits() -> None:
    request = parse_frame(dumps(chat_request({"messages": []})))

    assert request == incoming.ChatRequest(
        id="req", messages=[], trigger="submit-message", client_tools=None, body={}
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[1]",
        '"rpc"',
        "null",
        "{}",
        '{"type":1}',
        '{"type":"my-own","id":"1"}',
        '{"type":"agent-tool-event"}',
        '{"type":"cf_agent_identity"}',
        '{"type":"rpc","id":1,"method":"m","args":[]}',
        '{"type":"rpc","id":"1","method":null,"args":[]}',
        '{"type":"rpc","id":"1","method":"m","args":{}}',
        '{"type":"rpc","id":"1","method":"m"}',
        '{"type":"cf_agent_state","state":NaN}',
        "[" * 100_000,
    ],
)
@pytest.mark.behaviour("D25")
def test_what_is_not_of_the_protocol_goes_to_the_application(text: str) -> None:
    assert parse_frame(text) == incoming.Application(text=text)


@pytest.mark.behaviour("D25")
@pytest.mark.parametrize(
    ("frame", "request_id", "complaint"),
    [
        ({"type": "cf_agent_state"}, None, '"state" must be there.'),
        (
            {"type": "cf_agent_use_chat_request"},
            None,
            '"id" must be a string that is not empty.',
        ),
        (chat_request({}, id=""), None, '"id" must be a string that is not empty.'),
        (chat_request({}, id=7), None, '"id" must be a string that is not empty.'),
        (chat_request({}, init=None), "req", '"init" must be an object.'),
        (
            chat_request({}, init={"method": "GET", "body": "{}"}),
            "req",
            '"init.method" must be "POST".',
        ),
        (
            chat_request({}, init={"method": "POST"}),
            "req",
            '"init.body" must be a string that holds a JSON object.',
        ),
        (
            chat_request({}, init={"method": "POST", "body": "{"}),
            "req",
            '"init.body" must be a string that holds a JSON object.',
        ),
        (chat_request([]), "req", '"init.body" must be a string that holds a JSON object.'),
        (chat_request({}), "req", '"messages" must be a list of messages.'),
        (chat_request({"messages": ["hi"]}), "req", '"messages[0]" must be an object.'),
        (
            chat_request({"messages": [USER, {"role": "user", "parts": []}]}),
            "req",
            '"messages[1].id" must be a string that is not empty.',
        ),
        (
            chat_request({"messages": [{"id": "u", "role": "robot", "parts": []}]}),
            "req",
            '"messages[0].role" must be one of system, user, assistant.',
        ),
        (
            chat_request({"messages": [{"id": "u", "role": "user", "parts": [{"text": "hi"}]}]}),
            "req",
            '"messages[0].parts" must be a list of objects with a "type".',
        ),
        (
            chat_request({"messages": [], "trigger": "guess"}),
            "req",
            '"trigger" must be "submit-message" or "regenerate-message".',
        ),
        (
            chat_request({"messages": [], "clientTools": {}}),
            "req",
            '"clientTools" must be a list of tools.',
        ),
        (
            chat_request({"messages": [], "clientTools": [TOOL, {}]}),
            "req",
            'Each of "clientTools" must be an object with a "name".',
        ),
        (
            {"type": "cf_agent_chat_messages"},
            None,
            '"messages" must be a list of messages.',
        ),
        (
            {"type": "cf_agent_chat_request_cancel"},
            None,
            '"id" must be a string that is not empty.',
        ),
        (
            {"type": "cf_agent_stream_resume_request", "probeId": 1},
            None,
            '"probeId" must be a string.',
        ),
        (
            {"type": "cf_agent_stream_resume_ack", "id": None},
            None,
            '"id" must be a string that is not empty.',
        ),
        (
            {"type": "cf_agent_tool_result", "id": "x"},
            "x",
            '"toolCallId" must be a string that is not empty.',
        ),
        (
            {"type": "cf_agent_tool_result", "toolCallId": "c", "state": "done"},
            None,
            '"state" must be "output-available" or "output-error".',
        ),
        (
            {"type": "cf_agent_tool_result", "toolCallId": "c", "autoContinue": 1},
            None,
            '"autoContinue" must be true or false.',
        ),
        (
            {"type": "cf_agent_tool_approval", "toolCallId": "c"},
            None,
            '"approved" must be true or false.',
        ),
    ],
)
def test_a_known_type_with_wrong_fields_says_what_is_wrong(
    frame: JsonObject, request_id: str | None, complaint: str
) -> None:
    assert parse_frame(dumps(frame)) == incoming.Malformed(
        type=str(frame["type"]),
        id=request_id,
        reason=f"Malformed {frame['type']} frame: {complaint}",
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
keys = st.sampled_from(
    ["id", "init", "method", "args", "state", "messages", "probeId", "toolCallId", "approved"]
)


@given(st.sampled_from([*incoming._PARSERS, "rpc", "other"]), st.dictionaries(keys, json_values))
def test_no_fields_make_parsing_raise(frame_type: str, fields: JsonObject) -> None:
    parsed = parse_frame(dumps({**fields, "type": frame_type}))

    assert not isinstance(parsed, incoming.Malformed) or parsed.type == frame_type
