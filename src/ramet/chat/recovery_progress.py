"""Credits new content of answers to the durable counter that recovery is measured by (CR-008)."""

from typing import Final

from ramet.chat.recovery_store import RecoveryStore
from ramet.core.clock import Clock
from ramet.protocol import chunks

ALWAYS: Final = frozenset(
    {
        chunks.TEXT_START,
        chunks.REASONING_START,
        chunks.TOOL_INPUT_AVAILABLE,
        chunks.TOOL_OUTPUT_AVAILABLE,
        chunks.TOOL_OUTPUT_ERROR,
        chunks.TOOL_OUTPUT_DENIED,
    }
)
_DELTAS: Final = frozenset({chunks.TEXT_DELTA, chunks.REASONING_DELTA})
DELTA_SECONDS: Final = 5.0
"""Deltas count at most this often."""


class Credit:
    """Adds to the durable counter, at will or at most every few seconds."""

    def __init__(self, store: RecoveryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._credited: float | None = None

    def always(self) -> None:
        """Add one."""
        self._add(self._clock.monotonic())

    def now_and_then(self) -> None:
        """Add one unless that was done just now; the first counts always."""
        now = self._clock.monotonic()
        if self._credited is None or now - self._credited >= DELTA_SECONDS:
            self._add(now)

    def _add(self, now: float) -> None:
        self._credited = now
        self._store.add_progress()


class Progress:
    """Counts what one turn streams; what is sent or stored again is not shown to it."""

    def __init__(self, store: RecoveryStore, clock: Clock) -> None:
        self._credit = Credit(store, clock)

    def note(self, chunk_type: object) -> None:
        """Take note of a new chunk."""
        if chunk_type in _DELTAS:
            self._credit.now_and_then()
        elif chunk_type in ALWAYS:
            self._credit.always()
