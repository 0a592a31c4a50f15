"""What an agent can do with other agents as tools: the methods that `Agent` gains from here."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar, overload

from ramet.agent_tools.detached_options import Detached
from ramet.agent_tools.dispatch import RunOrder
from ramet.agent_tools.feature import AgentTools
from ramet.agent_tools.records import DetachedRun, RunInfo, RunInspection, RunResult
from ramet.core.json import JsonValue
from ramet.core.signals import AbortSignal
from ramet.core.warn_once import warn_once
from ramet.protocol.run_events import ABSENT, RunStatus

Output = TypeVar("Output")

NO_PROGRESS = "report_progress does nothing on an agent that is no chat agent"

_log = logging.getLogger("ramet.agent_tools")


class AgentToolVerbs:
    """The agent-tool methods of an agent."""

    _ramet_agent_tools: AgentTools

    @overload
    async def run_agent_tool(
        self,
        cls: type,
        *,
        input: object = ...,
        output: type[Output],
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        parent_tool_call_id: str | None = ...,
        display_order: int = ...,
        signal: AbortSignal | None = ...,
        input_preview: object = ...,
        display: object = ...,
        detached: Literal[False] = ...,
    ) -> RunResult[Output]: ...

    @overload
    async def run_agent_tool(
        self,
        cls: type,
        *,
        input: object = ...,
        output: None = ...,
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        parent_tool_call_id: str | None = ...,
        display_order: int = ...,
        signal: AbortSignal | None = ...,
        input_preview: object = ...,
        display: object = ...,
        detached: Literal[False] = ...,
    ) -> RunResult[JsonValue]: ...

    @overload
    async def run_agent_tool(
        self,
        cls: type,
        *,
        input: object = ...,
        output: object,
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        parent_tool_call_id: str | None = ...,
        display_order: int = ...,
        signal: AbortSignal | None = ...,
        input_preview: object = ...,
        display: object = ...,
        detached: Literal[False] = ...,
    ) -> RunResult[object]: ...

    @overload
    async def run_agent_tool(
        self,
        cls: type,
        *,
        input: object = ...,
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        parent_tool_call_id: str | None = ...,
        display_order: int = ...,
        signal: AbortSignal | None = ...,
        input_preview: object = ...,
        display: object = ...,
        detached: Literal[True] | Detached,
    ) -> DetachedRun: ...

    async def run_agent_tool(  # noqa: PLR0913 - the one dispatch primitive; everything is by name
        self,
        cls: type,
        *,
        input: object = ABSENT,
        output: object = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        parent_tool_call_id: str | None = None,
        display_order: int = 0,
        signal: AbortSignal | None = None,
        input_preview: object = None,
        display: object = None,
        detached: bool | Detached = False,
    ) -> RunResult[Any] | DetachedRun:  # the overloads say what is in it
        """Run another agent as a tool: a sub-agent of its own, seen live by this agent's clients.

        The run is registered before the child starts, goes on when this call's connection goes,
        and is kept until it is cleared. Its id again gives its result, or joins it. Cancelling the
        caller cancels it. With `detached` the call returns once the child has begun.

        Args:
            cls: The child's class, given to `App`: a chat agent, or one with the adapter's methods.
            input: What the child is asked, handed over as it is.
            output: A type that the child's structured output must fit; what does not fit makes the
                result an error. None takes the output as it comes.
            run_id: The run's id and the child's name, for one turn; by default of the tool call.
            idempotency_key: A run id for all turns; refused when it comes with another input.
            parent_tool_call_id: The tool call that clients see it under; by default ours.
            display_order: Where the run stands among those of its tool call.
            signal: Aborting it cancels the run.
            input_preview: What is kept and shown of the input, in place of a preview made from it.
            display: How clients show it, such as `{"name": "Research", "icon": "🔎"}`.
            detached: Whether to let go of the run; a `Detached` says how it reports back.

        Returns:
            How the run ended: a child that failed is a result. Detached: the run as it has begun.

        Raises:
            AgentNotRegistered: The class was not given to `App`.
            NotAnAgentTool: The class lacks methods of the adapter.
            RunBelongsToAnother: The id is taken by another class, turn, or (a key) input.
            ValueError, MethodNotFound, InvalidArguments: What `detached` asks for cannot be.
            Exception: What `on_agent_tool_start` or starting the child raised.
        """
        order = RunOrder(
            cls=cls,
            input=input,
            output=output,
            run_id=run_id,
            idempotency_key=idempotency_key,
            parent_tool_call_id=parent_tool_call_id,
            display_order=display_order,
            input_preview=input_preview,
            display=display,
        )
        if detached is not False:
            return await self._ramet_agent_tools.let_go(order, detached, signal)
        return await self._ramet_agent_tools.run(order, signal)

    async def cancel_agent_tool(self, run_id: str, reason: str | None = None) -> None:
        """Tell a run's child to stop; whoever waits for the run gets what the child then reports.

        A detached run ends as aborted at once, and its `on_finish` is called before this returns.
        Nothing happens for a run that is unknown or has ended.
        """
        await self._ramet_agent_tools.cancel(run_id, reason)

    def has_agent_tool_run(self, cls: type | str, run_id: str) -> bool:
        """Whether there is a run of that class and that id."""
        return self._ramet_agent_tools.has(cls, run_id)

    def list_agent_tool_runs(
        self,
        cls: type | str | None = None,
        *,
        status: RunStatus | Sequence[RunStatus] | None = None,
        parent_tool_call_id: str | None = None,
    ) -> list[RunInfo]:
        """The runs of this agent that fit all that is given, oldest first."""
        return self._ramet_agent_tools.matching(
            cls, status=status, parent_tool_call_id=parent_tool_call_id
        )

    async def inspect_agent_tool(self, run_id: str) -> RunInspection | None:
        """Where a run is: what is stored of it here, and what its child says; None when unknown."""
        return await self._ramet_agent_tools.inspect(run_id)

    async def clear_agent_tool_runs(
        self,
        *,
        older_than: timedelta | datetime | None = None,
        status: RunStatus | Sequence[RunStatus] | None = None,
    ) -> int:
        """Remove runs with their children and all those stored; returns how many.

        A run that is under way is cancelled first. Clients are not told: they reset by themselves.

        Args:
            older_than: Only runs that were started longer ago than this, or before this instant.
            status: Only runs with this status, or one of these.
        """
        return await self._ramet_agent_tools.clear(older_than=older_than, status=status)

    async def report_progress(
        self,
        *,
        fraction: float | None = None,
        message: str | None = None,
        phase: str | None = None,
        milestone: str | None = None,
        data: object = None,
        persist: bool = False,
    ) -> Literal["emitted", "coalesced", "inactive"]:
        """Report how far a run is; on an agent that is no chat agent this only warns (AT-212)."""
        del fraction, message, phase, milestone, data, persist
        warn_once(_log, type(self), NO_PROGRESS)
        return "inactive"
