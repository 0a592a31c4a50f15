"""What a client knows of agent-tool runs: immutable records, grouped by tool call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.run_events import ABSENT, Absent
from ramet.protocol.ui_message import UIPart

RunViewStatus: TypeAlias = Literal["running", "completed", "error", "aborted", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The latest progress signal of a run; `at` is the client's time for ephemeral ones."""

    at: float
    fraction: float | None = None
    message: str | None = None
    phase: str | None = None
    milestone: str | None = None
    data: "JsonValue | Absent" = ABSENT

    def to_json(self) -> JsonObject:
        """Give the object that JavaScript clients hold."""
        return _object(
            self.data,
            "data",
            fraction=self.fraction,
            message=self.message,
            phase=self.phase,
            milestone=self.milestone,
            at=self.at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMilestone:
    """A point that a run has passed."""

    name: str
    sequence: float
    at: float
    data: "JsonValue | Absent" = ABSENT

    def to_json(self) -> JsonObject:
        """Give the object that JavaScript clients hold."""
        return _object(self.data, "data", name=self.name, sequence=self.sequence, at=self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """One run as its events tell of it (AT-141); `parts` are those of the child's message."""

    run_id: str
    agent_type: str
    parent_tool_call_id: str | None = None
    input_preview: "JsonValue | Absent" = ABSENT
    order: float = 0
    display: JsonObject | None = None
    status: RunViewStatus = "running"
    parts: Sequence[UIPart] = ()
    summary: str | None = None
    error: str | None = None
    reason: str | None = None
    child_still_running: bool | None = None
    progress: RunProgress | None = None
    milestones: Sequence[RunMilestone] = ()

    @property
    def sub_agent(self) -> JsonObject:
        """Where to find the child for a drill-in, below the parent."""
        return {"agent": self.agent_type, "name": self.run_id}

    def to_json(self) -> JsonObject:
        """Give the object that JavaScript clients hold, for comparison and display."""
        return _object(
            self.input_preview,
            "inputPreview",
            runId=self.run_id,
            agentType=self.agent_type,
            parentToolCallId=self.parent_tool_call_id,
            order=self.order,
            display=self.display,
            status=self.status,
            parts=[*self.parts],
            summary=self.summary,
            error=self.error,
            reason=self.reason,
            childStillRunning=self.child_still_running,
            progress=self.progress.to_json() if self.progress else None,
            milestones=[one.to_json() for one in self.milestones] or None,
            subAgent=self.sub_agent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolState:
    """All runs a client knows of; each group is sorted by order, then run id (AT-154)."""

    runs_by_id: Mapping[str, RunState] = field(default_factory=dict)
    runs_by_tool_call_id: Mapping[str, Sequence[RunState]] = field(default_factory=dict)
    unbound_runs: Sequence[RunState] = ()

    def with_run(self, run: RunState) -> "AgentToolState":
        """Give the state with one run added or put in the place of its former self."""
        runs = {**self.runs_by_id, run.run_id: run}
        former = self.runs_by_id.get(run.run_id)
        if former is None or _place(former) != _place(run):
            return _grouped(runs)
        call_id = run.parent_tool_call_id
        if call_id is None:
            unbound = _exchanged(self.unbound_runs, run)
            return replace(self, runs_by_id=runs, unbound_runs=unbound)
        group = _exchanged(self.runs_by_tool_call_id[call_id], run)
        groups = {**self.runs_by_tool_call_id, call_id: group}
        return replace(self, runs_by_id=runs, runs_by_tool_call_id=groups)


def _place(run: RunState) -> tuple[str | None, float]:
    return (run.parent_tool_call_id, run.order)


def _exchanged(group: Iterable[RunState], run: RunState) -> tuple[RunState, ...]:
    return tuple(run if other.run_id == run.run_id else other for other in group)


def _grouped(runs: Mapping[str, RunState]) -> AgentToolState:
    groups: dict[str | None, list[RunState]] = {}
    for run in sorted(runs.values(), key=lambda run: (run.order, run.run_id)):
        groups.setdefault(run.parent_tool_call_id, []).append(run)
    return AgentToolState(
        runs_by_id=runs,
        runs_by_tool_call_id={
            key: tuple(group) for key, group in groups.items() if key is not None
        },
        unbound_runs=tuple(groups.get(None, ())),
    )


def _object(value: "JsonValue | Absent", key: str, /, **fields: JsonValue) -> JsonObject:
    """Join the fields that are not None, and one that may be null as long as it is not absent."""
    joined: JsonObject = {name: field for name, field in fields.items() if field is not None}
    if not isinstance(value, Absent):
        joined[key] = value
    return joined
