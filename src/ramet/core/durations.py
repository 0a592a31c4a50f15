"""Durations as users write them: seconds as a number, or a `timedelta`."""

import math
from datetime import timedelta

Duration = float | timedelta


def seconds_of(value: Duration, *, name: str) -> float:
    """Turn a duration into seconds; infinity is allowed.

    Raises:
        ValueError: The duration is negative or not a number.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"{name} must be zero or more seconds, not {value!r}")
    return seconds
