"""The forms in which `on_chat_message` may answer."""

from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import BaseModel, Field

from ramet.chat.handler import chunks_of
from ramet.chat.turn import Chunk
from ramet.errors import UnknownModelResult
from tests.unit.chat.support import delta


class Delta(BaseModel):
    type: str = "text-delta"
    id: str = "t1"
    delta: str
    metadata: str | None = Field(default=None, alias="providerMetadata")


async def _generator() -> AsyncIterator[Chunk]:
    yield "a"
    yield delta("b")


class _Iterator:
    def __init__(self) -> None:
        self._left = ["a", "b"]

    def __aiter__(self) -> "_Iterator":
        return self

    async def __anext__(self) -> str:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)


async def _awaited(answer: object) -> object:
    return answer


def _plain() -> Iterator[str]:
    yield "a"
    yield "b"


@pytest.mark.parametrize(
    ("answer", "chunks"),
    [
        (None, []),
        ("text", ["text"]),
        (delta("x"), [delta("x")]),
        (Delta(delta="x"), [delta("x")]),
        (["a", delta("b"), Delta(delta="c")], ["a", delta("b"), delta("c")]),
        (_plain(), ["a", "b"]),
        (_Iterator(), ["a", "b"]),
    ],
)
async def test_an_answer_is_taken_apart(answer: object, chunks: list[Chunk]) -> None:
    assert [chunk async for chunk in chunks_of(answer)] == chunks


async def test_an_answer_may_be_an_async_generator_or_awaited() -> None:
    assert [chunk async for chunk in chunks_of(_generator())] == ["a", delta("b")]
    assert [chunk async for chunk in chunks_of(_awaited(None))] == []
    assert [chunk async for chunk in chunks_of(_awaited("x"))] == ["x"]
    assert [chunk async for chunk in chunks_of(_awaited(_generator()))] == ["a", delta("b")]


@pytest.mark.parametrize("answer", [7, [7], [None]])
async def test_anything_else_is_refused_with_its_type(answer: object) -> None:
    with pytest.raises(UnknownModelResult, match=r"on_chat_message gave (int|NoneType)"):
        [chunk async for chunk in chunks_of(answer)]


async def test_a_generator_is_closed_when_its_answer_is_not_wanted_any_more() -> None:
    closed = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.append(True)

    chunks = chunks_of(endless())
    await anext(chunks)
    await chunks.aclose()
    assert closed == [True]


async def test_why_an_answer_finished_is_kept_in_the_messages_metadata() -> None:
    finish = {"type": "finish", "finishReason": "stop", "messageMetadata": {"a": 1}}
    (chunk,) = [
        chunk
        async for chunk in chunks_of(
            [
                finish,
            ]
        )
    ]
    assert chunk == {**finish, "messageMetadata": {"a": 1, "finishReason": "stop"}}
