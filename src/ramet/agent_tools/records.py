"""The records of agent-tool runs: what callers, hooks and child adapters exchange."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from ramet.core.json import AnyJson, JsonValue
from ramet.protocol.chunks import ChunkKind
from ramet.protocol.run_events import Absent, InterruptedReason, RunStatus
from ramet.protocol.ui_message import UIMessage

Output = TypeVar("Output", covariant=True)

ChildStatus: TypeAlias = Literal["starting", "running", "completed", "error", "aborted"]
TerminalStatus: TypeAlias = Literal["completed", "error", "aborted", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: the latest signal wins."""

    fraction: float | None = None
    """Between 0 and 1 by convention; any finite number is accepted."""
    message: str | None = None
    phase: str | None = None
    milestone: str | None = None
    """Set when the signal is a milestone."""
    data: AnyJson = None
    at: int = 0
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A named point that a run has passed; kept for ever, in order."""

    name: str
    sequence: int
    """0 for the run's first milestone."""
    at: int
    """Milliseconds since the epoch."""
    fraction: float | None = None
    message: str | None = None
    phase: str | None = None
    data: AnyJson = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a child knows of one of its runs (AT-072)."""

    run_id: str
    status: ChildStatus
    started_at: int
    """Milliseconds since the epoch."""
    completed_at: int | None = None
    request_id: str | None = None
    stream_id: str | None = None
    output: JsonValue | Absent = Absent.ABSENT
    """The structured output; absent when there is none (None is an output)."""
    summary: str | None = None
    error: str | None = None
    interrupted: bool = False
    """With `error`: the process was killed, so nobody knows what the run would have come to."""
    progress: Progress | None = None
    milestones: Sequence[Milestone] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """One item of a child's stream (AT-099, D2).

    `sequence` counts the chunks from 0. An item that is no chunk takes no number of its own: it
    carries the last chunk's (-1 before the first).
    """

    sequence: int
    body: str
    """The JSON text of one UI message chunk."""
    kind: ChunkKind = "chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as hooks are told of it (AT-040)."""

    run_id: str
    agent_type: str
    """The child's class name; the child is the sub-agent (agent_type, run_id)."""
    status: RunStatus
    parent_tool_call_id: str | None = None
    input_preview: JsonValue | Absent = Absent.ABSENT
    display: AnyJson = None
    display_order: int = 0
    notify_source: str | None = None
    started_at: int = 0
    completed_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Generic[Output]):
    """How an awaited run ended; child failures are results, not exceptions (AT-003)."""

    run_id: str
    agent_type: str
    status: TerminalStatus
    output: Output | None = None
    summary: str | None = None
    error: str | None = None
    reason: InterruptedReason | None = None
    """Only for `interrupted`."""
    child_still_running: bool | None = None
    """Only for `interrupted`, and only where it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInspection:
    """Where a run is: what its parent has stored of it, and what its child says."""

    run: RunInfo
    result: RunResult[object] | None = None
    """How it ended; None while it is under way."""
    child: Inspection | None = None
    """What the child says; None when it knows nothing of the run yet, or could not be asked."""
    child_error: str | None = None
    """Why the child could not be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedRun:
    """A run that was let go of; it reports back by itself (AT-005)."""

    run_id: str
    agent_type: str
    status: Literal["running", "completed", "error", "aborted"]
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRun:
    """What a child knows of the run it works for (`agent_tool_child_run`)."""

    run_id: str
    input: AnyJson
    messages: Sequence[UIMessage] = ()
    """The messages that the run has added to the child's transcript so far."""
