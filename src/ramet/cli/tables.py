"""Writes what people read in a terminal: tables, fields, moments and sizes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from ramet.core.json import JsonValue, dumps

NOTHING: Final = "-"
_GAP: Final = "  "


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows below headings, each column as wide as it has to be."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def fields(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with their values, one a line."""
    known = list(pairs)
    width = max((len(name) for name, _ in known), default=0)
    return "\n".join(f"{name.ljust(width)}{_GAP}{value}".rstrip() for name, value in known)


def text(value: JsonValue, most: int | None = None) -> str:
    """A value on one line that does nothing to a terminal, cut where it is too long."""
    if value is None:
        return NOTHING
    whole = value if isinstance(value, str) else dumps(value)
    line = "".join(char if char.isprintable() else " " for char in whole).strip()
    if most is not None and len(line) > most:
        return f"{line[: most - 1]}…"
    return line or NOTHING


def moment(value: JsonValue) -> str:
    """Epoch milliseconds as the time that the clock on the wall shows, with its UTC offset."""
    if not isinstance(value, int):
        return NOTHING
    try:
        local = datetime.fromtimestamp(value / 1000, tz=UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return "after the year 9999" if value > 0 else "before the year 1"
    return local.isoformat(sep=" ", timespec="seconds")


def span(begin: JsonValue, end: JsonValue) -> str:
    """How long something took, by two moments in epoch milliseconds."""
    if not isinstance(begin, int) or not isinstance(end, int):
        return NOTHING
    seconds = max(0, end - begin) / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours else f"{minutes}m {seconds}s"


def size(value: JsonValue) -> str:
    """A number of bytes."""
    number = value if isinstance(value, int) else 0
    return f"{number / 1024:,.0f} KiB"
