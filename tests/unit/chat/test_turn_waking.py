"""The wake-up that stands while turns are under way."""

import pytest

from ramet.chat.turn_waking import RESUME_MS, TurnWaking
from ramet.testing import ManualClock

DAY_MS = 86_400_000


class Woken:
    """What a sub-agent has had itself woken for."""

    def __init__(self) -> None:
        self.due_ms: int | None = None

    def __call__(self, handler: str, due_ms: int | None) -> None:
        self.due_ms = due_ms


@pytest.mark.parametrize("back", [0, DAY_MS])
def test_it_stands_near_after_it_has_come_also_when_the_wall_clock_was_set_back(back: int) -> None:
    clock, woken = ManualClock(), Woken()
    waking = TurnWaking(None, woken, clock, under_way=lambda: True)
    waking.promise()
    clock._start_ms -= back
    clock._start_ms += RESUME_MS if not back else 0
    woken.due_ms = None  # it has come
    waking.renew()
    assert woken.due_ms == waking.next_due() == clock.now_ms() + RESUME_MS


def test_it_is_left_alone_while_it_is_still_to_come() -> None:
    clock, woken = ManualClock(), Woken()
    waking = TurnWaking(None, woken, clock, under_way=lambda: True)
    waking.promise()
    woken.due_ms = None
    clock._start_ms += RESUME_MS - 1
    waking.renew()
    assert woken.due_ms is None
