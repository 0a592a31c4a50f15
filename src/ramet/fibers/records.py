"""What fibers tell their functions, their callers and the recovery hook."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.core.json import JsonValue
from ramet.core.signals import AbortSignal
from ramet.errors import InvalidArguments

FiberStatus: TypeAlias = Literal[
    "pending", "running", "completed", "aborted", "interrupted", "error"
]
SettledStatus: TypeAlias = Literal["completed", "aborted", "interrupted", "error"]

TERMINAL: frozenset[str] = frozenset({"completed", "aborted", "interrupted", "error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberContext:
    """What the function of a fiber is given."""

    id: str
    signal: AbortSignal
    """Aborted when the fiber is cancelled."""
    stash: Callable[[object], None]
    """Replaces the fiber's snapshot; durable when it returns."""
    snapshot: JsonValue = None
    """Always None: a function starts from the beginning (FB-002)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkSnapshot:
    """What the framework itself keeps in the snapshot of a fiber of its own (FB-008)."""

    key: str
    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberInspection:
    """What is stored of a managed fiber (FB-029). Moments are epoch milliseconds."""

    fiber_id: str
    name: str
    status: FiberStatus
    created_at: int
    idempotency_key: str | None = None
    snapshot: JsonValue = None
    error: str | None = None
    metadata: JsonValue = None
    started_at: int | None = None
    settled_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedFiber(FiberInspection):
    """A fiber as `start_fiber` found or made it."""

    accepted: bool
    """False when a fiber of that id or key was there already; the function was not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedFiber:
    """A fiber whose process died, as `on_fiber_recovered` is told of it (FB-011)."""

    id: str
    name: str
    snapshot: JsonValue
    """What was stashed last; None when nothing was, or it cannot be read."""
    created_at: int
    recovery_reason: Literal["interrupted"] = "interrupted"
    status: FiberStatus | None = None
    """Of a managed fiber only, like the two below."""
    idempotency_key: str | None = None
    metadata: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberResult:
    """How a fiber that was interrupted is settled after all (FB-041)."""

    status: SettledStatus
    snapshot: JsonValue = None
    """Replaces the stored one when it is given."""
    metadata: JsonValue = None
    """Replaces the stored one of a completed fiber when it is given."""
    error: str | None = None
    """Why it was not completed."""

    def __post_init__(self) -> None:
        if self.status not in TERMINAL:
            raise InvalidArguments(
                f"A fiber is settled as {_words(TERMINAL)}, not as {self.status!r}"
            )


def _words(names: frozenset[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} or {last}"
