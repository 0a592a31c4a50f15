"""Reads what a child's progress and milestone chunks say."""

from ramet.agent_tools.records import Milestone, Progress
from ramet.core.json import JsonObject, JsonValue, loads_object, text_at


def progress_of(body: str, *, at: int) -> Progress | None:
    """The signal as `on_progress` is told of it, at the parent's time; None if unreadable."""
    data = _data(body)
    if data is None:
        return None
    return Progress(
        fraction=_number(data.get("fraction")),
        message=text_at(data, "message"),
        phase=text_at(data, "phase"),
        milestone=text_at(data, "name"),
        data=data.get("data"),
        at=at,
    )


def milestone_of(body: str, *, at: int) -> Milestone | None:
    """The milestone as it is told of; None if unreadable. `at` stands in for a missing time."""
    data = _data(body)
    name = text_at(data, "name") if data else None
    if data is None or name is None:
        return None
    sequence, moment = data.get("sequence"), data.get("at")
    return Milestone(
        name=name,
        sequence=sequence if isinstance(sequence, int) else 0,
        at=moment if isinstance(moment, int) else at,
        fraction=_number(data.get("fraction")),
        message=text_at(data, "message"),
        phase=text_at(data, "phase"),
        data=data.get("data"),
    )


def milestone_key(body: str) -> str:
    """What tells one milestone of a run from another: its sequence, else all of it."""
    data = _data(body)
    sequence = data.get("sequence") if data else None
    return f"#{sequence}" if isinstance(sequence, int) else body


def _data(body: str) -> JsonObject | None:
    chunk = loads_object(body)
    data = chunk.get("data") if chunk else None
    return data if isinstance(data, dict) else None


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool):
        return None
    return value if isinstance(value, int | float) else None
