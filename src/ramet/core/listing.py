"""What lists of stored things are narrowed by: a status, a moment, a limit."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Final

from ramet.core.json import without_surrogates
from ramet.errors import InvalidArguments

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def statuses(asked: str | Iterable[str] | None, known: AbstractSet[str]) -> frozenset[str]:
    """The statuses that are asked for; all that are known for None.

    Raises:
        InvalidArguments: There is no such status.
    """
    if asked is None:
        return frozenset(known)
    if not isinstance(asked, Iterable):
        raise InvalidArguments(f"status is one of the statuses or several, not {asked!r}")
    named = frozenset({asked} if isinstance(asked, str) else asked)
    for unknown in named - known:
        raise InvalidArguments(f"{unknown!r} is not one of the statuses {', '.join(sorted(known))}")
    return named


def bound_ms(moment: object, *, what: str) -> int | None:
    """The first epoch millisecond that is not before a moment (D34).

    Raises:
        InvalidArguments: It is no `datetime` with a time zone.
    """
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidArguments(f"{what} is a datetime with a time zone, not {moment!r}")
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def clamped(limit: object, most: int) -> int:
    """A limit, or the most that may be asked for.

    Raises:
        InvalidArguments: It is no whole number, or below 1: nothing would be asked for.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidArguments(f"limit is a whole number, 1 or more, not {limit!r}")
    return min(limit, most)


def check_text(value: object, *, what: str) -> None:
    """Refuse what names nothing: no text, or one that no database can carry.

    Raises:
        InvalidArguments: It is such a thing.
    """
    if not isinstance(value, str):
        raise InvalidArguments(f"{what} is a text, not {value!r}")
    if without_surrogates(value) != value:
        raise InvalidArguments(f"{what} holds half a character, which nothing can store: {value!r}")
