"""Carries out the due schedules of one agent, as its code."""

from ramet.core.current import working_for
from ramet.core.deliveries import Deliveries
from ramet.core.retry import Retrier
from ramet.schedules.ports import SchedulePorts
from ramet.schedules.store import StoredSchedule


class Execution:
    """Calls back one agent."""

    def __init__(self, ports: SchedulePorts) -> None:
        self._agent = ports.agent
        self._deliveries = Deliveries(
            kind="schedule",
            name=str(ports.path),
            agent=ports.agent,
            fence=ports.fence,
            events=ports.events,
            errors=ports.errors,
            retrier=Retrier(clock=ports.clock, ids=ports.ids),
            defaults=ports.options.retry,
            internal=ports.internal,
            first_event="execute",
        )
        self._running = 0

    @property
    def running(self) -> int:
        """How many callbacks of this agent run at the moment."""
        return self._running

    async def run(self, row: StoredSchedule) -> None:
        """Call the method and return when it has succeeded or failed for good.

        Raises:
            InstanceGone: The instance ended meanwhile; nothing is known of the callback.
        """
        self._running += 1
        try:
            with working_for(self._agent):
                await self._deliveries.carry_out(row)
        finally:
            self._running -= 1
