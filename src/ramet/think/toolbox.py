"""The tools of one turn: listed for each step, and called."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from ramet.core.callbacks import exits_as_errors
from ramet.core.ids import Ids
from ramet.core.ports import Background
from ramet.core.public_errors import public_text
from ramet.think.hooks import NO_HOOKS, StepHooks
from ramet.think.idempotent import may_run_again
from ramet.think.tool_outcome import (
    OpenCall,
    PlannedCall,
    Refusal,
    ToolOutcome,
    failed,
    refused,
    returned,
)

RETRIES = 1
"""How often a model may try a tool again unless the tool says otherwise, as in the library."""

_ASKS_AGAIN = "The tool {name!r} asked for an approval that it has already"
_CANCELLED = "The tool was cancelled"


@asynccontextmanager
async def held_open(
    toolset: AbstractToolset[object], background: Background
) -> AsyncIterator[AbstractToolset[object]]:
    """Keep a toolset's connections open for the block.

    They are opened and closed by a task of their own: the block is an async generator, and what it
    waits for must not end up inside somebody else's cancel scope.
    """
    if _only_functions(toolset):
        yield toolset
        return
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    release = asyncio.Event()

    async def hold() -> None:
        try:
            async with toolset:
                opened.set_result(None)
                await release.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)

    holder = background.start(hold(), name="toolsets")
    try:
        await opened
        yield toolset
    finally:
        release.set()
        if not opened.done():
            holder.cancel()


class Toolbox:
    """Lists and calls the tools of one turn; counts what the model gets wrong."""

    def __init__(
        self,
        toolset: AbstractToolset[object],
        context: RunContext[object],
        *,
        ids: Ids,
        hooks: StepHooks = NO_HOOKS,
    ) -> None:
        self._manager = ToolManager(toolset, default_max_retries=RETRIES)
        self._context = context
        self._ids = ids
        self._hooks = hooks

    async def prepare(self, step: int) -> Sequence[ToolDefinition]:
        """The definitions of the tools that the model has in a step."""
        context = replace(self._context, run_step=step)
        self._manager = await self._manager.for_run_step(context)
        return self._manager.tool_defs

    async def instructions(self) -> list[str]:
        """What the toolsets tell the model about themselves."""
        given = await self._manager.toolset.get_instructions(self._context)
        if given is None:
            return []
        parts = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
        return [part if isinstance(part, str) else part.content for part in parts]

    def groups(self, calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
        """The calls in groups to run one after another; within a group they run at once.

        One group, unless a tool was marked `sequential`: that one runs alone.
        """
        groups: list[list[PlannedCall]] = []
        shared = False
        for planned in calls:
            alone = self._manager.is_sequential(planned.call)
            if shared and not alone:
                groups[-1].append(planned)
            else:
                groups.append([planned])
            shared = not alone
        return groups

    def may_run_again(self, tool_name: str, *, approved: bool = False) -> bool:
        """Whether a tool that a crash has cut off may be run again (D9).

        One that waits for somebody outside has not run; unless it was approved meanwhile.
        """
        tool = (self._manager.tools or {}).get(tool_name)
        if tool is None:
            return False
        return may_run_again(tool.tool_def.metadata) or (tool.tool_def.defer and not approved)

    def runs_here(self, tool_name: str) -> bool:
        """Whether the output of a tool comes from here, be it after an approval."""
        tool = (self._manager.tools or {}).get(tool_name)
        return tool is None or tool.tool_def.kind != "external"

    async def call(self, planned: PlannedCall, *, approved: bool = False) -> ToolOutcome | OpenCall:
        """Run a tool; whatever goes wrong inside is an outcome, except being cancelled.

        A tool of the page, or one that needs a person's approval, is left open.
        """
        call = replace(planned.call, tool_call_id=planned.wire_id)
        try:
            with exits_as_errors():
                await self._hooks.starting_call(planned.info)
                outcome = await self._run(planned, call, approved=approved)
                if isinstance(outcome, ToolOutcome):
                    await self._hooks.finished_call(planned.info, outcome.info)
        except CallDeferred:
            return OpenCall(planned=planned)
        except ApprovalRequired:
            if approved:
                return failed(planned, _ASKS_AGAIN.format(name=call.tool_name))
            return OpenCall(planned=planned, needs_approval=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return failed(planned, _CANCELLED)
        except Exception as error:  # noqa: BLE001 - a tool is the user's code: it may raise anything
            return failed(planned, public_text(error, self._ids))
        return outcome

    async def _run(
        self, planned: PlannedCall, call: ToolCallPart, *, approved: bool
    ) -> ToolOutcome | OpenCall:
        manager = self._manager
        try:
            validated = await manager.validate_tool_call(
                call, approved=approved, wrap_validation_errors=False
            )
        except (ValidationError, ModelRetry, ToolFailed) as error:
            return self._refuse(planned, error)
        kind = validated.tool.tool_def.kind if validated.tool is not None else None
        if kind == "external" or (kind == "unapproved" and not approved):
            return OpenCall(planned=planned, needs_approval=kind == "unapproved")
        try:
            value = await manager.execute_tool_call(validated, wrap_validation_errors=False)
        except (ModelRetry, ToolFailed) as error:
            return self._refuse(planned, error)
        manager.succeeded_tools.add(call.tool_name)
        return returned(planned, value)

    def _refuse(self, planned: PlannedCall, error: Refusal) -> ToolOutcome:
        manager, name = self._manager, planned.call.tool_name
        tool = (manager.tools or {}).get(name)
        limit = tool.max_retries if tool is not None else manager.default_max_retries
        before = manager.ctx.retries.get(name, 0) if manager.ctx is not None else 0
        if not isinstance(error, ToolFailed):
            manager.failed_tools.add(name)
        return refused(planned, error, attempt=before + 1, limit=limit)


def _only_functions(toolset: AbstractToolset[object]) -> bool:
    """Whether there is nothing to open; a toolset of any other class might have something."""
    if type(toolset) is CombinedToolset:
        return all(map(_only_functions, toolset.toolsets))
    return type(toolset) is FunctionToolset
