"""What is decided about runs, without doing it: endings, rewrites, re-dispatch, cap and ids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from ramet.agent_tools.records import Inspection, TerminalStatus
from ramet.core.json import JsonValue, NotJson, as_text, to_json
from ramet.protocol.run_events import (
    ABSENT,
    HARD_TERMINAL,
    RUN_FAILED,
    RUN_INTERRUPTED,
    Absent,
    InterruptedReason,
    RunStatus,
)

CANCELLED: Final = "cancelled"
CLEARING: Final = "The run was cleared."
CHILD_GONE: Final = "The child of this run was deleted."
WINDOW_OVER: Final = "The run took longer than it may."
STILL_RUNNING: Final = (
    "The agent tool run is still running, but its result could not be collected yet."
)

_REASON_TEXTS: Final[Mapping[InterruptedReason, str]] = {
    "no-progress": "The agent tool run was given up: its child sent nothing more.",
    "window-exceeded": "The agent tool run was given up: it took longer than it may.",
    "not-tailable": "The agent tool run still goes on, but its child cannot be followed.",
    "inspect-timeout": "The agent tool run was given up: its child did not answer in time.",
    "inspect-failed": "The agent tool run was given up: its child could not be asked.",
    "recovery-deadline": "The agent tool run was given up: no time was left to ask its child.",
    "budget-exceeded": "The agent tool run was given up: its budget is used up.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended, before it is written."""

    status: TerminalStatus
    output: JsonValue | Absent = ABSENT
    summary: str | None = None
    error: str | None = None
    reason: InterruptedReason | None = None
    child_still_running: bool | None = None
    completed_at: int | None = None
    """When the child ended; None when only the parent can say."""


def ending_of(inspection: Inspection | None) -> Ending | None:
    """How a run ended by what its child says; None while that is open (AT-073, AT-074)."""
    if inspection is None:
        return None
    match inspection.status:
        case "completed":
            return Ending(
                status="completed",
                output=inspection.output,
                summary=inspection.summary,
                completed_at=inspection.completed_at,
            )
        case "error":
            return Ending(
                status="interrupted" if inspection.interrupted else "error",
                error=inspection.error or RUN_FAILED,
                completed_at=inspection.completed_at,
            )
        case "aborted":
            return Ending(
                status="aborted", error=inspection.error, completed_at=inspection.completed_at
            )
        case "starting" | "running":
            return None


def storable(ending: Ending) -> Ending:
    """The ending as it can be stored; what a child says wrongly must not keep its run open."""
    try:
        return replace(
            ending,
            output=ending.output if ending.output is ABSENT else to_json(ending.output),
            summary=None if ending.summary is None else as_text(ending.summary),
            error=None if ending.error is None else as_text(ending.error),
        )
    except NotJson as error:
        lost = failure(f"The child's result cannot be stored: {error}")
        return replace(lost, completed_at=ending.completed_at)


def failure(error: str) -> Ending:
    """The ending of a run that failed on the parent's side."""
    return Ending(status="error", error=error)


def cancellation(reason: str) -> Ending:
    """The ending of a run that was cancelled."""
    return Ending(status="aborted", error=reason)


def interruption(
    reason: InterruptedReason | None, *, child_still_running: bool | None = None
) -> Ending:
    """The ending of a run that the parent lost sight of; each reason has its text (AT-324)."""
    return Ending(
        status="interrupted",
        error=_REASON_TEXTS[reason] if reason else RUN_INTERRUPTED,
        reason=reason,
        child_still_running=child_still_running,
    )


def silence(*, tailable: bool) -> InterruptedReason:
    """Why a child that is still at work was lost sight of."""
    return "no-progress" if tailable else "not-tailable"


Rewrite: TypeAlias = Literal["seal", "fill", "keep"]


def rewrite(stored: RunStatus, ending: Ending) -> Rewrite:
    """What a terminal result may still do to a row (AT-058 … AT-060)."""
    if stored not in HARD_TERMINAL:
        return "seal"
    return "fill" if stored == ending.status == "completed" else "keep"


Redispatch: TypeAlias = Literal["stored", "ask-child", "attach"]


def redispatch(status: RunStatus, output: JsonValue | Absent) -> Redispatch:
    """What dispatching a known run id means (AT-050, AT-053 … AT-055)."""
    if status not in HARD_TERMINAL:
        return "attach"
    return "ask-child" if status == "completed" and output is ABSENT else "stored"


def same_question(stored_root: str | None, asking_root: str | None) -> bool:
    """Whether a run may be given to whoever asks: within one recovery root, where known (D8)."""
    return stored_root is None or asking_root is None or stored_root == asking_root


def refusal(active: int, cap: float) -> str | None:
    """Why one more run may not start now; None when it may (AT-192, AT-193)."""
    return f"maxConcurrentAgentTools ({cap:g}) exceeded" if active >= cap else None


def run_id_of_call(
    tool_call_id: str,
    position: int,
    *,
    root: str | None,
    taken_by_another: Callable[[str], bool],
) -> str:
    """The run id of the n-th run of a tool call, the same again when the call is re-entered (D9).

    Where the provider gave an earlier question the same call id, the turn's root tells them
    apart (D8).
    """
    suffix = f":{position}" if position else ""
    run_id = f"agent-tool:{tool_call_id}{suffix}"
    if root is not None and taken_by_another(run_id):
        return f"agent-tool:{tool_call_id}:{root}{suffix}"
    return run_id
