"""What a queued call is to the code that queued it and to the method it calls."""

from dataclasses import dataclass

from ramet.core.json import JsonValue
from ramet.core.options import RetryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """A method that will be called as soon as those queued before it have been."""

    id: str
    callback: str
    """The name of the method."""
    payload: JsonValue
    created_at: int
    """When it was queued, in seconds since the epoch."""
    retry: RetryOptions | None = None
    """How it is retried; None for as the class says."""
