"""The step loop: ask the model, run the tools it calls at once, tell it the results, ask again."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from ramet.core.current import Current, current, within, working_for
from ramet.core.json import JsonObject
from ramet.core.ports import Background
from ramet.core.tail import Tail
from ramet.errors import InstanceGone
from ramet.protocol import chunks
from ramet.protocol.chunks import FinishReason
from ramet.think.chunk_writer import ChunkWriter
from ramet.think.hooks import NO_HOOKS, StepHooks
from ramet.think.model_seam import ModelCall, ModelStream
from ramet.think.tool_outcome import PlannedCall, ToolOutcome
from ramet.think.toolbox import Toolbox
from ramet.think.wire_ids import WireIds

STEP_LIMIT: Final = "I stopped here: this turn has reached its limit of {limit} steps."

_FINISH_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}


class StepJournal(Protocol):
    """Keeps the steps of one turn on disk."""

    def add_response(self, step: int, response: ModelResponse, wire_ids: Sequence[str]) -> None:
        """Commit what the model said, with the wire ids of its tool calls in call order."""
        ...

    def add_result(self, wire_id: str, result: ModelRequest) -> None:
        """Commit what a tool call came to."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop of one turn works with."""

    model: Model
    toolbox: Toolbox
    journal: StepJournal
    wire_ids: WireIds
    background: Background
    max_steps: int
    settings: ModelSettings | None = None
    instructions: Sequence[str] = ()
    usage: RunUsage
    hooks: StepHooks = NO_HOOKS


class StepLoop:
    """Answers one turn.

    Args:
        parts: What it works with.
        messages: The history, ending with what the model is to answer; the loop adds to the list.
    """

    def __init__(self, parts: LoopParts, messages: list[ModelMessage]) -> None:
        self._parts = parts
        self._messages = messages
        self._calls: list[PlannedCall] = []
        self._reason: FinishReason = "stop"

    async def chunks(self) -> AsyncGenerator[JsonObject]:
        """Give the chunks of the answer, from the first step on.

        Closing or cancelling it stops the model and every tool that runs. What a step said before
        it was cut stays in the journal. Errors of the model and of hooks are raised.
        """
        parts = self._parts
        caller = current()
        for step in range(parts.max_steps):
            await parts.hooks.starting_step(step)
            yield chunks.start_step()
            async with aclosing(self._ask(step)) as said:
                async for chunk in said:
                    yield chunk
            async with aclosing(self._run_calls(caller)) as outputs:
                async for chunk in outputs:
                    yield chunk
            yield chunks.finish_step()
            if not self._calls:
                yield chunks.finish(self._reason)
                return
        for chunk in self._stop_at_limit():
            yield chunk

    async def _ask(self, step: int) -> AsyncGenerator[JsonObject]:
        parts = self._parts
        tools = await parts.toolbox.prepare(step)
        writer = ChunkWriter(step, parts.wire_ids)
        stream = ModelStream(
            ModelCall(
                model=parts.model,
                messages=self._messages,
                tools=tools,
                instructions=parts.instructions,
                settings=parts.settings,
            )
        )
        try:
            async with aclosing(stream.events()) as events:
                async for event in events:
                    for chunk in writer.write(event):
                        yield chunk
        except BaseException:
            self._keep_cut(step, stream.response())
            raise
        response = stream.response()
        self._calls = []
        if response is None:
            return
        self._take(step, response, writer.wire_ids(response))
        for chunk in writer.complete(response):
            yield chunk
        await parts.hooks.finished_response(step, response)

    def _take(self, step: int, response: ModelResponse, wire_ids: Sequence[str]) -> None:
        self._parts.journal.add_response(step, response, wire_ids)
        self._parts.usage.incr(response.usage)
        self._messages.append(response)
        made = [part for part in response.parts if isinstance(part, ToolCallPart)]
        self._calls = [
            PlannedCall(call=call, wire_id=wire_id)
            for call, wire_id in zip(made, wire_ids, strict=True)
        ]
        self._reason = _FINISH_REASONS.get(response.finish_reason or "stop", "other")

    def _keep_cut(self, step: int, response: ModelResponse | None) -> None:
        """Keep the text of a response that was cut; a call that was cut never ran."""
        texts = [part for part in response.parts if isinstance(part, TextPart)] if response else []
        if response is None or not any(part.content for part in texts):
            return
        try:
            self._parts.journal.add_response(
                step, replace(response, parts=texts, state="interrupted"), []
            )
        except InstanceGone:
            return

    async def _run_calls(self, caller: Current | None) -> AsyncGenerator[JsonObject]:
        settled: dict[str, ToolOutcome] = {}
        for group in self._parts.toolbox.groups(self._calls):
            async with aclosing(self._run_at_once(group, caller)) as outcomes:
                async for outcome in outcomes:
                    settled[outcome.planned.wire_id] = outcome
                    yield outcome.chunk
        if not settled:
            return
        in_order = [settled[planned.wire_id] for planned in self._calls]
        self._messages.append(merged(in_order))
        for outcome in in_order:
            if outcome.fatal is not None:
                raise outcome.fatal

    async def _run_at_once(
        self, group: Sequence[PlannedCall], caller: Current | None
    ) -> AsyncGenerator[ToolOutcome]:
        outcomes = Tail[ToolOutcome]()
        tasks = [
            self._parts.background.start(
                self._run_call(planned, caller, outcomes), name=f"tool {planned.call.tool_name}"
            )
            for planned in group
        ]
        try:
            for _ in group:
                yield await anext(outcomes)
        finally:
            # Their owner awaits them: the end of a cancelled turn waits for no tool (D12).
            outcomes.end()
            for task in tasks:
                task.cancel()

    async def _run_call(
        self, planned: PlannedCall, caller: Current | None, outcomes: Tail[ToolOutcome]
    ) -> None:
        try:
            with as_caller(caller), within(tool_call_id=planned.wire_id):
                outcome = await self._parts.toolbox.call(planned)
            if not outcomes.ended:
                self._parts.journal.add_result(planned.wire_id, outcome.request)
                outcomes.push(outcome)
        except asyncio.CancelledError:
            outcomes.end(InstanceGone("A tool was stopped with its instance"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn must hear of it
            outcomes.end(error)

    def _stop_at_limit(self) -> list[JsonObject]:
        step = self._parts.max_steps
        text = STEP_LIMIT.format(limit=step)
        self._parts.journal.add_response(step, ModelResponse(parts=[TextPart(text)]), [])
        part_id = f"s{step}p0"
        return [
            chunks.start_step(),
            chunks.text_start(part_id),
            chunks.text_delta(part_id, text),
            chunks.text_end(part_id),
            chunks.finish_step(),
            chunks.finish("other"),
        ]


@contextmanager
def as_caller(caller: Current | None) -> Iterator[None]:
    """Run the block as code of the turn that the loop answers; a task begins outside any."""
    if caller is None:
        yield
        return
    with working_for(caller.agent, caller.connection), within(request_id=caller.request_id):
        yield


def merged(outcomes: Sequence[ToolOutcome]) -> ModelRequest:
    """The results of one step as one message: in call order, then what goes beside them."""
    extra: list[UserPromptPart] = [part for outcome in outcomes for part in outcome.extra]
    return ModelRequest(parts=[*(outcome.result for outcome in outcomes), *extra])
