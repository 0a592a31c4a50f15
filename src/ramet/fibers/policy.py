"""Decisions about fibers, pure: when to look again, what may be asked for, what wraps what."""

from collections.abc import Iterable

from ramet.core.json import JsonValue
from ramet.core.listing import check_text, statuses
from ramet.errors import InvalidArguments
from ramet.fibers.records import TERMINAL, FiberInspection, FrameworkSnapshot

LONGEST_FOLLOW_UP_MS = 300_000
_LARGEST_EXPONENT = 20
_ALL = TERMINAL | {"pending", "running"}
_DELETED_BY_DEFAULT = frozenset({"completed", "aborted", "error"})


def follow_up_ms(*, interval: float, scans_without_progress: int) -> int:
    """How long to wait until interrupted fibers are looked for again (FB-019)."""
    exponent = min(scans_without_progress, _LARGEST_EXPONENT)
    return min(LONGEST_FOLLOW_UP_MS, round(interval * 1000) << exponent)


def check_work(name: object, function: object) -> None:
    """Refuse a fiber without a name or a function."""
    check_text(name, what="A fiber's name")
    if not callable(function):
        raise InvalidArguments(
            f"The fiber {name!r} needs a function that takes its context, not {function!r}"
        )


def check_id(value: object, *, what: str) -> None:
    """Refuse an id or key that is blank (FB-027)."""
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise InvalidArguments(f"{what} must be a text that is not blank, not {value!r}")
    if value is not None:
        check_text(value, what=what)


def the_one(
    by_id: FiberInspection | None,
    by_key: FiberInspection | None,
    *,
    fiber_id: str | None,
    key: str | None,
) -> FiberInspection | None:
    """The fiber that an id and a key both name.

    Raises:
        InvalidArguments: They name different fibers (FB-028).
    """
    if by_key is not None and fiber_id is not None and by_key.fiber_id != fiber_id:
        raise InvalidArguments(
            f"The idempotency key {key!r} belongs to the fiber {by_key.fiber_id!r}, "
            f"not to {fiber_id!r}"
        )
    found = by_id or by_key
    if found is not None and key is not None and found.idempotency_key not in {None, key}:
        raise InvalidArguments(
            f"The fiber {found.fiber_id!r} has the idempotency key {found.idempotency_key!r}, "
            f"not {key!r}"
        )
    return found


def listed(status: str | Iterable[str] | None) -> frozenset[str]:
    """The statuses of fibers that are asked for; all of them for None."""
    return statuses(status, _ALL)


def deletable(status: str | Iterable[str] | None) -> frozenset[str]:
    """The statuses of fibers that are deleted; those that are not over are left out (FB-038)."""
    return _DELETED_BY_DEFAULT if status is None else listed(status) & TERMINAL


def wrapped(frame: FrameworkSnapshot | None, data: JsonValue) -> JsonValue:
    """What is stored for a stash: in a fiber of the framework, beside what that keeps (FB-008)."""
    return data if frame is None else {frame.key: frame.value, "user": data}


def unwrapped(snapshot: JsonValue, key: str) -> tuple[JsonValue, JsonValue] | None:
    """What the framework kept under `key` and what was stashed; None for another's snapshot."""
    if not isinstance(snapshot, dict) or snapshot.keys() != {key, "user"}:
        return None
    return snapshot[key], snapshot["user"]
