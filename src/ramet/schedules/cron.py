"""Reads cron lines: minute, hour, day of the month, month and day of the week, in UTC."""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from ramet.errors import InvalidSchedule

_FIELDS = 5


def next_match(line: str, after: int) -> int:
    """The first second after `after` (seconds since the epoch) that a cron line names.

    Raises:
        InvalidSchedule: The line is wrong, or names no moment that ever comes.
    """
    fields = len(line.split())
    if fields != _FIELDS:
        raise InvalidSchedule(f"{line!r} is not a cron line: it has {fields} fields, not {_FIELDS}")
    try:
        found = next(CronSim(line, datetime.fromtimestamp(after, tz=UTC)), None)
    except CronSimError as error:
        raise InvalidSchedule(f"{line!r} is not a cron line: {error}") from error
    if found is None:
        raise InvalidSchedule(f"{line!r} names no moment of the next 50 years")
    return round(found.timestamp())
