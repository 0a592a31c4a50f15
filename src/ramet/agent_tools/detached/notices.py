"""Tells a chat of the milestones of detached runs: those that were asked for, each once (D36)."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from ramet.agent_tools.detached.policy import GAP_SECONDS, HELD_UP
from ramet.agent_tools.detached.ports import DetachedPorts, Notices
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Milestone
from ramet.agent_tools.run_store import RunStore
from ramet.agent_tools.stored_run import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneNotices:
    """The notices of milestones of one parent."""

    ports: AgentToolPorts
    detached: DetachedPorts
    runs: RunStore
    _under_way: set[tuple[str, str]] = field(default_factory=set)

    def busy(self) -> bool:
        """Whether a notice is waiting or being made."""
        return bool(self._under_way)

    def offer(self, run_id: str, milestones: Iterable[Milestone]) -> None:
        """Tell of those that were asked for and were not told of yet; between two turns."""
        notices, run = self.detached.notices, self.runs.get(run_id)
        if notices is None or run is None:
            return
        for milestone in milestones:
            key = (run_id, milestone.name)
            if _wanted(run, milestone) and key not in self._under_way:
                self._under_way.add(key)
                work = self._tell(notices, run_id, milestone)
                self.ports.background.start(work, name=f"milestone of {run_id}")

    async def _tell(self, notices: Notices, run_id: str, milestone: Milestone) -> None:
        try:
            async with self._between_turns(run_id):
                run = self.runs.get(run_id)
                if run is not None and _wanted(run, milestone):
                    await self._told(notices, run, milestone)
        except Exception as error:  # noqa: BLE001 - the next tick offers the milestone again
            self.ports.fence.check()
            self.ports.errors.report(error)
        finally:
            self._under_way.discard((run_id, milestone.name))

    def _between_turns(self, run_id: str) -> AbstractAsyncContextManager[object]:
        late = TimeoutError(HELD_UP.format(what="A milestone", run_id=run_id, seconds=GAP_SECONDS))
        return self.detached.between_turns(
            at_most=GAP_SECONDS, overdue=lambda: self.ports.errors.report(late)
        )

    async def _told(self, notices: Notices, run: StoredRun, milestone: Milestone) -> None:
        wishes = run.detachment.milestones if run.detachment else None
        if wishes is None:
            return

        def noticed() -> None:
            """Record it together with the message; other names may have been recorded meanwhile."""
            now = self.runs.get(run.run_id)
            latest = now.detachment.milestones if now and now.detachment else None
            if latest is not None:
                self.runs.keep_wishes(run.run_id, latest.without(milestone.name))

        await notices.reached(run.info(), milestone, wishes.mode, noticed=noticed)


def _wanted(run: StoredRun, milestone: Milestone) -> bool:
    wishes = run.detachment.milestones if run.detachment else None
    return wishes is not None and wishes.waits_for(milestone.name)
