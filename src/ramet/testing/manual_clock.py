"""A clock that stands still until a test moves it."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

START_MS = 1_800_000_000_000


class ManualTimer:
    """A call that is due at a moment of a `ManualClock`."""

    def __init__(self, due: float, order: int, call: Callable[[], object]) -> None:
        self.due = due
        self.order = order
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Forget the call."""
        self.cancelled = True

    def __lt__(self, other: "ManualTimer") -> bool:
        return (self.due, self.order) < (other.due, other.order)


class ManualClock:
    """Time for tests: sleeps, time-outs and timers wait until the test moves the clock."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._elapsed = 0.0
        self._order = itertools.count()
        self._timers: list[ManualTimer] = []

    def now_ms(self) -> int:
        """The clock's time in milliseconds since the epoch."""
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def call_later(self, seconds: float, call: Callable[[], object]) -> ManualTimer:
        """Call `call` when the clock has been moved by `seconds`."""
        timer = ManualTimer(self._elapsed + max(0.0, seconds), next(self._order), call)
        heapq.heappush(self._timers, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, partial(_wake, woken))
        try:
            await woken
        finally:
            timer.cancel()

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Cancel the block once the clock has been moved by `seconds`, and raise `TimeoutError`."""
        return self._timeout(seconds)

    def next_due(self) -> float | None:
        """Seconds until the next timer; None when nothing waits for the clock."""
        while self._timers and self._timers[0].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0].due - self._elapsed if self._timers else None

    def move(self, seconds: float) -> bool:
        """Move the clock and call what is due by then, earliest first; whether anything was."""
        due = self._elapsed + seconds
        called = False
        while (wait := self.next_due()) is not None and self._elapsed + wait <= due:
            timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, timer.due)
            timer.call()
            called = True
        self._elapsed = due
        return called

    @asynccontextmanager
    async def _timeout(self, seconds: float | None) -> AsyncIterator[object]:
        async with asyncio.timeout(None) as scope:
            if seconds is None:
                yield scope
                return
            loop = asyncio.get_running_loop()
            timer = self.call_later(seconds, lambda: scope.reschedule(loop.time()))
            try:
                yield scope
            finally:
                timer.cancel()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
