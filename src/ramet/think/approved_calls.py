"""Runs the tool calls that a person has let run, at the beginning of the turn that goes on."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from pydantic_ai.messages import ModelRequest, ToolCallPart

from ramet.core.current import current
from ramet.core.json import JsonObject
from ramet.protocol import tool_parts
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage
from ramet.think.call_runner import CallRunner
from ramet.think.step_store import StoredStep
from ramet.think.tool_outcome import INTERRUPTED_TOOL, PlannedCall, ToolOutcome, failed, recalled
from ramet.think.toolbox import Toolbox


def approved_calls(message: UIMessage, steps: Sequence[StoredStep]) -> list[PlannedCall]:
    """The calls of an answer that were approved and have not run, as the model made them."""
    native = {
        wire_id: call
        for step in steps
        for wire_id, call in zip(step.results, step.calls, strict=False)
    }
    planned: list[PlannedCall] = []
    for part in parts_of(message):
        call_id = tool_parts.tool_call_id(part)
        if call_id is not None and tool_parts.is_approved(part):
            call = native.get(call_id) or ToolCallPart(
                tool_name=tool_parts.tool_name(part),
                args=tool_parts.input_object(part.get("input")),
                tool_call_id=call_id,
            )
            planned.append(PlannedCall(call=call, wire_id=call_id))
    return planned


def known_results(steps: Sequence[StoredStep]) -> dict[str, ModelRequest]:
    """What is stored of how calls ended, by wire id."""
    return {
        wire_id: result
        for step in steps
        for wire_id, result in step.results.items()
        if result is not None
    }


async def run_approved(
    calls: Sequence[PlannedCall],
    runner: CallRunner,
    toolbox: Toolbox,
    *,
    known: Mapping[str, ModelRequest],
    begun: bool,
) -> AsyncGenerator[JsonObject]:
    """Run calls and give the chunks of how they ended.

    Args:
        calls: What was approved.
        runner: Runs them and commits their ends.
        toolbox: Has the tools.
        known: The ends that an earlier process has stored and not shown: those calls do not run.
        begun: Whether an earlier process may have begun with them: what may not run again is then
            told as interrupted (D9).
    """
    await toolbox.prepare(0)
    left: list[PlannedCall] = []
    for planned in calls:
        stored = known.get(planned.wire_id)
        ended = None if stored is None else recalled(planned, stored)
        if ended is not None:
            yield ended.chunk
        elif begun and not toolbox.may_run_again(planned.call.tool_name, approved=True):
            outcome = failed(planned, INTERRUPTED_TOOL)
            runner.commit(outcome)
            yield outcome.chunk
        else:
            left.append(planned)
    async with aclosing(runner.run(left, current(), approved=True)) as ends:
        async for end in ends:
            if isinstance(end, ToolOutcome):
                yield end.chunk
