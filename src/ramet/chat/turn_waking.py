"""Has the agent woken while turns are under way: one that a crash cuts then goes on by itself."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from ramet.core.clock import Clock
from ramet.errors import StorageError

Wake: TypeAlias = Callable[[str, int | None], object]
"""Has an internal handler called at a moment, in place of the one before; None for never."""

RESUME_TURNS: Final = "_cf_resumeTurns"
"""The internal handler that opens an agent whose turns were cut."""
RESUME_MS: Final = 30_000
"""While a turn is under way the agent is woken no further away than this: what a crash costs."""


class TurnWaking:
    """The stored wake-up of the turns of one chat.

    To open the agent is all that a lost turn needs, so what is woken does nothing but see to the
    next wake-up.
    """

    def __init__(self, wake: Wake, clock: Clock, *, under_way: Callable[[], bool]) -> None:
        """Begin.

        Args:
            wake: Kept by the root of the agent; see `Schedules.wake`.
            clock: Says from when on 30 seconds count.
            under_way: Whether any turn still needs this process, or the next one.
        """
        self._wake = wake
        self._clock = clock
        self._under_way = under_way
        self._stands = False

    def promise(self) -> None:
        """Have the agent woken should a crash come; before the turn is recorded (D6)."""
        if not self._stands:
            self._wake(RESUME_TURNS, self._clock.now_ms() + RESUME_MS)
            self._stands = True

    def release(self) -> None:
        """Take the wake-up back when nothing is under way any more.

        One that cannot be taken back opens the agent once for nothing, which is harmless.
        """
        if self._stands and not self._under_way():
            self._stands = False
            with suppress(StorageError):
                self._wake(RESUME_TURNS, None)

    async def woken(self) -> None:
        """Be woken again as long as a turn is under way; the handler `RESUME_TURNS`."""
        self._stands = False
        if self._under_way():
            self.promise()
