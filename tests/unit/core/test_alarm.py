"""The alarm of a root: the earliest of all, written before what it is for, kept until done."""

import pytest

from ramet.core.alarm import Alarm
from tests.support.one_root import Index


class Feature:
    """Waits for one moment and notes when it was woken."""

    def __init__(self, alarm: Alarm, due_ms: int | None = None) -> None:
        self.due_ms = due_ms
        self.woken = 0
        alarm.add(next_due=lambda: self.due_ms, handle=self.handle)

    async def handle(self) -> None:
        self.woken += 1
        self.due_ms = None


@pytest.mark.behaviour("SC-031")
async def test_the_alarm_is_the_earliest_of_all_features_and_gone_when_none_waits() -> None:
    index = Index()
    alarm = Alarm(index)
    one, other = Feature(alarm, 5_000), Feature(alarm, 3_000)
    alarm.rearm()
    assert index.due_ms == 3_000
    other.due_ms = None
    alarm.rearm()
    assert index.due_ms == 5_000
    await alarm.fire()
    assert (one.woken, other.woken) == (1, 1)
    assert index.due_ms is None


@pytest.mark.behaviour("D6")
def test_a_promise_never_puts_off_an_earlier_moment_that_a_new_instance_does_not_know_of() -> None:
    index = Index(due_ms=1_000)
    Alarm(index).promise(9_000)
    assert index.due_ms == 1_000
    Alarm(index).promise(500)
    assert index.due_ms == 500


@pytest.mark.behaviour("D6")
async def test_the_index_keeps_the_moment_that_has_come_until_all_handlers_are_through() -> None:
    index = Index(due_ms=1_000)
    alarm = Alarm(index)
    feature = Feature(alarm)
    seen: list[int | None] = []

    async def promise() -> None:
        alarm.promise(9_000)
        alarm.rearm()
        seen.append(index.due_ms)
        feature.due_ms = 9_000

    alarm.add(next_due=lambda: None, handle=promise)
    await alarm.fire()
    assert seen == [1_000]
    assert index.due_ms == 9_000


async def test_a_handler_that_fails_leaves_the_moment_in_the_index() -> None:
    index = Index(due_ms=1_000)
    alarm = Alarm(index)

    async def fail() -> None:
        raise OSError("disk")

    alarm.add(next_due=lambda: None, handle=fail)
    with pytest.raises(OSError, match="disk"):
        await alarm.fire()
    assert index.due_ms == 1_000


def test_an_alarm_that_stands_is_not_written_again() -> None:
    index = Index()
    alarm = Alarm(index)
    Feature(alarm, 5_000)
    alarm.rearm()
    alarm.rearm()
    alarm.promise(6_000)
    assert index.history == [5_000]
