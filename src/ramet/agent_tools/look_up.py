"""Answers what runs there are and where one is."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramet.agent_tools.arguments import asked_statuses, check_id
from ramet.agent_tools.children import in_time
from ramet.agent_tools.dispatch import Dispatcher
from ramet.agent_tools.outputs import result_of
from ramet.agent_tools.policy import ending_of
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import RunInfo, RunInspection
from ramet.core.public_errors import public_text
from ramet.errors import AgentNotRegistered
from ramet.protocol.run_events import HARD_TERMINAL, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Reads the registry of one parent."""

    ports: AgentToolPorts
    dispatcher: Dispatcher

    def has(self, cls: type | str, run_id: str) -> bool:
        """Whether there is a run of that class and id; both must match (AT-334)."""
        check_id("run_id", run_id)
        run = self.dispatcher.runs.get(run_id)
        return run is not None and self._name(run.agent_type) == self._name(cls)

    def matching(
        self,
        cls: type | str | None,
        *,
        status: RunStatus | Sequence[RunStatus] | None,
        parent_tool_call_id: str | None,
    ) -> list[RunInfo]:
        """The runs that fit all that is given, oldest first."""
        if parent_tool_call_id is not None:
            check_id("parent_tool_call_id", parent_tool_call_id)
        runs = self.dispatcher.runs.matching(
            agent_type=None if cls is None else self._name(cls),
            parent_tool_call_id=parent_tool_call_id,
            statuses=asked_statuses(status),
        )
        return [run.info() for run in runs]

    async def inspect(self, run_id: str) -> RunInspection | None:
        """Where a run is: its row and what its child says; None when there is no such run.

        A run that the parent lost sight of, and that has ended after all, takes its end now.
        """
        check_id("run_id", run_id)
        run = self.dispatcher.runs.get(run_id)
        if run is None:
            return None
        child, child_error = None, None
        try:
            async with in_time(self.ports.clock):
                child = await self.dispatcher.child_of(run).inspect()
        except Exception as error:  # noqa: BLE001 - that the child cannot be asked is part of the answer
            self.ports.fence.check()
            child_error = public_text(error, self.ports.ids)
        ending = ending_of(child)
        lost = run.status == "interrupted" and not run.detached
        if lost and ending is not None and ending.status in HARD_TERMINAL:
            await self.dispatcher.repair(run)
        run = self.dispatcher.runs.get(run_id) or run
        under_way = run.status in {"starting", "running"}
        return RunInspection(
            run=run.info(),
            result=None if under_way else result_of(run),
            child=child,
            child_error=child_error,
        )

    def _name(self, cls: type | str) -> str:
        """The name of a class; a name that is not registered any more is taken as it is."""
        try:
            return self.ports.classes.name_of(cls)
        except AgentNotRegistered:
            return cls if isinstance(cls, str) else cls.__name__
