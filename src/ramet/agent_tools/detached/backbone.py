"""The stored tick that looks after runs which have still to report back: one at a time."""

from dataclasses import dataclass
from typing import Final

from ramet.agent_tools.detached.policy import CADENCE, next_index, next_tick_ms
from ramet.agent_tools.detached.ports import Waking
from ramet.agent_tools.run_store import RunStore
from ramet.core.clock import Clock
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonValue

TICK: Final = "_cfDetachedReconcileTick"
"""The internal handler that looks at all outstanding runs (AT-020)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backbone:
    """Arms the tick; there is never more than one (AT-238)."""

    waking: Waking
    runs: RunStore
    clock: Clock

    def hasten(self) -> None:
        """Have the next tick come soon; before a new run is registered (AT-236, AT-237)."""
        self._arm(0, self.clock.now_ms() + CADENCE[0] * 1000)
        failpoint("detached.armed")

    def keep(self) -> None:
        """Make sure that a tick is to come, and leave alone the one that is (AT-237, AT-281)."""
        if self.waking.woken_at(TICK) is None:
            self.hasten()

    def go_on(self, payload: JsonValue) -> None:
        """Arm the tick after the one that has come, or none when nothing is left (AT-239)."""
        outstanding = self.runs.outstanding()
        if not outstanding:
            self.waking.wake(TICK, None)
            return
        index = next_index(_index(payload))
        self._arm(index, next_tick_ms(outstanding, index=index, now=self.clock.now_ms()))
        failpoint("detached.tick_armed")

    def not_after(self, due_ms: int) -> None:
        """Have the next tick come at that moment if it would come later."""
        armed = self.waking.woken_at(TICK)
        if armed is None or armed > due_ms:
            self._arm(len(CADENCE) - 1, due_ms)

    def rest(self) -> None:
        """Take the tick back once nothing is left that it could do."""
        if self.waking.woken_at(TICK) is not None and not self.runs.outstanding():
            self.waking.wake(TICK, None)

    def _arm(self, index: int, due_ms: int) -> None:
        payload: JsonValue = {"cadenceIndex": index}
        self.waking.wake(TICK, due_ms, payload=payload, delay=CADENCE[index])


def _index(payload: JsonValue) -> int:
    stored = payload.get("cadenceIndex") if isinstance(payload, dict) else None
    return stored if isinstance(stored, int) else 0
