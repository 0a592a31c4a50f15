"""Trying again: how often, after how long, and with which options."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.ids import Ids
from ramet.core.options import RetryOptions
from ramet.core.retry import (
    Retrier,
    complete_retry,
    delay_bound_ms,
    delay_ms,
    dump_retry,
    load_retry,
    whole_attempts,
)
from ramet.errors import InvalidOptions
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet


class Flaky:
    """Fails a number of times, then succeeds."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.attempts: list[int] = []

    async def __call__(self, attempt: int) -> str:
        self.attempts.append(attempt)
        if len(self.attempts) <= self.failures:
            raise ValueError(f"attempt {attempt}")
        return "done"


class Rig:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.retrier = Retrier(clock=self.clock, ids=Ids.seeded(1))

    async def finish(self, task: "asyncio.Task[str]") -> str:
        while not task.done():
            await quiet()
            wait = self.clock.next_due()
            if wait is not None:
                self.clock.move(wait)
        return task.result()

    async def run(self, flaky: Flaky, options: RetryOptions) -> str:
        loop = asyncio.get_running_loop()
        return await self.finish(loop.create_task(self.retrier.run(flaky, options)))


@pytest.mark.behaviour("RT-001")
async def test_attempts_are_numbered_from_one_until_one_succeeds() -> None:
    flaky = Flaky(failures=2)
    assert await Rig().run(flaky, RetryOptions()) == "done"
    assert flaky.attempts == [1, 2, 3]


@pytest.mark.behaviour("RT-001")
async def test_the_last_error_is_raised() -> None:
    with pytest.raises(ValueError, match="attempt 3"):
        await Rig().run(Flaky(failures=9), RetryOptions())


@pytest.mark.behaviour("RT-002", "D37")
@given(
    st.integers(min_value=1, max_value=5_000),
    st.floats(min_value=0, max_value=1, exclude_max=True),
    st.floats(min_value=1e-9, max_value=1e9),
    st.floats(min_value=1e-9, max_value=1e9),
)
def test_a_delay_is_a_whole_number_below_the_doubled_base_and_the_maximum(
    attempt: int, chance: float, base: float, most: float
) -> None:
    bound = delay_bound_ms(attempt, base_delay=base, max_delay=most)
    assert bound <= most * 1000
    assert attempt > 60 or bound == min(2**attempt * base, most) * 1000
    delay = delay_ms(attempt, chance, base_delay=base, max_delay=most)
    assert isinstance(delay, int)
    assert 0 <= delay < bound or (delay == 0 and bound < 1)


@pytest.mark.behaviour("RT-002")
def test_the_first_delays_with_the_default_options() -> None:
    bounds = [delay_bound_ms(n, base_delay=0.1, max_delay=3.0) for n in (1, 2, 3, 4, 5)]
    assert bounds == [200, 400, 800, 1600, 3000]


@pytest.mark.behaviour("RT-002", "D37")
async def test_the_delay_is_waited_for_on_the_injected_clock() -> None:
    rig = Rig()
    flaky = Flaky(failures=1)
    task = asyncio.get_running_loop().create_task(
        rig.retrier.run(flaky, RetryOptions(base_delay=10.0, max_delay=20.0))
    )
    await quiet()
    assert flaky.attempts == [1]
    wait = rig.clock.next_due()
    assert wait is not None
    assert 0 < wait < 20
    rig.clock.move(wait)
    assert await task == "done"


@pytest.mark.behaviour("RT-003")
async def test_the_predicate_is_asked_with_the_next_attempt_and_stops_at_once() -> None:
    asked: list[tuple[str, int]] = []

    def ask(error: Exception, attempt: int) -> bool:
        asked.append((str(error), attempt))
        return attempt != 3

    flaky, rig = Flaky(failures=9), Rig()
    options = RetryOptions(max_attempts=5)
    run = rig.retrier.run(flaky, options, should_retry=ask)
    with pytest.raises(ValueError, match="attempt 2"):
        await rig.finish(asyncio.get_running_loop().create_task(run))
    assert asked == [("attempt 1", 2), ("attempt 2", 3)]


@pytest.mark.behaviour("RT-003")
async def test_the_predicate_is_asked_before_each_of_five_attempts_but_the_first() -> None:
    asked: list[int] = []

    def ask(error: Exception, attempt: int) -> bool:
        asked.append(attempt)
        return True

    rig = Rig()
    run = rig.retrier.run(Flaky(9), RetryOptions(max_attempts=5), should_retry=ask)
    with pytest.raises(ValueError, match="attempt 5"):
        await rig.finish(asyncio.get_running_loop().create_task(run))
    assert asked == [2, 3, 4, 5]


async def test_a_cancelled_attempt_is_not_tried_again() -> None:
    attempts: list[int] = []

    async def hang(attempt: int) -> str:
        attempts.append(attempt)
        await asyncio.get_running_loop().create_future()
        return "never"

    task = asyncio.get_running_loop().create_task(Rig().retrier.run(hang, RetryOptions()))
    await quiet()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert attempts == [1]


@pytest.mark.behaviour("RT-005")
async def test_the_low_level_helper_leaves_out_a_fraction_of_an_attempt() -> None:
    flaky, rig = Flaky(failures=9), Rig()
    run = rig.retrier.run_up_to(2.9, flaky, base_delay=0.1, max_delay=3.0)
    with pytest.raises(ValueError, match="attempt 2"):
        await rig.finish(asyncio.get_running_loop().create_task(run))
    assert flaky.attempts == [1, 2]


@pytest.mark.behaviour("RT-005")
@pytest.mark.parametrize("attempts", [0.9, 0, -1, math.nan, math.inf])
def test_the_low_level_helper_refuses_less_than_one_attempt_and_no_end(attempts: float) -> None:
    with pytest.raises(InvalidOptions, match="attempts must be a finite number, 1 or more, not"):
        whole_attempts(attempts)


@pytest.mark.behaviour("RT-004", "RT-005")
@pytest.mark.parametrize("attempts", [0, -1, 2.5, math.nan, math.inf, True, "3"])
def test_options_refuse_attempts_that_are_no_whole_number_above_zero(attempts: object) -> None:
    made: dict[str, object] = {"max_attempts": attempts}
    with pytest.raises(InvalidOptions) as caught:
        RetryOptions(**made)  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == (
        f"max_attempts must be a whole number, 1 or more, not {attempts!r}"
    )


@pytest.mark.behaviour("RT-004")
@pytest.mark.parametrize("name", ["base_delay", "max_delay"])
@pytest.mark.parametrize("delay", [0.0, -1.0, math.nan, math.inf, True, "1"])
def test_options_refuse_delays_that_are_no_finite_number_above_zero(
    name: str, delay: object
) -> None:
    made: dict[str, object] = {name: delay}
    with pytest.raises(InvalidOptions) as caught:
        RetryOptions(**made)  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == f"{name} must be a positive number of seconds, not {delay!r}"


@pytest.mark.behaviour("RT-004")
def test_what_an_item_leaves_out_comes_from_the_class_and_must_fit_it() -> None:
    patient = RetryOptions(max_attempts=7, base_delay=0.5, max_delay=10.0)
    assert complete_retry(RetryOptions(max_attempts=2), patient) == RetryOptions(
        max_attempts=2, base_delay=0.5, max_delay=10.0
    )
    hasty = RetryOptions(max_delay=1.0)
    with pytest.raises(InvalidOptions) as caught:
        complete_retry(RetryOptions(base_delay=2.0), hasty)
    assert str(caught.value) == "base_delay 2.0 is above max_delay 1.0"


@pytest.mark.behaviour("RT-004")
def test_options_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidOptions) as caught:
        complete_retry({"max_attempts": 2}, RetryOptions())
    assert str(caught.value) == "retry must be RetryOptions, not {'max_attempts': 2}"


@pytest.mark.behaviour("RT-006", "D33")
def test_options_are_stored_in_milliseconds_and_come_back_as_they_were() -> None:
    options = RetryOptions(max_attempts=5, base_delay=0.25, max_delay=1.5)
    stored = dump_retry(options)
    assert stored == '{"maxAttempts":5,"baseDelayMs":250.0,"maxDelayMs":1500.0}'
    assert load_retry(stored) == options
    assert dump_retry(None) is None


@pytest.mark.parametrize("stored", [None, "", "[]", "{", '{"maxAttempts":0}', "null"])
def test_stored_options_that_are_of_no_use_are_none(stored: str | None) -> None:
    assert load_retry(stored) is None


def test_stored_options_that_make_no_sense_are_none() -> None:
    assert load_retry('{"maxAttempts":0,"baseDelayMs":1,"maxDelayMs":1}') is None
