"""Keeps an agent in memory, and its root's alarm armed, while somebody holds on to it."""

from collections.abc import Callable

from ramet.core.alarm import Alarm
from ramet.core.clock import Clock
from ramet.core.fence import Fence


class KeepAlive:
    """Counts the holders of one root agent; while there are any, its alarm is at most so far away.

    After a crash that alarm opens the agent again, so that what was under way is found.
    """

    def __init__(self, alarm: Alarm, clock: Clock, *, interval: float, fence: Fence) -> None:
        self._alarm = alarm
        self._clock = clock
        self._interval_ms = round(interval * 1000)
        self._fence = fence
        self._holders: set[object] = set()
        self._due: int | None = None

    @property
    def count(self) -> int:
        """How many hold on."""
        return len(self._holders)

    def hold(self, holder: Fence) -> Callable[[], None]:
        """Hold on until the returned function is called; calling it again does nothing (KA-003).

        When the last holder has died instead of letting go, the alarm comes once more.
        """
        if self._due is None:
            due = self._clock.now_ms() + self._interval_ms
            self._alarm.promise(due)
            self._due = due
        token = object()
        self._holders.add(token)

        def release() -> None:
            if token not in self._holders:
                return
            self._holders.remove(token)
            if not self._holders:
                self._due = None
                if not (holder.down or self._fence.down):
                    self._alarm.rearm()

        return release

    def next_due(self) -> int | None:
        """When the next sign of life is due."""
        return self._due

    async def beat(self) -> None:
        """Give a sign of life: set the next one."""
        now = self._clock.now_ms()
        if self._due is not None and not now < self._due <= now + self._interval_ms:
            self._due = now + self._interval_ms
