"""Cancels runs by id: the child is told, and the run ends by what it then says (AT-184)."""

from dataclasses import dataclass

from ramet.agent_tools.arguments import check_id
from ramet.agent_tools.children import in_time
from ramet.agent_tools.detached.runs import DetachedRuns
from ramet.agent_tools.dispatch import Dispatcher
from ramet.protocol.run_events import HARD_TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """Cancels the runs of one parent by id."""

    dispatcher: Dispatcher
    detached: DetachedRuns

    async def cancel(self, run_id: str, reason: str | None) -> None:
        """Tell a run's child to stop; nothing happens for an unknown or finished run (AT-186).

        A child that was not started yet is stopped as soon as it is.

        Raises:
            InvalidArguments: That can be no run id.
            Exception: What the child raised; `TimeoutError` when it did not answer.
        """
        check_id("run_id", run_id)
        run = self.dispatcher.runs.get(run_id)
        if run is None or run.status in HARD_TERMINAL:
            return
        if run.detached:
            await self.detached.cancel(run, reason)
            return
        live = self.dispatcher.in_flight.get(run_id)
        if live is not None and not live.child_started:
            live.early_cancel = reason or "cancelled by parent"
            return
        async with in_time(self.dispatcher.ports.clock):
            await self.dispatcher.child_of(run).cancel(reason)
