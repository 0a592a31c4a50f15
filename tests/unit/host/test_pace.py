"""How much the host begins at once, by a clock that tells how far behind the event loop is."""

from ramet.host.pace import LATE_SECONDS, LOOK_SECONDS, TRICKLE_SECONDS, Pace
from ramet.testing import ManualClock

FEW, MOST = 4, 64


class Held(ManualClock):
    """A clock whose timers can be called too late, as in an event loop that is held up."""

    def hold_up(self, seconds: float) -> None:
        self._elapsed += seconds
        self.move(0)


class Work:
    """Begins as many as may begin; none of them ends by itself."""

    def __init__(self) -> None:
        self.clock = Held()
        self.pace = Pace(self.clock, few=FEW, most=MOST, begin=self.begin)
        self.waiting = 1_000
        self.working = 0

    def begin(self) -> None:
        while self.waiting and self.pace.may_begin(self.working):
            self.waiting -= 1
            self.working += 1
        if not self.waiting:
            self.pace.rest()

    def end(self, count: int) -> None:
        self.working -= count
        self.begin()

    def look_on_time(self) -> None:
        self.clock.move(LOOK_SECONDS)

    def look_late(self, seconds: float = 2 * LATE_SECONDS) -> None:
        self.clock.hold_up(LOOK_SECONDS + seconds)


def test_few_begin_at_once() -> None:
    work = Work()
    work.begin()
    assert work.working == FEW


def test_while_the_loop_keeps_up_more_begin_until_most_are_at_work() -> None:
    work = Work()
    work.begin()
    seen = []
    for _ in range(2 * MOST // FEW):
        work.look_on_time()
        seen.append(work.working)
    assert seen[:3] == [2 * FEW, 3 * FEW, 4 * FEW]
    assert seen[-1] == MOST


def test_as_one_ends_the_next_begins_also_in_a_loop_that_is_behind() -> None:
    work = Work()
    work.begin()
    work.look_late()
    assert work.working == FEW
    work.end(2)
    assert (work.working, work.waiting) == (FEW, 1_000 - FEW - 2)


def test_a_loop_that_is_behind_again_comes_back_to_few() -> None:
    work = Work()
    work.begin()
    work.look_on_time()
    work.look_on_time()
    assert work.working == 3 * FEW
    work.look_late()
    work.end(FEW)
    assert work.working == 2 * FEW
    work.end(FEW + 1)
    assert work.working == FEW


def test_hanging_work_holds_nothing_up_for_ever_in_a_loop_that_is_always_behind() -> None:
    work = Work()
    work.begin()
    for _ in range(2 * MOST):
        work.look_late(TRICKLE_SECONDS)
    assert work.working == MOST


def test_nothing_looks_at_the_clock_once_nothing_waits() -> None:
    work = Work()
    work.waiting = FEW + 1
    work.begin()
    work.look_on_time()
    assert (work.waiting, work.clock.next_due()) == (0, None)
    work.waiting = FEW
    work.working = 0
    work.begin()
    assert work.clock.next_due() is None


def test_all_places_taken_means_waiting_for_one_to_end() -> None:
    work = Work()
    work.working = MOST
    work.begin()
    assert work.clock.next_due() is None
    work.end(MOST)
    assert work.working == FEW
