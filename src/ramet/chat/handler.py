"""Turns what `on_chat_message` gives into chunks: text, dicts or models, one or many, or none."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Collection, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from ramet.chat.turn import Chunk, Turn
from ramet.core.json import JsonObject, to_json
from ramet.core.threads import items_in_thread
from ramet.errors import UnknownModelResult
from ramet.protocol import chunks


@runtime_checkable
class HandlesMessages(Protocol):
    """An agent that answers a turn itself."""

    def on_chat_message(self, turn: Turn) -> object:
        """Give the chunks of the answer in one of the forms of `chunks_of`."""
        ...


def answer_of(agent: object, turn: Turn) -> AsyncGenerator[Chunk, None]:
    """What an agent's `on_chat_message` gives for a turn, chunk by chunk.

    Raises:
        UnknownModelResult: The agent has no such method, or gives something that is no chunk.
    """
    if not isinstance(agent, HandlesMessages):
        raise UnknownModelResult(f"{type(agent).__name__} has no on_chat_message")
    return chunks_of(agent.on_chat_message(turn))


async def chunks_of(answer: object) -> AsyncGenerator[Chunk, None]:
    """Take an answer apart.

    An answer is None, a text, a chunk (a dict or a pydantic model), an iterable or async iterable
    of texts and chunks, or an awaitable of one of these. A synchronous generator runs in a thread.

    Raises:
        UnknownModelResult: It is something else.
    """
    if isinstance(answer, Awaitable):
        answer = await answer
    if answer is None:
        return
    if isinstance(answer, str | Mapping | BaseModel):
        yield _chunk(answer)
    elif isinstance(answer, AsyncIterable):
        async with _closed_after(answer):
            async for item in answer:
                yield _chunk(item)
    elif isinstance(answer, Collection):
        for item in answer:
            yield _chunk(item)
    elif isinstance(answer, Iterable):
        async with aclosing(items_in_thread(answer)) as items:
            async for item in items:
                yield _chunk(item)
    else:
        raise UnknownModelResult(
            f"on_chat_message gave {type(answer).__name__}; it may give chunks or text, "
            "one or many, or None"
        )


@asynccontextmanager
async def _closed_after(items: AsyncIterable[object]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


def _chunk(item: object) -> Chunk:
    if isinstance(item, str):
        return item
    chunk: object = _fields(item) if isinstance(item, BaseModel) else item
    if not isinstance(chunk, Mapping):
        raise UnknownModelResult(
            f"on_chat_message gave {type(item).__name__} where a chunk or a text is expected"
        )
    return _with_reason_as_metadata(chunk) if chunk.get("type") == chunks.FINISH else chunk


def _fields(model: BaseModel) -> JsonObject:
    fields = to_json(model.model_dump(mode="json", by_alias=True, exclude_none=True))
    return fields if isinstance(fields, dict) else {}


def _with_reason_as_metadata(chunk: Mapping[str, object]) -> Mapping[str, object]:
    """Keep why an answer finished in the message's metadata, where `AIChatAgent` clients look."""
    if "finishReason" not in chunk:
        return chunk
    metadata = chunk.get("messageMetadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    return {**chunk, "messageMetadata": {**known, "finishReason": chunk["finishReason"]}}
