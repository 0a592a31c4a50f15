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
        self._armed: int | None = None
        self._known = False
        """Whether the index holds `_armed`: a new instance does not know what is in there."""
        self._firing = 0
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

        While the alarm fires the index still holds the moment that has come, which is earlier than
        any other; all that was promised meanwhile is set when it has fired.
        """
        if self._firing:
            return
        if not self._known:
            self.rearm()
        if self._armed is None or due_ms < self._armed:
            self._arm(due_ms)

    def rearm(self) -> None:
        """Set the alarm to the earliest moment that any feature waits for, or to none."""
        if self._firing:
            return
        moments = [due for source in self._sources if (due := source()) is not None]
        self._arm(min(moments, default=None))

    async def fire(self) -> None:
        """Run every handler, then set the alarm again."""
        self._firing += 1
        try:
            for handle in self._handlers:
                await handle()
        finally:
            self._firing -= 1
            self._known = False
            self.rearm()

    def _arm(self, due_ms: int | None) -> None:
        if not self._known or due_ms != self._armed:
            self._wakeups.set(due_ms)
            self._armed, self._known = due_ms, True
