"""A UI message stream of another server as chunks: lines, bytes cut anywhere, and broken ones."""

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.chat.ui_stream_source import chunks_from_ui_message_stream
from ramet.core.json import JsonObject, dumps
from ramet.errors import UnknownModelResult

CHUNKS: list[JsonObject] = [
    {"type": "start", "messageId": "theirs"},
    {"type": "start-step"},
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "hm"},
    {"type": "reasoning-end", "id": "r"},
    {"type": "text-delta", "id": "t", "delta": "caf\u00e9 \u2028 \U0001f600"},
    {"type": "tool-input-available", "toolCallId": "c", "toolName": "look", "input": {"a": 1}},
    {"type": "tool-output-available", "toolCallId": "c", "output": None},
    {"type": "finish-step"},
    {"type": "finish", "finishReason": "stop"},
]


def events(*chunks: JsonObject, done: bool = True) -> str:
    """A stream as the AI SDK writes it."""
    lines = [f"data: {dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines)


class Response:
    """A body that comes in pieces."""

    def __init__(self, pieces: Sequence[str | bytes]) -> None:
        self.pieces = pieces
        self.closed = False

    async def body(self) -> AsyncIterator[str | bytes]:
        try:
            for piece in self.pieces:
                yield piece
        finally:
            self.closed = True


async def told(*pieces: str | bytes) -> list[JsonObject]:
    body = Response(pieces).body()
    return [chunk async for chunk in chunks_from_ui_message_stream(body)]


@given(st.lists(st.integers(min_value=0, max_value=700), max_size=12))
async def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    text = events(*CHUNKS).encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert await told(*pieces) == CHUNKS


async def test_lines_with_or_without_their_ends_say_the_same() -> None:
    lines = events(*CHUNKS).split("\n")
    assert await told(*lines) == CHUNKS
    assert await told(*(line + "\r\n" for line in lines)) == CHUNKS


async def test_comments_and_other_fields_are_left_out() -> None:
    noise = b": ping\n\nevent: message\nid: 7\nretry: 100\n"
    assert await told(noise, events(*CHUNKS).encode()) == CHUNKS


async def test_what_comes_after_the_end_is_not_read() -> None:
    response = Response([events(*CHUNKS).encode(), b"data: nonsense\n\n"])
    chunks = [chunk async for chunk in chunks_from_ui_message_stream(response.body())]
    assert chunks == CHUNKS
    assert response.closed


async def test_a_last_line_without_an_end_counts() -> None:
    assert await told(b'data: {"type":"finish"}') == [{"type": "finish"}]


async def test_an_empty_stream_gives_nothing() -> None:
    assert await told() == []
    assert await told(b"") == []


async def test_a_stream_that_is_cut_off_is_an_error_after_what_came() -> None:
    body = Response([events(*CHUNKS[:6], done=False).encode()]).body()
    chunks = chunks_from_ui_message_stream(body)
    assert [await anext(chunks) for _ in range(6)] == CHUNKS[:6]
    with pytest.raises(UnknownModelResult, match="in the middle"):
        await anext(chunks)


@pytest.mark.parametrize("end", [{"type": "finish"}, {"type": "abort"}, {"type": "error"}])
async def test_an_answer_that_ends_itself_needs_no_done(end: JsonObject) -> None:
    assert await told(events(end, done=False).encode()) == [end]


@pytest.mark.parametrize("line", ["data: {cut", "data: [1]", 'data: {"text":"no type"}'])
async def test_a_line_that_is_no_chunk_is_an_error(line: str) -> None:
    with pytest.raises(UnknownModelResult, match="no chunk"):
        await told(line)


async def test_closing_the_chunks_closes_the_body() -> None:
    response = Response([events(*CHUNKS).encode()])
    chunks = chunks_from_ui_message_stream(response.body())
    await anext(chunks)
    await chunks.aclose()
    assert response.closed
