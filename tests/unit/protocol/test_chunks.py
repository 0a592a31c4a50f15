"""Builders and kinds of UI message chunks."""

import pytest

from ramet.core.json import JsonObject, NotJson
from ramet.protocol import chunks


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (chunks.start(), {"type": "start"}),
        (chunks.start("asst_1"), {"type": "start", "messageId": "asst_1"}),
        (
            chunks.start("m", metadata={"a": 1}),
            {"type": "start", "messageId": "m", "messageMetadata": {"a": 1}},
        ),
        (chunks.start_step(), {"type": "start-step"}),
        (chunks.finish_step(), {"type": "finish-step"}),
        (chunks.text_start("t"), {"type": "text-start", "id": "t"}),
        (chunks.text_delta("t", "a"), {"type": "text-delta", "id": "t", "delta": "a"}),
        (chunks.text_end("t"), {"type": "text-end", "id": "t"}),
        (chunks.reasoning_start("r"), {"type": "reasoning-start", "id": "r"}),
        (chunks.reasoning_delta("r", "a"), {"type": "reasoning-delta", "id": "r", "delta": "a"}),
        (chunks.reasoning_end("r"), {"type": "reasoning-end", "id": "r"}),
        (
            chunks.tool_input_start("c", "search"),
            {"type": "tool-input-start", "toolCallId": "c", "toolName": "search"},
        ),
        (
            chunks.tool_input_delta("c", '{"q'),
            {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"q'},
        ),
        (
            chunks.tool_input_available("c", "search", {"q": 1}),
            {
                "type": "tool-input-available",
                "toolCallId": "c",
                "toolName": "search",
                "input": {"q": 1},
            },
        ),
        (
            chunks.tool_input_error("c", "search", tool_input="{", error_text="bad"),
            {
                "type": "tool-input-error",
                "toolCallId": "c",
                "toolName": "search",
                "input": "{",
                "errorText": "bad",
            },
        ),
        (
            chunks.tool_approval_request("a", "c"),
            {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
        ),
        (
            chunks.tool_output_available("c", None),
            {"type": "tool-output-available", "toolCallId": "c", "output": None},
        ),
        (
            chunks.tool_output_available("c", 1, preliminary=True),
            {
                "type": "tool-output-available",
                "toolCallId": "c",
                "output": 1,
                "preliminary": True,
            },
        ),
        (
            chunks.tool_output_error("c", "no"),
            {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"},
        ),
        (chunks.tool_output_denied("c"), {"type": "tool-output-denied", "toolCallId": "c"}),
        (chunks.data("chart", [1]), {"type": "data-chart", "data": [1]}),
        (
            chunks.data("chart", None, data_id="d", transient=True),
            {"type": "data-chart", "data": None, "id": "d", "transient": True},
        ),
        (
            chunks.message_metadata({"a": 1}),
            {"type": "message-metadata", "messageMetadata": {"a": 1}},
        ),
        (chunks.finish(), {"type": "finish"}),
        (chunks.finish("stop"), {"type": "finish", "finishReason": "stop"}),
        (chunks.abort(), {"type": "abort"}),
        (chunks.abort("asked"), {"type": "abort", "reason": "asked"}),
        (chunks.error("kaput"), {"type": "error", "errorText": "kaput"}),
    ],
)
def test_a_chunk_has_exactly_its_keys(chunk: JsonObject, expected: JsonObject) -> None:
    assert chunk == expected


@pytest.mark.behaviour("AT-211", "AT-215")
def test_progress_is_transient_and_has_an_id() -> None:
    assert chunks.progress("p1", {"fraction": 0.4}) == {
        "type": "data-agent-progress",
        "id": "p1",
        "transient": True,
        "data": {"fraction": 0.4},
    }


@pytest.mark.behaviour("AT-211", "AT-221", "D23")
def test_a_milestone_is_not_transient() -> None:
    signal: JsonObject = {"name": "ready", "sequence": 0, "at": 5}

    assert chunks.milestone(signal) == {"type": "data-agent-milestone", "data": signal}


@pytest.mark.behaviour("D2")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (chunks.chunk_body(chunks.progress("p", {})), "progress"),
        (chunks.chunk_body(chunks.milestone({"name": "m"})), "milestone"),
        (chunks.chunk_body(chunks.text_delta("t", "x")), "chunk"),
        (chunks.chunk_body(chunks.text_delta("t", '"data-agent-progress"')), "chunk"),
        (chunks.chunk_body(chunks.data("agent-other", 1)), "chunk"),
        ('{ "type" : "data-agent-milestone" }', "milestone"),
        ('{"data":"data-agent-progress","type":"data-x"}', "chunk"),
        ('"data-agent-progress', "chunk"),
        ('["data-agent-progress"]', "chunk"),
    ],
)
def test_the_kind_of_an_encoded_chunk_is_told_from_its_type(body: str, kind: str) -> None:
    assert chunks.kind_of_body(body) == kind


def test_a_chunk_that_json_cannot_carry_raises() -> None:
    with pytest.raises(NotJson):
        chunks.chunk_body({"type": "data-x", "data": object()})
