"""Clears runs: the child with all it stored, then the row and its frames."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ramet.agent_tools.arguments import asked_statuses
from ramet.agent_tools.dispatch import Dispatcher
from ramet.agent_tools.policy import CLEARING
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.run_store import StoredRun
from ramet.protocol.run_events import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Clears the runs of one parent."""

    ports: AgentToolPorts
    dispatcher: Dispatcher

    async def clear(
        self,
        *,
        older_than: timedelta | datetime | None,
        status: RunStatus | Sequence[RunStatus] | None,
    ) -> int:
        """Clear the runs that fit, oldest first; returns how many (AT-325 … AT-332)."""
        statuses = asked_statuses(status)
        before = None if older_than is None else self._instant(older_than)
        runs = self.dispatcher.runs.matching(statuses=statuses, started_before=before)
        for run in runs:
            await self._clear(run)
        return len(runs)

    async def _clear(self, run: StoredRun) -> None:
        await self._stop(run)
        child = self.ports.path.child(run.agent_type, run.run_id)
        try:
            await self.ports.lifecycles.delete(child)
        except Exception as error:  # noqa: BLE001 - a child that is gone must not keep its row (AT-328)
            self.ports.fence.check()
            self.ports.errors.report(error)
        with self.ports.database.transaction():
            self.ports.registry.remove(run.agent_type, run.run_id)
            self.dispatcher.frames.delete(run.run_id)
            self.dispatcher.runs.delete(run.run_id)
        self.dispatcher.observers.tell(replace(run, status="aborted", error=CLEARING))

    async def _stop(self, run: StoredRun) -> None:
        """End a run that is under way as cancelled; who waits for it is told (AT-327)."""
        live = self.dispatcher.in_flight.get(run.run_id)
        if live is None:
            return
        live.cancel(CLEARING)
        await live.sealed.wait()
        self.dispatcher.in_flight.forget(live)

    def _instant(self, older_than: timedelta | datetime) -> int:
        """The time before which a run must have started, in milliseconds (D34)."""
        if isinstance(older_than, timedelta):
            return self.ports.clock.now_ms() - older_than // timedelta(milliseconds=1)
        if not isinstance(older_than, datetime):
            raise TypeError(f"older_than is a timedelta or an aware datetime, not {older_than!r}")
        if older_than.tzinfo is None:
            raise ValueError(f"older_than must say its time zone: {older_than!r}")
        return round(older_than.timestamp() * 1000)
