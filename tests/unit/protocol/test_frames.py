"""Frames a server sends, key by key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonValue, NotJson, loads
from ramet.protocol import frames


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            frames.identity("room 7", "chat-agent", state_follows=True),
            {
                "type": "cf_agent_identity",
                "name": "room 7",
                "agent": "chat-agent",
                "stateFollows": True,
            },
        ),
        (
            frames.identity("r", "chat-agent", state_follows=False),
            {"type": "cf_agent_identity", "name": "r", "agent": "chat-agent"},
        ),
        (frames.state({"count": 0}), {"type": "cf_agent_state", "state": {"count": 0}}),
        (frames.state(None), {"type": "cf_agent_state", "state": None}),
        (
            frames.state_error("Connection is readonly"),
            {"type": "cf_agent_state_error", "error": "Connection is readonly"},
        ),
        (
            frames.mcp_servers(),
            {
                "type": "cf_agent_mcp_servers",
                "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []},
            },
        ),
        (
            frames.rpc_result("1", 2, done=True),
            {"type": "rpc", "id": "1", "success": True, "done": True, "result": 2},
        ),
        (
            frames.rpc_result("1", None, done=False),
            {"type": "rpc", "id": "1", "success": True, "done": False, "result": None},
        ),
        (
            frames.rpc_error("1", "kaput"),
            {"type": "rpc", "id": "1", "success": False, "error": "kaput"},
        ),
        (
            frames.chat_messages([{"id": "m", "role": "user", "parts": []}]),
            {
                "type": "cf_agent_chat_messages",
                "messages": [{"id": "m", "role": "user", "parts": []}],
            },
        ),
        (
            frames.chat_messages([], connect=True),
            {"type": "cf_agent_chat_messages", "messages": [], "connect": True},
        ),
        (frames.chat_clear(), {"type": "cf_agent_chat_clear"}),
        (frames.stream_resuming("r"), {"type": "cf_agent_stream_resuming", "id": "r"}),
        (
            frames.stream_resuming("r", goes_on_for=["q"]),
            {"type": "cf_agent_stream_resuming", "id": "r", "goesOnFor": ["q"]},
        ),
        (
            frames.stream_resuming("r", probe_id="p"),
            {"type": "cf_agent_stream_resuming", "id": "r", "probeId": "p"},
        ),
        (frames.stream_pending(), {"type": "cf_agent_stream_pending"}),
        (
            frames.stream_pending("r", probe_id="p"),
            {"type": "cf_agent_stream_pending", "id": "r", "probeId": "p"},
        ),
        (frames.stream_resume_none(), {"type": "cf_agent_stream_resume_none"}),
        (
            frames.stream_resume_none(reason="idle", probe_id="p"),
            {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"},
        ),
        (
            frames.message_updated({"id": "m", "role": "assistant", "parts": []}),
            {
                "type": "cf_agent_message_updated",
                "message": {"id": "m", "role": "assistant", "parts": []},
            },
        ),
        (
            frames.chat_recovering(True, id="r"),
            {"type": "cf_agent_chat_recovering", "recovering": True, "id": "r"},
        ),
        (
            frames.chat_recovering(False),
            {"type": "cf_agent_chat_recovering", "recovering": False},
        ),
        (frames.ramet_error("no"), {"type": "ramet_error", "error": "no"}),
    ],
)
@pytest.mark.behaviour("CW-001")
def test_a_frame_has_exactly_its_keys(frame: str, expected: JsonValue) -> None:
    assert loads(frame) == expected


@pytest.mark.behaviour("CW-002")
def test_a_chunk_frame_leaves_out_what_is_not_set() -> None:
    frame = frames.chat_response("req", body='{"type":"start"}', done=False)

    assert loads(frame) == {
        "type": "cf_agent_use_chat_response",
        "id": "req",
        "body": '{"type":"start"}',
        "done": False,
    }


@pytest.mark.behaviour("CW-002")
def test_a_final_frame_carries_all_it_is_given() -> None:
    frame = frames.chat_response(
        "req",
        body="",
        done=True,
        error=True,
        continuation=True,
        replay=True,
        replay_complete=True,
        seq=0,
        message_ids=["m1", "m2"],
        outcome="error",
    )

    assert loads(frame) == {
        "type": "cf_agent_use_chat_response",
        "id": "req",
        "body": "",
        "done": True,
        "error": True,
        "continuation": True,
        "replay": True,
        "replayComplete": True,
        "seq": 0,
        "messageIds": ["m1", "m2"],
        "outcome": "error",
    }


@pytest.mark.parametrize(
    ("frame", "key"),
    [
        (frames.chat_response("r", body="", done=False, error=True), "error"),
        (frames.chat_response("r", body="", done=False, continuation=True), "continuation"),
        (frames.chat_response("r", body="", done=False, replay=True), "replay"),
        (frames.chat_response("r", body="", done=False, replay_complete=True), "replayComplete"),
    ],
)
def test_each_flag_of_a_response_stands_alone(frame: str, key: str) -> None:
    assert loads(frame) == {
        "type": "cf_agent_use_chat_response",
        "id": "r",
        "body": "",
        "done": False,
        key: True,
    }


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_any_text_survives_in_a_response_frame(request_id: str, body: str) -> None:
    frame = loads(frames.chat_response(request_id, body=body, done=False, seq=3))

    assert frame == {
        "type": "cf_agent_use_chat_response",
        "id": request_id,
        "body": body,
        "done": False,
        "seq": 3,
    }


def test_a_state_or_result_that_json_cannot_carry_raises() -> None:
    with pytest.raises(NotJson):
        frames.state({"x": object()})
    with pytest.raises(NotJson):
        frames.rpc_result("1", object(), done=True)
