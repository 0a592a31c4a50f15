"""Answers from elsewhere as chunks, for `on_chat_message`: of pydantic-ai agents, of plain text."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, TypeAlias

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.messages import (
    DeferredToolRequestsEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    ToolReturnPart,
)
from pydantic_ai.run import AgentRun, AgentRunResult

from ramet.chat.source_items import Source, closed_after, items_of
from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.chunks import FinishReason
from ramet.protocol.ui_message import UIChunk
from ramet.think.chunk_writer import ChunkWriter, finish_reason_of
from ramet.think.model_seam import translated
from ramet.think.tool_outcome import wire_input, wire_output
from ramet.think.wire_ids import ProviderIds

EventSource: TypeAlias = AsyncIterable[Any] | AbstractAsyncContextManager[AsyncIterable[Any]]


async def chunks_from_pydantic_ai(events: EventSource) -> AsyncGenerator[UIChunk]:
    """The answer of a pydantic-ai agent as chunks, as it comes.

    ```python
    def on_chat_message(self, turn):
        return ramet.chunks_from_pydantic_ai(agent.run_stream_events(prompt, message_history=…))
    ```

    The history is the caller's business. An `agent_tool` among the agent's tools belongs to the
    agent whose turn this is. Calls of tools that need an approval, or a result from outside, end
    the answer: the page is asked. Closing it ends the agent's run.

    Args:
        events: What `run_stream_events` or `iter` gives, opened or not, or any stream of events.
    """
    writing = _AgentWriting()
    async with AsyncExitStack() as opened:
        given: AsyncIterable[Any]
        if isinstance(events, AbstractAsyncContextManager):
            given = await opened.enter_async_context(events)
        else:
            given = events
            await opened.enter_async_context(closed_after(given))
        if isinstance(given, AgentRun):
            given = await opened.enter_async_context(aclosing(_events_of_run(given)))
        async for event in given:
            for chunk in writing.take(event):
                yield chunk
    for chunk in writing.end():
        yield chunk


async def _events_of_run(run: AgentRun[Any, Any]) -> AsyncGenerator[object]:
    """The events of a run that `iter` gives node by node."""
    async for node in run:
        if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
            async with node.stream(run.ctx) as events:
                async for event in events:
                    yield event
    if run.result is not None:
        yield AgentRunResultEvent(run.result)


async def chunks_from_text(pieces: Source[str]) -> AsyncGenerator[UIChunk]:
    """Pieces of text, as one text part of one step; a synchronous generator runs in a thread.

    Closing it closes the source.
    """
    yield chunks.start_step()
    yield chunks.text_start("text")
    given: Source[str] = [pieces] if isinstance(pieces, str) else pieces
    async with aclosing(items_of(given)) as items:
        async for piece in items:
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
        self._reason: FinishReason = "stop"
        self._usage: JsonObject = {}

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
            case DeferredToolRequestsEvent(requests=requests):
                yield from (
                    chunks.tool_approval_request(f"approval_{call.tool_call_id}", call.tool_call_id)
                    for call in requests.approvals
                )
            case AgentRunResultEvent(result=result):
                self._note_result(result)
            case _:
                return

    def end(self) -> Iterator[JsonObject]:
        """Close what is open."""
        if self._writer is not None:
            yield from self._close()
            yield chunks.finish_step()
        yield chunks.finish(self._reason, metadata={"usage": self._usage} if self._usage else None)

    def _note_result(self, result: AgentRunResult[Any]) -> None:
        self._reason = finish_reason_of(result.response)
        usage = result.usage
        counts = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
        if usage.total_tokens:
            self._usage = {**counts, "totalTokens": usage.total_tokens}

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
