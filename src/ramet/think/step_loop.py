"""The step loop: ask the model, run the tools it calls at once, tell it the results, ask again."""

from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
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

from ramet.chat.overlap import DanglingCall
from ramet.core.current import Current, current
from ramet.core.json import JsonObject
from ramet.core.ports import Background
from ramet.errors import InstanceGone
from ramet.protocol import chunks
from ramet.protocol.chunks import FinishReason
from ramet.think.call_runner import CallRunner
from ramet.think.chunk_writer import ChunkWriter, finish_reason_of
from ramet.think.hooks import NO_HOOKS, StepHooks
from ramet.think.model_seam import ModelCall, ModelStream
from ramet.think.step_store import StoredStep
from ramet.think.tool_outcome import (
    INTERRUPTED_TOOL,
    OpenCall,
    PlannedCall,
    ToolOutcome,
    failed,
    recalled,
    wire_input,
)
from ramet.think.toolbox import Toolbox
from ramet.think.wire_ids import IdSource, ReissuedIds, WireIds

STEP_LIMIT: Final = "I stopped here: this turn has reached its limit of {limit} steps."


class StepJournal(Protocol):
    """Keeps the steps of one turn on disk."""

    def add_response(
        self,
        step: int,
        response: ModelResponse,
        wire_ids: Sequence[str],
        *,
        own: Collection[str] = (),
    ) -> None:
        """Commit what the model said, with the wire ids of its tool calls in call order.

        `own` are those that run here: no page may give their output.
        """
        ...

    def ask(self, wire_id: str) -> None:
        """Commit that a call is answered from outside after all."""
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
    under_way: set[str] = field(default_factory=set)
    """Kept up to date: the wire ids of the calls that run here and have not ended."""
    hooks: StepHooks = NO_HOOKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What an earlier process has left of an answer."""

    first_step: int = 0
    """The step to begin with: those before it are part of the history."""
    steps: Sequence[StoredStep] = ()
    """The steps from there on that the model has answered already."""
    cut_calls: Sequence[DanglingCall] = ()
    """The tool calls that the model was about to make when it was cut off."""


class StepLoop:
    """Answers one turn.

    Args:
        parts: What it works with.
        messages: The history, ending with what the model is to answer; the loop adds to the list.
        beginning: What is there of the answer already.
    """

    def __init__(
        self,
        parts: LoopParts,
        messages: list[ModelMessage],
        beginning: Beginning = Beginning(),
    ) -> None:
        self._parts = parts
        self._beginning = beginning
        self._messages = messages
        self._calls: list[PlannedCall] = []
        self._held: set[str] = set()
        """The page's calls that it is not shown yet: a hook has still to let them through."""
        self._reason: FinishReason = "stop"
        self._asks = False

    async def chunks(self) -> AsyncGenerator[JsonObject]:
        """Give the chunks of the answer, from the first step on.

        Closing or cancelling it stops the model and every tool that runs. What a step said before
        it was cut stays in the journal. Errors of the model and of hooks are raised.
        """
        parts = self._parts
        caller = current()
        beginning = self._beginning
        for step in range(beginning.first_step, parts.max_steps):
            place = step - beginning.first_step
            known = beginning.steps[place] if place < len(beginning.steps) else None
            if known is None:
                await parts.hooks.starting_step(step)
            yield chunks.start_step()
            if known is not None:
                for chunk in await self._recall(step, known):
                    yield chunk
            else:
                ids = ReissuedIds(beginning.cut_calls, parts.wire_ids)
                again = place == len(beginning.steps) and bool(beginning.cut_calls)
                async with aclosing(self._ask(step, ids if again else parts.wire_ids)) as said:
                    async for chunk in said:
                        yield chunk
            async with aclosing(self._run_calls(caller, known)) as outputs:
                async for chunk in outputs:
                    yield chunk
            yield chunks.finish_step()
            if self._asks or not self._calls:
                yield chunks.finish(self._reason)
                return
        for chunk in self._stop_at_limit():
            yield chunk

    async def _recall(self, step: int, known: StoredStep) -> Sequence[JsonObject]:
        """Take a step that the model has answered before; give its calls as clients see them."""
        await self._parts.toolbox.prepare(step)
        self._remember(known.response, [*known.results])
        shown: list[JsonObject] = []
        for planned in self._calls:
            shown.append(chunks.tool_input_start(planned.wire_id, planned.call.tool_name))
            if planned.wire_id not in self._held:
                shown.append(_input_of(planned))
        return shown

    async def _ask(self, step: int, wire_ids: IdSource) -> AsyncGenerator[JsonObject]:
        parts = self._parts
        tools = await parts.toolbox.prepare(step)
        writer = ChunkWriter(step, wire_ids)
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
        for chunk in writer.complete(response, held=self._held):
            yield chunk
        await parts.hooks.finished_response(step, response)

    def _take(self, step: int, response: ModelResponse, wire_ids: Sequence[str]) -> None:
        # Whose a call is stands before clients see it: a page may answer as soon as it does.
        own = self._own(_planned(response, wire_ids))
        self._parts.journal.add_response(step, response, wire_ids, own=own)
        self._remember(response, wire_ids)

    def _own(self, calls: Sequence[PlannedCall]) -> set[str]:
        runs_here = self._parts.toolbox.runs_here
        return {each.wire_id for each in calls if runs_here(each.call.tool_name)}

    def _remember(self, response: ModelResponse, wire_ids: Sequence[str]) -> None:
        self._parts.usage.incr(response.usage)
        self._messages.append(response)
        self._calls = _planned(response, wire_ids)
        own = self._own(self._calls)
        self._parts.under_way.update(own)
        decides = self._parts.hooks.before_tool_call is not None
        self._held = {each.wire_id for each in self._calls} - own if decides else set()
        self._reason = finish_reason_of(response)

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

    async def _run_calls(
        self, caller: Current | None, known: StoredStep | None
    ) -> AsyncGenerator[JsonObject]:
        settled = {} if known is None else self._settled_before(known)
        for outcome in settled.values():
            for chunk in self._shown(outcome):
                yield chunk
        self._parts.under_way.difference_update(settled)
        open_calls = [each for each in self._calls if each.wire_id not in settled]
        parts = self._parts
        runner = CallRunner(parts.toolbox, parts.background, parts.journal.add_result)
        async with aclosing(runner.run(open_calls, caller)) as ends:
            async for end in ends:
                parts.under_way.discard(end.planned.wire_id)
                if isinstance(end, ToolOutcome):
                    settled[end.planned.wire_id] = end
                for chunk in self._shown(end):
                    yield chunk
        if not settled:
            return
        in_order = [settled[each.wire_id] for each in self._calls if each.wire_id in settled]
        self._messages.append(merged(in_order))
        for outcome in in_order:
            if outcome.fatal is not None:
                raise outcome.fatal

    def _shown(self, end: ToolOutcome | OpenCall) -> Iterator[JsonObject]:
        """Give what clients are shown of a call that has ended, or is left to somebody outside.

        If it was held back they have still to be shown its input.
        """
        planned = end.planned
        if isinstance(end, OpenCall):
            self._asks = True
            if not end.needs_approval:
                self._parts.journal.ask(planned.wire_id)
        if planned.wire_id in self._held:
            yield _input_of(planned)
        if isinstance(end, OpenCall):
            yield from end.chunks
        else:
            yield end.chunk

    def _settled_before(self, known: StoredStep) -> dict[str, ToolOutcome]:
        """The outcomes of calls that had ended, and of those that may not be run again (D9)."""
        settled: dict[str, ToolOutcome] = {}
        for planned in self._calls:
            stored = known.results[planned.wire_id]
            outcome = None if stored is None else recalled(planned, stored)
            if outcome is None and not self._parts.toolbox.may_run_again(planned.call.tool_name):
                outcome = failed(planned, INTERRUPTED_TOOL)
                self._parts.journal.add_result(planned.wire_id, outcome.request)
            if outcome is not None:
                settled[planned.wire_id] = outcome
        return settled

    def _stop_at_limit(self) -> Iterator[JsonObject]:
        step = self._parts.max_steps
        text = STEP_LIMIT.format(limit=step)
        part_id = f"s{step}p0"
        yield chunks.start_step()
        yield chunks.text_start(part_id)
        yield chunks.text_delta(part_id, text)
        yield chunks.text_end(part_id)
        self._parts.journal.add_response(step, ModelResponse(parts=[TextPart(text)]), [])
        yield chunks.finish_step()
        yield chunks.finish("other")


def _planned(response: ModelResponse, wire_ids: Sequence[str]) -> list[PlannedCall]:
    made = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return [
        PlannedCall(call=call, wire_id=wire_id)
        for call, wire_id in zip(made, wire_ids, strict=True)
    ]


def _input_of(planned: PlannedCall) -> JsonObject:
    call = planned.call
    return chunks.tool_input_available(planned.wire_id, call.tool_name, wire_input(call))


def merged(outcomes: Sequence[ToolOutcome]) -> ModelRequest:
    """The results of one step as one message: in call order, then what goes beside them."""
    extra: list[UserPromptPart] = [part for outcome in outcomes for part in outcome.extra]
    return ModelRequest(parts=[*(outcome.result for outcome in outcomes), *extra])
