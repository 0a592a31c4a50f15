"""What a schedule is to the code that made it and to the method it calls."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from ramet.core.json import JsonValue
from ramet.core.options import RetryOptions

ScheduleType: TypeAlias = Literal["scheduled", "delayed", "cron", "interval"]

SCHEDULE_TYPES: tuple[ScheduleType, ...] = ("scheduled", "delayed", "cron", "interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A method that will be called later, once or again and again."""

    id: str
    callback: str
    """The name of the method."""
    payload: JsonValue
    type: ScheduleType
    """"scheduled" for a date, "delayed" for a delay; "cron" and "interval" repeat."""
    time: int
    """When it is due next, in seconds since the epoch."""
    retry: RetryOptions | None = None
    """How it is retried; None for as the class says."""
    delay_in_seconds: float | None = None
    cron: str | None = None
    interval_seconds: float | None = None

    @property
    def due_at(self) -> datetime:
        """When it is due next."""
        return datetime.fromtimestamp(self.time, tz=UTC)
