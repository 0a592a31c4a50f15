"""How much the host begins at once: little while its event loop is behind, more while it is not."""

from collections.abc import Callable

from ramet.core.clock import Clock, Timer

LOOK_SECONDS = 0.01
"""The event loop is looked at that often while something waits to begin."""
LATE_SECONDS = 0.005
"""A look that comes so much too late shows a loop that has enough to do."""
TRICKLE_SECONDS = 0.1
"""However late it is, one more begins after this time: those at work may hang."""


class Pace:
    """Lets work begin so that what users ask for meanwhile comes soon.

    Each thing at work adds its step to every round of the event loop, and a new user waits for
    several rounds. More at once only helps when those at work wait for something else.
    """

    def __init__(self, clock: Clock, *, few: int, most: int, begin: Callable[[], object]) -> None:
        self._clock = clock
        self._few = few
        self._most = most
        self._begin = begin
        """Called when more may begin; asks `may_begin` before each."""
        self._allowed = few
        self._working = 0
        self._timer: Timer | None = None
        self._look_due = 0.0
        self._held_since = 0.0

    def may_begin(self, working: int) -> bool:
        """Whether one more may begin beside so many at work; if not, `begin` is called in time."""
        self._working = working
        if working < self._allowed:
            return True
        if self._timer is None and working < self._most:
            self._held_since = self._clock.monotonic()
            self._look_later()
        return False

    def rest(self) -> None:
        """Nothing waits to begin."""
        self._allowed = self._few
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._look_due = self._clock.monotonic() + LOOK_SECONDS
        self._timer = self._clock.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if now - self._look_due < LATE_SECONDS:
            self._allowed = min(self._most, max(self._allowed, self._working) + self._few)
        elif now - self._held_since >= TRICKLE_SECONDS:
            self._allowed = min(self._most, self._working + 1)
        else:
            self._allowed = self._few
            self._look_later()
            return
        self._timer = None
        self._begin()
