"""How long a run that is followed again may stay silent, and how long all of that may take."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from ramet.core.clock import Clock, Timer

GaveUp: TypeAlias = Literal["no-progress", "window-exceeded"]


class Patience:
    """Breaks a wait off after a silence, or when it has taken too long in all (AT-305 … AT-316).

    An infinite limit is none, and so is a window of zero; what comes through only takes note of the
    time.
    """

    def __init__(self, clock: Clock, *, idle: float, window: float) -> None:
        """Begin now: `idle` seconds of silence, `window` seconds over all attempts."""
        self._clock = clock
        self._idle = idle
        self._last = clock.monotonic()
        self._ends = self._last + (window or math.inf)

    def beat(self) -> None:
        """Take note that something came, or that the child is followed anew."""
        self._last = self._clock.monotonic()

    def spent(self) -> GaveUp | None:
        """Which limit is over; the window counts first."""
        now = self._clock.monotonic()
        if now >= self._ends:
            return "window-exceeded"
        return "no-progress" if now >= self._last + self._idle else None

    @contextmanager
    def limiting(self) -> Iterator[None]:
        """Break the block off when a limit is over.

        Raises:
            TimeoutError: One is; `spent` says which.
        """
        task = asyncio.current_task()
        assert task is not None
        before, fired = task.cancelling(), False
        timer: Timer | None = None

        def look() -> None:
            nonlocal fired, timer
            due = min(self._last + self._idle, self._ends) - self._clock.monotonic()
            if due <= 0:
                fired = True
                task.cancel()
            elif not math.isinf(due):
                timer = self._clock.call_later(due, look)

        look()
        try:
            yield
        except asyncio.CancelledError:
            if fired and task.uncancel() <= before:
                raise TimeoutError from None
            raise
        finally:
            if timer is not None:
                timer.cancel()
