"""When schedules are due, and whether one that is marked as running may run: decided, not done."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeGuard

from ramet.errors import InvalidArguments, InvalidSchedule
from ramet.schedules.cron import next_match
from ramet.schedules.records import ScheduleType

LONGEST_INTERVAL = 30 * 86_400
"""Seconds between two calls at most."""
LAST_SECOND = 253_402_300_799
"""The end of the year 9999; nothing can be due later."""
MANY_ALIKE = 10
"""How many one-shot schedules of one callback may be due at once before that looks like a fault."""
LONGEST_PAUSE_MS = 300_000
"""The longest wait before a sub-agent that cannot be reached is tried again."""
LONGEST_WAKING = 120
"""Features have themselves woken no more seconds away than this: more is a clock set back."""

_LARGEST_EXPONENT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When something is due first, and the form in which that was said."""

    type: ScheduleType
    time: int
    """Seconds since the epoch, rounded up: never early (D33)."""
    delay_in_seconds: float | None = None
    cron: str | None = None
    interval_seconds: float | None = None

    @property
    def once(self) -> bool:
        """Whether it is due a single time."""
        return self.type in {"scheduled", "delayed"}


def timing_of(when: object, now_ms: int) -> Timing:
    """Read the time of a schedule: seconds, a `timedelta`, an aware `datetime` or a cron line.

    Raises:
        InvalidSchedule: No schedule can have that time.
        InvalidArguments: It is none of these.
    """
    match when:
        case str():
            time = next_match(when, now_ms // 1000)
            return Timing(type="cron", time=time, cron=when)
        case datetime():
            return Timing(type="scheduled", time=_date(when))
        case timedelta() | int() | float() if not isinstance(when, bool):
            seconds = _number(when)
            if not (math.isfinite(seconds) and seconds >= 0):
                raise InvalidSchedule(f"A delay must be zero or more seconds, not {when!r}")
            time = _checked(_seconds_up(now_ms + seconds * 1000), when)
            return Timing(type="delayed", time=time, delay_in_seconds=seconds)
    raise InvalidArguments(
        "A schedule is due after seconds or a timedelta, at an aware datetime or by a cron line, "
        f"not {when!r}"
    )


def interval_timing(every: object, now_ms: int) -> Timing:
    """Read the time between two calls: seconds or a `timedelta`.

    Raises:
        InvalidSchedule: It is not above zero, or longer than 30 days.
        InvalidArguments: It is no time at all.
    """
    if isinstance(every, bool) or not isinstance(every, int | float | timedelta):
        raise InvalidArguments(f"An interval is in seconds or a timedelta, not {every!r}")
    seconds = _number(every)
    if not 0 < seconds <= LONGEST_INTERVAL:
        raise InvalidSchedule(
            f"An interval must be above zero and at most {LONGEST_INTERVAL} seconds, not {every!r}"
        )
    return Timing(type="interval", time=_after(now_ms, seconds), interval_seconds=seconds)


def next_time(timing: Timing, completed_ms: int) -> int | None:
    """When a schedule that was carried out is due again; None when it is done with (SC-016 ff.).

    An interval counts from the whole second in which its call ended, so that a short call keeps
    the period: every 5 seconds is not every 6.
    """
    if timing.cron is not None:
        return next_match(timing.cron, completed_ms // 1000)
    if timing.interval_seconds is not None:
        return _after(completed_ms // 1000 * 1000, timing.interval_seconds)
    return None


def hung_at_ms(started: int | None, timeout: float) -> int | None:
    """When an execution counts as hung: at once without a start, never without a limit (SC-021)."""
    if started is None:
        return 0
    return None if math.isinf(timeout) else started * 1000 + math.ceil(timeout * 1000)


def next_sign_ms(started_ms: int, now_ms: int, *, every_ms: int) -> int:
    """The first moment after now that is a multiple of `every_ms` away from a start."""
    passed = max(0, now_ms - started_ms) // every_ms
    return started_ms + (passed + 1) * every_ms


def pause_ms(failures: int) -> int:
    """How long to leave a row alone whose owner could not be reached that often in a row."""
    return int(min(LONGEST_PAUSE_MS, 1000 * 2 ** min(failures - 1, _LARGEST_EXPONENT)))


def suspicious(due: Mapping[str, int], begun: Mapping[str, int]) -> dict[str, int]:
    """Callbacks of which many one-shots are due that have not begun, with how many (SC-030)."""
    waiting = {callback: count - begun.get(callback, 0) for callback, count in due.items()}
    return {callback: count for callback, count in waiting.items() if count >= MANY_ALIKE}


def bounds_of(time_range: object) -> tuple[int, int]:
    """The whole seconds from a start to an end, both included; None for open ends.

    Raises:
        InvalidArguments: It is no pair of dates.
        InvalidSchedule: A date does not say its time zone.
    """
    match (None, None) if time_range is None else time_range:
        case (start, end) if _is_bound(start) and _is_bound(end):
            first = -LAST_SECOND if start is None else math.ceil(_epoch(start))
            last = LAST_SECOND if end is None else math.floor(_epoch(end))
            return first, last
    raise InvalidArguments(
        f"A time range is a pair of dates, either of which may be None, not {time_range!r}"
    )


def _is_bound(value: object) -> TypeGuard[datetime | None]:
    return value is None or isinstance(value, datetime)


def _date(when: datetime) -> int:
    return _checked(math.ceil(_epoch(when)), when)


def _epoch(moment: datetime) -> float:
    if moment.tzinfo is None:
        raise InvalidSchedule(f"A date must say its time zone: {moment!r}")
    return moment.timestamp()


def _number(value: float | timedelta) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _after(now_ms: int, seconds: float) -> int:
    return _seconds_up(now_ms + seconds * 1000)


def _seconds_up(moment_ms: float) -> int:
    return math.ceil(round(moment_ms, 3) / 1000) if math.isfinite(moment_ms) else LAST_SECOND + 1


def _checked(time: int, when: object) -> int:
    if time > LAST_SECOND:
        raise InvalidSchedule(f"Nothing can be due after the year 9999: {when!r}")
    return time
