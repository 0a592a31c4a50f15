"""Runs the tool calls of a step at once, and commits how each of them ended."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager

from pydantic_ai.messages import ModelRequest

from ramet.core.current import Current, within, working_for
from ramet.core.ports import Background
from ramet.core.tail import Tail
from ramet.errors import InstanceGone
from ramet.think.tool_outcome import OpenCall, PlannedCall, ToolOutcome
from ramet.think.toolbox import Toolbox


class CallRunner:
    """Runs tool calls, each in a task of its own.

    Args:
        toolbox: Has the tools.
        background: Owns the tasks.
        add_result: Stores what the model is told of a call, by its wire id.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        background: Background,
        add_result: Callable[[str, ModelRequest], object],
    ) -> None:
        self._toolbox = toolbox
        self._background = background
        self._add_result = add_result

    def commit(self, outcome: ToolOutcome) -> None:
        """Store how a call ended."""
        self._add_result(outcome.planned.wire_id, outcome.request)

    async def run(
        self, calls: Sequence[PlannedCall], caller: Current | None, *, approved: bool = False
    ) -> AsyncGenerator[ToolOutcome | OpenCall]:
        """Give how each call ended, in the order in which they end.

        Args:
            calls: What the model has called.
            caller: Whose turn the tools run in.
            approved: Whether a person has let the calls run.
        """
        for group in self._toolbox.groups(calls):
            async with aclosing(self._run_at_once(group, caller, approved=approved)) as ends:
                async for end in ends:
                    yield end

    async def _run_at_once(
        self, group: Sequence[PlannedCall], caller: Current | None, *, approved: bool
    ) -> AsyncGenerator[ToolOutcome | OpenCall]:
        ends = Tail[ToolOutcome | OpenCall]()
        tasks = [
            self._background.start(
                self._run_call(planned, caller, ends, approved=approved),
                name=f"tool {planned.call.tool_name}",
            )
            for planned in group
        ]
        try:
            for _ in group:
                yield await anext(ends)
        finally:
            # Their owner awaits them: the end of a cancelled turn waits for no tool (D12).
            ends.end()
            for task in tasks:
                task.cancel()

    async def _run_call(
        self,
        planned: PlannedCall,
        caller: Current | None,
        ends: Tail[ToolOutcome | OpenCall],
        *,
        approved: bool,
    ) -> None:
        try:
            with as_caller(caller), within(tool_call_id=planned.wire_id):
                end = await self._toolbox.call(planned, approved=approved)
            if not ends.ended:
                if isinstance(end, ToolOutcome):
                    self.commit(end)
                ends.push(end)
        except asyncio.CancelledError:
            ends.end(InstanceGone("A tool was stopped with its instance"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn must hear of it
            ends.end(error)


@contextmanager
def as_caller(caller: Current | None) -> Iterator[None]:
    """Run the block as code of the turn that the loop answers; a task begins outside any."""
    if caller is None:
        yield
        return
    with working_for(caller.agent, caller.connection), within(request_id=caller.request_id):
        yield
