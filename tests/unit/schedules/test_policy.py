"""When schedules are due, computed: delays, dates, cron lines, intervals, hung ones, pauses."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.errors import InvalidArguments, InvalidSchedule
from ramet.schedules.policy import (
    bounds_of,
    hung_at_ms,
    interval_timing,
    next_sign_ms,
    next_time,
    pause_ms,
    suspicious,
    timing_of,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
ROME = timezone(timedelta(hours=1))


def epoch(*date: int) -> int:
    return round(datetime(*date, tzinfo=UTC).timestamp())  # type: ignore[misc, arg-type] # y, m, d, …


@pytest.mark.behaviour("SC-002", "D33")
@given(
    st.integers(min_value=0, max_value=4_000_000_000_000),
    st.one_of(
        st.integers(min_value=0, max_value=10**9),
        st.floats(min_value=0, max_value=1e9),
        st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)),
    ),
)
def test_a_delay_is_never_early_and_less_than_a_second_late(
    now_ms: int, delay: float | timedelta
) -> None:
    timing = timing_of(delay, now_ms)
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    assert timing.type == "delayed"
    assert timing.delay_in_seconds == seconds
    assert -0.001 < timing.time * 1000 - (now_ms + seconds * 1000) < 1000.001


@pytest.mark.behaviour("SC-002", "D33")
@pytest.mark.parametrize(
    ("now_ms", "delay", "time"),
    [(1_000, 0, 1), (1_001, 0, 2), (1_000, 1.5, 3), (1_999, 0.001, 2), (1_000, 2.3, 4)],
)
def test_a_due_time_is_rounded_up(now_ms: int, delay: float, time: int) -> None:
    assert timing_of(delay, now_ms).time == time


@pytest.mark.behaviour("SC-003", "D33")
@pytest.mark.parametrize(
    ("date", "time"),
    [
        (datetime(2026, 12, 1, 8, 30, tzinfo=UTC), epoch(2026, 12, 1, 8, 30)),
        (datetime(2026, 12, 1, 8, 30, tzinfo=ROME), epoch(2026, 12, 1, 7, 30)),
        (datetime(2026, 12, 1, 8, 30, 0, 1, tzinfo=UTC), epoch(2026, 12, 1, 8, 30, 1)),
        (datetime(2001, 1, 1, tzinfo=UTC), epoch(2001, 1, 1)),
    ],
)
def test_a_date_is_due_at_its_second_rounded_up(date: datetime, time: int) -> None:
    timing = timing_of(date, NOW_MS)
    assert (timing.type, timing.time) == ("scheduled", time)


@pytest.mark.behaviour("SC-004")
@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("* * * * *", epoch(2026, 11, 30, 12, 1)),
        ("0 12 * * *", epoch(2026, 12, 1, 12)),
        ("*/15 9-17 * * MON-FRI", epoch(2026, 11, 30, 12, 15)),
        ("0 0 1 1 *", epoch(2027, 1, 1)),
        ("0 0 29 2 *", epoch(2028, 2, 29)),
        ("30 6 L * *", epoch(2026, 12, 31, 6, 30)),
        ("  5   4 * * sun ", epoch(2026, 12, 6, 4, 5)),
    ],
)
def test_a_cron_line_is_due_at_its_next_match_in_utc(line: str, time: int) -> None:
    timing = timing_of(line, NOW_MS)
    assert (timing.type, timing.cron, timing.time) == ("cron", line, time)


@pytest.mark.behaviour("SC-006")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "it has 0 fields, not 5"),
        ("tomorrow", "it has 1 fields, not 5"),
        ("* * * * * *", "it has 6 fields, not 5"),
        ("60 * * * *", "Bad minute"),
        ("* 24 * * *", "Bad hour"),
        ("* * 32 * *", "Bad day-of-month"),
        ("* * 30 2 *", "Bad day-of-month"),
        ("* * * 13 *", "Bad month"),
        ("* * * * 8", "Bad day-of-week"),
        ("*/0 * * * *", "Bad minute"),
        ("5-1 * * * *", "Bad minute"),
        ("x * * * *", "Bad minute"),
        ("* * * * \u00b2L", "Bad day-of-week"),
    ],
)
def test_a_wrong_cron_line_is_refused_with_the_reason(line: str, reason: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        timing_of(line, NOW_MS)
    assert str(caught.value) == f"{line!r} is not a cron line: {reason}"


@pytest.mark.behaviour("SC-006")
def test_a_cron_line_that_never_comes_is_refused() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        timing_of("0 0 */31 * 1#5", NOW_MS)
    assert str(caught.value) == "'0 0 */31 * 1#5' names no moment of the next 50 years"


@pytest.mark.behaviour("SC-006")
@given(st.text(max_size=20))
def test_any_text_is_a_cron_line_or_refused_by_name(text: str) -> None:
    told = ""
    try:
        time = timing_of(text, NOW_MS).time
    except InvalidSchedule as error:
        time, told = 0, str(error)
    assert time > NOW_MS // 1000 or repr(text) in told


@pytest.mark.behaviour("SC-006")
@pytest.mark.parametrize(
    "delay", [-1, -0.001, math.nan, math.inf, -math.inf, timedelta(-1), 10**400]
)
def test_a_delay_below_zero_or_without_end_is_refused(delay: float | timedelta) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        timing_of(delay, NOW_MS)
    assert str(caught.value) == f"A delay must be zero or more seconds, not {delay!r}"


@pytest.mark.behaviour("SC-006")
@pytest.mark.parametrize("delay", [1e300, 300_000_000_000, timedelta.max])
def test_nothing_is_due_after_the_year_9999(delay: float | timedelta) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        timing_of(delay, NOW_MS)
    assert str(caught.value) == f"Nothing can be due after the year 9999: {delay!r}"


@pytest.mark.behaviour("SC-006")
def test_a_date_without_a_time_zone_is_refused() -> None:
    date = datetime(2026, 12, 1)  # noqa: DTZ001 - wrong on purpose
    with pytest.raises(InvalidSchedule) as caught:
        timing_of(date, NOW_MS)
    assert str(caught.value) == f"A date must say its time zone: {date!r}"


@pytest.mark.behaviour("SC-006")
@pytest.mark.parametrize("when", [None, True, b"* * * * *", [5], {}, NOW.date(), 1j])
def test_any_other_time_is_refused(when: object) -> None:
    with pytest.raises(InvalidArguments) as caught:
        timing_of(when, NOW_MS)
    assert str(caught.value) == (
        "A schedule is due after seconds or a timedelta, at an aware datetime or by a cron line, "
        f"not {when!r}"
    )


@pytest.mark.behaviour("SC-005")
@pytest.mark.parametrize(
    ("every", "seconds", "time"),
    [
        (60, 60, epoch(2026, 11, 30, 12, 1)),
        (0.5, 0.5, epoch(2026, 11, 30, 12, 0, 1)),
        (timedelta(minutes=2), 120, epoch(2026, 11, 30, 12, 2)),
        (2_592_000, 2_592_000, epoch(2026, 12, 30, 12)),
    ],
)
def test_an_interval_is_due_after_its_seconds(
    every: float | timedelta, seconds: float, time: int
) -> None:
    timing = interval_timing(every, NOW_MS)
    assert (timing.type, timing.interval_seconds, timing.time) == ("interval", seconds, time)


@pytest.mark.behaviour("SC-005")
@pytest.mark.parametrize(
    "every", [0, -1, math.nan, math.inf, 2_592_000.5, timedelta(0), timedelta(days=31), 10**400]
)
def test_an_interval_that_is_not_above_zero_or_too_long_is_refused(
    every: float | timedelta,
) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        interval_timing(every, NOW_MS)
    assert str(caught.value) == (
        f"An interval must be above zero and at most 2592000 seconds, not {every!r}"
    )


@pytest.mark.behaviour("SC-005")
@pytest.mark.parametrize("every", [None, "60", True, NOW])
def test_an_interval_that_is_no_time_is_refused(every: object) -> None:
    with pytest.raises(InvalidArguments) as caught:
        interval_timing(every, NOW_MS)
    assert str(caught.value) == f"An interval is in seconds or a timedelta, not {every!r}"


@pytest.mark.behaviour("SC-016", "SC-017", "SC-018")
def test_what_comes_after_an_execution_depends_on_the_kind() -> None:
    ended_ms = NOW_MS + 90_500
    assert next_time(timing_of(5, NOW_MS), ended_ms) is None
    assert next_time(timing_of(NOW, NOW_MS), ended_ms) is None
    assert next_time(timing_of("* * * * *", NOW_MS), ended_ms) == epoch(2026, 11, 30, 12, 2)
    assert next_time(interval_timing(10, NOW_MS), ended_ms) == epoch(2026, 11, 30, 12, 1, 40)


@pytest.mark.behaviour("SC-018")
@pytest.mark.parametrize("took_ms", [0, 1, 30, 999])
def test_a_short_call_keeps_the_period_of_its_interval(took_ms: int) -> None:
    timing = interval_timing(5, NOW_MS)
    assert next_time(timing, timing.time * 1000 + took_ms) == timing.time + 5


@pytest.mark.behaviour("SC-021", "SC-022")
def test_an_execution_is_hung_after_its_time_and_at_once_without_a_start() -> None:
    assert hung_at_ms(100, 30.0) == 130_000
    assert hung_at_ms(100, 0.5) == 100_500
    assert hung_at_ms(None, 30.0) == 0
    assert hung_at_ms(100, math.inf) is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**5))
def test_the_next_sign_of_life_is_ahead_and_at_most_one_period_away(
    start: int, passed: int, every: int
) -> None:
    now = start + passed
    sign = next_sign_ms(start, now, every_ms=every)
    assert now < sign <= now + every
    assert (sign - start) % every == 0


@pytest.mark.behaviour("SC-049")
def test_pauses_grow_to_five_minutes() -> None:
    assert [pause_ms(n) for n in (1, 2, 3, 9, 10, 10_000)] == [
        1_000,
        2_000,
        4_000,
        256_000,
        300_000,
        300_000,
    ]


@pytest.mark.behaviour("SC-030")
def test_ten_of_a_callback_are_suspicious_without_those_that_have_begun() -> None:
    due = {"nine": 9, "ten": 10, "begun": 12}
    assert suspicious(due, {"begun": 3}) == {"ten": 10}


def test_a_range_is_of_whole_seconds_inside_it() -> None:
    start = datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    end = datetime(2026, 1, 1, 0, 0, 5, 999_999, tzinfo=UTC)
    assert bounds_of((start, end)) == (epoch(2026, 1, 1) + 1, epoch(2026, 1, 1) + 5)
    first, last = bounds_of(None)
    assert first < 0 < last
