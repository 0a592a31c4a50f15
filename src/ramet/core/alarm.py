"""The one alarm of a root agent: the earliest of everything it has to wake up for (SC-031).

What wakes is written before what it is for (D6): `promise` puts the moment into the host's durable
index, then the feature writes its row. A wake-up for which nothing is due is harmless.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol


class Wakeups(Protocol):
    """The host's durable index of next wake-ups, for one root agent."""

    def set(self, due_ms: int | None) -> None:
        """Wake the agent at this moment, in place of the one before; None for never.

        Committed when it returns; an agent that is not open then is opened.
        """
        ...


class Alarm:
    """Collects the moments that features wait for, and runs their handlers when one has come."""

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._armed: int | None = None
        self._sources: list[Callable[[], int | None]] = []
        self._handlers: list[Callable[[], Awaitable[None]]] = []

    def add(
        self, *, next_due: Callable[[], int | None], handle: Callable[[], Awaitable[None]]
    ) -> None:
        """Let a feature say when it is due next, in epoch milliseconds, and what to do then.

        Handlers run one after another in the order they were added, on every alarm; each does what
        is due and nothing else, and reports its own errors.
        """
        self._sources.append(next_due)
        self._handlers.append(handle)

    def promise(self, due_ms: int) -> None:
        """Make sure that the agent wakes at `due_ms` or earlier; before the row is written."""
        if self._armed is None or due_ms < self._armed:
            self._arm(due_ms)

    def rearm(self) -> None:
        """Set the alarm to the earliest moment that any feature waits for, or to none."""
        moments = [due for source in self._sources if (due := source()) is not None]
        self._arm(min(moments, default=None))

    async def fire(self) -> None:
        """Run every handler, then set the alarm again."""
        self._armed = None
        try:
            for handle in self._handlers:
                await handle()
        finally:
            self.rearm()

    def _arm(self, due_ms: int | None) -> None:
        if due_ms != self._armed:
            self._wakeups.set(due_ms)
            self._armed = due_ms
