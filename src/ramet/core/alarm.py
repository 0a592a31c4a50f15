"""The one alarm of a root agent: the earliest of everything it has to wake up for (SC-031).

What wakes is written before what it is for (D6): `promise` puts the moment into the host's
durable index, then the feature writes its row. A wake-up for which nothing is due is harmless.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol


class Wakeups(Protocol):
    """The host's durable index of next wake-ups, for one root agent; committed on return."""

    def set(self, due_ms: int | None) -> None:
        """Wake the agent at this moment, in place of the one before; None for never."""
        ...

    def promise(self, due_ms: int) -> None:
        """Wake the agent at this moment, or at the one that is there already if it is earlier."""
        ...


class Alarm:
    """Collects the moments that features wait for, and runs their handlers when one has come."""

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._latest: int | None = None
        """The index holds this moment or an earlier one; None when nothing is known of it."""
        self._exact = False
        """Whether the index is known to hold just that moment, or none."""
        self._firing = False
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
        """Make sure that the agent wakes at `due_ms` or earlier; before the row is written.

        What the index holds already stays there if it is earlier: another feature's moment, or the
        one for which the alarm is firing, should a crash come before all is done.
        """
        if self._latest is None or due_ms < self._latest:
            self._wakeups.promise(due_ms)
            self._latest = due_ms

    def rearm(self) -> None:
        """Set the alarm to the earliest moment that any feature waits for, or to none.

        While the alarm fires this waits until it has.
        """
        if self._firing:
            return
        moments = [due for source in self._sources if (due := source()) is not None]
        earliest = min(moments, default=None)
        if not self._exact or earliest != self._latest:
            self._wakeups.set(earliest)
            self._latest, self._exact = earliest, True

    def renew(self) -> None:
        """Set the alarm even if it should stand already, in case that the index has lost it."""
        self._latest, self._exact = None, False
        self.rearm()

    async def fire(self) -> None:
        """Run every handler, then set the alarm again; one at a time.

        When a handler raises or is cancelled the index keeps the moment that has come.
        """
        self._latest, self._exact, self._firing = None, False, True
        try:
            for handle in self._handlers:
                await handle()
        finally:
            self._firing = False
        self.rearm()
