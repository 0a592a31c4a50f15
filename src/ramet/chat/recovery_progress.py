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


class Progress:
    """Counts what one turn streams; what is sent or stored again is not shown to it."""

    def __init__(self, store: RecoveryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._credited: float | None = None

    def note(self, chunk_type: object) -> None:
        """Take note of a new chunk."""
        if chunk_type in _DELTAS:
            now = self._clock.monotonic()
            if self._credited is not None and now - self._credited < DELTA_SECONDS:
                return
            self._credit(now)
        elif chunk_type in ALWAYS:
            self._credit(self._clock.monotonic())

    def _credit(self, now: float) -> None:
        self._credited = now
        self._store.add_progress()
