"""How a run ended, by the end of its turn (AT-081, AT-082, AT-349)."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramet.agent_tools.records import ChildStatus, Inspection
from ramet.chat.child_runs import PlacedMilestone, StoredChildRun
from ramet.chat.family import ChatFamily, Output
from ramet.chat.turn import StoredOutcome
from ramet.chat.turn_store import StoredTurn
from ramet.protocol.run_events import ABSENT

CLEARED = "The run was skipped before the child could finish: the chat was cleared."
INTERRUPTED = "The run was interrupted before the child could finish."


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended; a completed one still has to be asked for its output."""

    status: ChildStatus
    error: str | None = None


def end_of_run(outcome: StoredOutcome, error: str | None, *, reason: str | None = None) -> RunEnd:
    """The end of a run by that of its turn; `reason` is why the turn was cancelled."""
    match outcome:
        case "completed":
            return RunEnd("completed")
        case "error":
            return RunEnd("error", error)
        case "aborted":
            return RunEnd("aborted", reason)
        case "skipped":
            return RunEnd("error", CLEARED)
        case "recovering":
            return RunEnd("error", INTERRUPTED)


def end_of_lost_run(turn: StoredTurn | None) -> RunEnd:
    """The end of a run whose process died: completed only if its turn was recorded so (D10)."""
    if turn is None or turn.outcome is None or turn.status == "orphaned":
        return RunEnd("error", INTERRUPTED)
    if turn.status == "cleared":
        return RunEnd("error", CLEARED)
    return end_of_run(turn.outcome, turn.error_text)


def inspection_of(
    run: StoredChildRun, milestones: Sequence[PlacedMilestone], family: ChatFamily
) -> Inspection:
    """What a parent is told of a run: output only when completed, errors only when not (AT-351)."""
    completed = run.status == "completed"
    failed = run.status == "error" or (run.status == "aborted" and family.tells_abort_reason)
    output: Output = run.output if completed else ABSENT
    return Inspection(
        run_id=run.run_id,
        status=run.status,
        started_at=run.started_at,
        completed_at=run.completed_at,
        request_id=run.request_id,
        stream_id=run.stream_id,
        output=output,
        summary=run.summary if completed else None,
        error=run.error if failed else None,
        interrupted=run.status == "error" and run.error == INTERRUPTED,
        progress=run.progress,
        milestones=[placed.milestone for placed in milestones],
    )
