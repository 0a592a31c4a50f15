"""Answers from elsewhere as chunks, for `on_chat_message`: of pydantic-ai agents, of plain text."""

from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, TypeAlias

from pydantic_ai.messages import (
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    ToolReturnPart,
)

from ramet.core.json import JsonObject
from ramet.core.threads import items_in_thread
from ramet.protocol import chunks
from ramet.think.chunk_writer import ChunkWriter
from ramet.think.model_seam import translated
from ramet.think.tool_outcome import wire_input, wire_output
from ramet.think.wire_ids import ProviderIds

EventSource: TypeAlias = AsyncIterable[Any] | AbstractAsyncContextManager[AsyncIterable[Any]]


async def chunks_from_pydantic_ai(events: EventSource) -> AsyncGenerator[JsonObject]:
    """The answer of a pydantic-ai agent as chunks, as it comes.

    ```python
    def on_chat_message(self, turn):
        return ramet.chunks_from_pydantic_ai(agent.run_stream_events(prompt, message_history=…))
    ```

    The history is the caller's business. An `agent_tool` among the agent's tools belongs to the
    agent whose turn this is.
    """
    writing = _AgentWriting()
    async with AsyncExitStack() as opened:
        if isinstance(events, AbstractAsyncContextManager):
            events = await opened.enter_async_context(events)
        async for event in events:
            for chunk in writing.take(event):
                yield chunk
    for chunk in writing.end():
        yield chunk


async def chunks_from_text(
    pieces: AsyncIterable[str] | Iterable[str],
) -> AsyncGenerator[JsonObject]:
    """Pieces of text, as one text part of one step; a synchronous generator runs in a thread."""
    yield chunks.start_step()
    yield chunks.text_start("text")
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield chunks.text_delta("text", piece)
    elif isinstance(pieces, Collection):
        for piece in [pieces] if isinstance(pieces, str) else pieces:
            yield chunks.text_delta("text", piece)
    else:
        async with aclosing(items_in_thread(pieces)) as given:
            async for piece in given:
                yield chunks.text_delta("text", piece)
    yield chunks.text_end("text")
    yield chunks.finish_step()
    yield chunks.finish("stop")


class _AgentWriting:
    """Finds the steps in an agent's events and writes them."""

    def __init__(self) -> None:
        self._steps = 0
        self._writer: ChunkWriter | None = None
        self._ran_tools = False

    def take(self, event: object) -> Iterator[JsonObject]:
        """The chunks for one event; kinds that are not shown give none."""
        match event:
            case PartStartEvent() | PartDeltaEvent() | PartEndEvent():
                yield from self._of_model(event)
            case ToolCallEvent(part=call):
                yield from self._close()
                yield chunks.tool_input_available(
                    call.tool_call_id, call.tool_name, wire_input(call)
                )
            case ToolResultEvent(part=result):
                self._ran_tools = True
                yield _output(result)
            case _:
                return

    def end(self) -> Iterator[JsonObject]:
        """Close what is open."""
        if self._writer is not None:
            yield from self._close()
            yield chunks.finish_step()
        yield chunks.finish("stop")

    def _of_model(
        self, event: PartStartEvent | PartDeltaEvent | PartEndEvent
    ) -> Iterator[JsonObject]:
        if self._writer is None or self._ran_tools:
            if self._writer is not None:
                yield chunks.finish_step()
            self._writer, self._ran_tools = ChunkWriter(self._steps, ProviderIds()), False
            self._steps += 1
            yield chunks.start_step()
        for translated_event in translated(event):
            yield from self._writer.write(translated_event)

    def _close(self) -> Iterator[JsonObject]:
        if self._writer is not None:
            yield from self._writer.close()


def _output(result: ToolReturnPart) -> JsonObject:
    match result.outcome:
        case "success":
            return chunks.tool_output_available(result.tool_call_id, wire_output(result.content))
        case "denied":
            return chunks.tool_output_denied(result.tool_call_id)
        case _:
            text = result.model_response_str(wrap_if_error=False)
            return chunks.tool_output_error(result.tool_call_id, text)
