"""Has the agent woken while turns are under way: one that a crash cuts then goes on by itself."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from ramet.core.alarm import Alarm
from ramet.core.clock import Clock
from ramet.errors import StorageError

Wake: TypeAlias = Callable[[str, int | None], object]
"""Has an internal handler called at a moment, in place of the one before; None for never."""

RESUME_TURNS: Final = "_cf_resumeTurns"
"""The internal handler that opens a sub-agent whose turns were cut."""
RESUME_MS: Final = 30_000
"""While a turn is under way the agent is woken no further away than this: what a crash costs."""


class TurnWaking:
    """The stored wake-up of the turns of one chat.

    To open the agent is all that a lost turn needs. So a root has only its alarm set, which costs
    no row in its database; for a sub-agent a row stands at the root, which says whom to open.
    """

    def __init__(
        self, alarm: Alarm | None, wake: Wake, clock: Clock, *, under_way: Callable[[], bool]
    ) -> None:
        """Begin.

        Args:
            alarm: The agent's own; None below a root.
            wake: Keeps a row at the root; see `Schedules.wake`.
            clock: Says from when on 30 seconds count.
            under_way: Whether any turn still needs this process, or the next one.
        """
        self._promise = partial(wake, RESUME_TURNS) if alarm is None else alarm.promise
        self._take_back = partial(wake, RESUME_TURNS, None) if alarm is None else alarm.rearm
        self._clock = clock
        self._under_way = under_way
        self._due_ms: int | None = None

    def next_due(self) -> int | None:
        """When the agent is woken for its turns; None for never."""
        return self._due_ms

    def promise(self) -> None:
        """Have the agent woken should a crash come; before the turn is recorded (D6)."""
        if self._due_ms is None:
            due_ms = self._clock.now_ms() + RESUME_MS
            self._promise(due_ms)
            self._due_ms = due_ms

    def release(self) -> None:
        """Take the wake-up back when nothing is under way any more.

        One that cannot be taken back opens the agent once for nothing, which is harmless.
        """
        if self._due_ms is not None and not self._under_way():
            self._due_ms = None
            with suppress(StorageError):
                self._take_back()

    def renew(self) -> None:
        """Once it has come: be woken again as long as a turn is under way.

        One that is further away than it was ever promised has come too: the clock was set back.
        """
        now = self._clock.now_ms()
        if self._due_ms is not None and now < self._due_ms <= now + RESUME_MS:
            return
        self._due_ms = None
        if self._under_way():
            self.promise()
