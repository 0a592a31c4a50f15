"""A stream of the OpenAI chat-completions API as chunks: objects or dicts, whole or cut."""

from collections.abc import AsyncIterator, Iterator

import pytest
from openai.types.chat import ChatCompletionChunk

from ramet.chat.openai_source import BAD_ARGUMENTS, chunks_from_openai
from ramet.core.json import JsonObject


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    """One object of a stream, as JSON."""
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def call(index: int = 0, id: str | None = None, name: str | None = None, text: str = "") -> object:
    return {"index": index, "id": id, "function": {"name": name, "arguments": text}}


USAGE: dict[str, object] = {
    "id": "x",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


class Stream:
    """An async stream that notes how it was closed, as the library's does."""

    def __init__(self, *items: object, fails: Exception | None = None) -> None:
        self._items = items
        self._fails = fails
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[object]:
        return self._given()

    async def _given(self) -> AsyncIterator[object]:
        for item in self._items:
            yield item
        if self._fails is not None:
            raise self._fails

    async def close(self) -> None:
        self.closed += 1


async def told(*items: object) -> list[JsonObject]:
    return [chunk async for chunk in chunks_from_openai(Stream(*items))]


async def test_text_is_one_part_of_one_step_and_the_end_says_why_and_what_it_took() -> None:
    chunks = await told(
        delta(role="assistant", content=""),
        delta(content="Hel"),
        delta(content="lo"),
        delta("stop"),
        USAGE,
    )
    assert chunks == [
        {"type": "start-step"},
        {"type": "text-start", "id": "p0"},
        {"type": "text-delta", "id": "p0", "delta": "Hel"},
        {"type": "text-delta", "id": "p0", "delta": "lo"},
        {"type": "text-end", "id": "p0"},
        {"type": "finish-step"},
        {
            "type": "finish",
            "finishReason": "stop",
            "messageMetadata": {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}},
        },
    ]


async def test_the_objects_of_the_library_say_the_same_as_dicts() -> None:
    items = [
        delta(content="Hi"),
        delta(tool_calls=[call(0, "c1", "look", '{"a"')]),
        delta(tool_calls=[call(0, text=":1}")]),
        delta("tool_calls"),
        USAGE,
    ]
    models = [ChatCompletionChunk.model_validate(item) for item in items]
    assert await told(*models) == await told(*items)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_is_a_part_of_its_own_before_the_text(name: str) -> None:
    chunks = await told(delta(**{name: "hm"}), delta(content="yes"), delta(**{name: "no"}))
    assert [(chunk["type"], chunk.get("id")) for chunk in chunks[1:-2]] == [
        ("reasoning-start", "p0"),
        ("reasoning-delta", "p0"),
        ("reasoning-end", "p0"),
        ("text-start", "p1"),
        ("text-delta", "p1"),
        ("text-end", "p1"),
        ("reasoning-start", "p2"),
        ("reasoning-delta", "p2"),
        ("reasoning-end", "p2"),
    ]


async def test_tool_calls_grow_side_by_side_and_leave_the_answer_open() -> None:
    chunks = await told(
        delta(content="Let me see"),
        delta(tool_calls=[call(0, "c1", "look", ""), call(1, "c2", "find", '{"q"')]),
        delta(tool_calls=[call(0, text='{"at":'), call(1, text=':"x"}')]),
        delta(tool_calls=[call(0, text="1}")]),
        delta("tool_calls"),
        USAGE,
    )
    assert chunks[3:] == [
        {"type": "text-end", "id": "p0"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "look"},
        {"type": "tool-input-start", "toolCallId": "c2", "toolName": "find"},
        {"type": "tool-input-delta", "toolCallId": "c2", "inputTextDelta": '{"q"'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"at":'},
        {"type": "tool-input-delta", "toolCallId": "c2", "inputTextDelta": ':"x"}'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "1}"},
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "toolName": "look",
            "input": {"at": 1},
        },
        {
            "type": "tool-input-available",
            "toolCallId": "c2",
            "toolName": "find",
            "input": {"q": "x"},
        },
        {"type": "finish-step"},
        {
            "type": "message-metadata",
            "messageMetadata": {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}},
        },
    ]


async def test_a_call_without_arguments_has_an_empty_object() -> None:
    chunks = await told(delta(tool_calls=[call(0, "c1", "now")]), delta("tool_calls"))
    assert chunks[2]["input"] == {}


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "nonsense"])
async def test_arguments_that_are_no_json_object_are_an_error_of_the_call(arguments: str) -> None:
    chunks = await told(delta(tool_calls=[call(0, "c1", "look", arguments)]), delta("tool_calls"))
    wrong = next(chunk for chunk in chunks if chunk["type"] == "tool-input-error")
    assert (wrong["errorText"], wrong["input"]) == (BAD_ARGUMENTS, arguments)


async def test_a_call_whose_id_and_index_are_missing_is_told_by_its_place() -> None:
    made: dict[str, object] = {"function": {"name": "look", "arguments": "{}"}}
    chunks = await told(delta(tool_calls=[made]))
    assert chunks[1] == {"type": "tool-input-start", "toolCallId": "call_0", "toolName": "look"}


async def test_a_refusal_is_text() -> None:
    chunks = await told(delta(refusal="I will not."), delta("content_filter"))
    assert chunks[2]["delta"] == "I will not."
    assert chunks[-1]["finishReason"] == "content-filter"


@pytest.mark.parametrize(
    ("reason", "shown"), [("length", "length"), ("eos", "other"), (None, "other")]
)
async def test_why_it_ended_is_told_in_the_words_of_the_wire(
    reason: str | None, shown: str
) -> None:
    assert (await told(delta(reason, content="x")))[-1]["finishReason"] == shown


async def test_only_the_first_choice_is_shown() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "B"}}]}
    chunks = await told(delta(content="A"), second)
    assert [chunk["delta"] for chunk in chunks if "delta" in chunk] == ["A"]


async def test_an_empty_stream_is_an_empty_step() -> None:
    assert [chunk["type"] for chunk in await told()] == ["start-step", "finish-step", "finish"]


async def test_an_error_that_a_service_sends_in_its_stream_fails_the_turn() -> None:
    chunks = await told(delta(content="A"), {"error": {"message": "overloaded"}})
    assert {"type": "error", "errorText": "overloaded"} in chunks
    assert "finish" not in [chunk["type"] for chunk in chunks]


async def test_what_the_stream_raises_is_raised_and_the_stream_is_closed() -> None:
    stream = Stream(delta(content="A"), fails=ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        [chunk async for chunk in chunks_from_openai(stream)]
    assert stream.closed == 1


async def test_closing_the_chunks_closes_the_stream() -> None:
    stream = Stream(delta(content="A"), delta(content="B"))
    chunks = chunks_from_openai(stream)
    await anext(chunks)
    await anext(chunks)
    await chunks.aclose()
    assert stream.closed == 1


async def test_the_call_that_opens_the_stream_may_be_given() -> None:
    async def create() -> Stream:
        return Stream(delta(content="A"), delta("stop"))

    chunks = [chunk async for chunk in chunks_from_openai(create())]
    assert chunks[2]["delta"] == "A"


async def test_a_stream_that_is_not_async_is_read_in_a_thread() -> None:
    def items() -> Iterator[object]:
        yield delta(content="A")
        yield delta("stop")

    chunks = [chunk async for chunk in chunks_from_openai(items())]
    assert chunks[-1] == {"type": "finish", "finishReason": "stop"}
