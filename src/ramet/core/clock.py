"""The one place that reads the time and waits; tests put a manual clock in its place."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forget the call; harmless when it was made already."""
        ...


class Clock(Protocol):
    """Time as ramet sees it: everything that waits or stamps asks here (D37)."""

    def now_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Call `call` in the event loop after `seconds`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Cancel the block after `seconds` and raise `TimeoutError`; None means never."""
        ...


class SystemClock:
    """The machine's own clock and the running event loop's timers."""

    def now_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Call `call` in the event loop after `seconds`."""
        return asyncio.get_running_loop().call_later(seconds, call)

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Cancel the block after `seconds` and raise `TimeoutError`; None means never."""
        return asyncio.timeout(seconds)
