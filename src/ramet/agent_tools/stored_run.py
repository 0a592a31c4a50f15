"""One run as the parent keeps it, and how it is read from its row."""

from dataclasses import dataclass

from ramet.agent_tools.detachment import Detachment, detachment_of
from ramet.agent_tools.records import RunInfo
from ramet.core.json import JsonValue, loads_or_raw
from ramet.protocol.run_events import Absent, InterruptedReason, RunStatus
from ramet.storage import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run as the parent keeps it."""

    run_id: str
    agent_type: str
    status: RunStatus
    parent_tool_call_id: str | None = None
    input_preview: JsonValue | Absent = Absent.ABSENT
    display: JsonValue = None
    display_order: int = 0
    summary: str | None = None
    output: JsonValue | Absent = Absent.ABSENT
    error: str | None = None
    reason: InterruptedReason | None = None
    child_still_running: bool | None = None
    detachment: Detachment | None = None
    """What a run reports back by that nobody waits for; None for an awaited one."""
    started_at: int = 0
    completed_at: int | None = None
    call_position: int | None = None
    """Which run of its tool call this is, from 0; None outside a tool call."""
    ordinal: int = 0
    """Tells runs of one millisecond apart: a later one has a higher number."""
    recovery_root: str | None = None
    """The turn the run belongs to; None outside a turn."""
    input_digest: str | None = None
    """Tells its input from others, without keeping it; None where it is not known."""

    @property
    def detached(self) -> bool:
        """Whether it was let go of, and reports back by itself."""
        return self.detachment is not None

    @property
    def age(self) -> tuple[int, int]:
        """Sorts runs by when they were started, the oldest first."""
        return self.started_at, self.ordinal

    def info(self) -> RunInfo:
        """The run as hooks are told of it."""
        return RunInfo(
            run_id=self.run_id,
            agent_type=self.agent_type,
            status=self.status,
            parent_tool_call_id=self.parent_tool_call_id,
            input_preview=self.input_preview,
            display=self.display,
            display_order=self.display_order,
            notify_source=self.detachment.notify_source if self.detachment else None,
            started_at=self.started_at,
            completed_at=self.completed_at,
        )


def run_of(row: Row) -> StoredRun:
    """Read a row of the registry."""
    still = row["child_still_running"]
    return StoredRun(
        run_id=row["run_id"],
        agent_type=row["agent_type"],
        status=row["status"],
        parent_tool_call_id=row["parent_tool_call_id"],
        input_preview=_value(row["input_preview"]),
        display=loads_or_raw(row["display_metadata"]),
        display_order=row["display_order"],
        summary=row["summary"],
        output=_value(row["output_json"]),
        error=row["error_message"],
        reason=row["interrupted_reason"],
        child_still_running=None if still is None else bool(still),
        detachment=detachment_of(row) if row["detached"] else None,
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        call_position=row["call_position"],
        recovery_root=row["recovery_root"],
        input_digest=row["input_digest"],
        ordinal=row["ordinal"],
    )


def _value(text: str | None) -> JsonValue | Absent:
    return Absent.ABSENT if text is None else loads_or_raw(text)
