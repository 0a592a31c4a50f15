"""Decisions about fibers, pure: when to look again, what may be asked for, what an orphan is."""

from collections.abc import Iterable

from ramet.errors import InvalidArguments
from ramet.fibers.records import TERMINAL, FiberInspection

LONGEST_FOLLOW_UP_MS = 300_000
_LARGEST_EXPONENT = 20
_DELETED_BY_DEFAULT = frozenset({"completed", "aborted", "error"})


def follow_up_ms(*, interval: float, scans_without_progress: int) -> int:
    """How long to wait until interrupted fibers are looked for again (FB-019)."""
    exponent = min(scans_without_progress, _LARGEST_EXPONENT)
    return min(LONGEST_FOLLOW_UP_MS, round(interval * 1000) << exponent)


def check_name(value: str | None, *, what: str) -> None:
    """Refuse an id or key that is blank (FB-027)."""
    if value is not None and not value.strip():
        raise InvalidArguments(f"{what} must not be blank, not {value!r}")


def the_one(
    by_id: FiberInspection | None, by_key: FiberInspection | None, *, fiber_id: str | None
) -> FiberInspection | None:
    """The fiber that an id and a key both name.

    Raises:
        InvalidArguments: They name different fibers (FB-028).
    """
    if by_key is None:
        return by_id
    if by_id is None and fiber_id is None:
        return by_key
    if by_id is None or by_id.fiber_id != by_key.fiber_id:
        raise InvalidArguments(
            f"The fiber id {fiber_id!r} and the idempotency key {by_key.idempotency_key!r} "
            "name different fibers"
        )
    return by_id


def listed(status: str | Iterable[str] | None) -> frozenset[str]:
    """The statuses that a listing asks for; all of them for None."""
    if status is None:
        return TERMINAL | {"pending", "running"}
    return frozenset({status} if isinstance(status, str) else status)


def deletable(status: str | Iterable[str] | None) -> frozenset[str]:
    """The statuses of fibers that are deleted; those that are not over are left out (FB-038)."""
    return _DELETED_BY_DEFAULT if status is None else listed(status) & TERMINAL


def clamped(limit: int, most: int) -> int:
    """A limit between 1 and the most that may be asked for."""
    return max(1, min(limit, most))
