"""What clients are told of a run, made from its row: the same live and on replay."""

from ramet.agent_tools.run_store import StoredRun
from ramet.protocol.run_events import (
    Aborted,
    Failed,
    Finished,
    Interrupted,
    RunEvent,
    Started,
)


def log_key(run_id: str) -> str:
    """The name of a run's frames among the logs of a connection."""
    return f"run:{run_id}"


def started_event(run: StoredRun) -> Started:
    """That the run exists, with what is shown of its input (AT-124)."""
    display = run.display if isinstance(run.display, dict) else None
    return Started(
        run_id=run.run_id,
        agent_type=run.agent_type,
        order=run.display_order,
        input_preview=run.input_preview,
        display=display,
    )


def event_of_ending(run: StoredRun) -> RunEvent | None:
    """How the run ended; None while it is under way (AT-126 … AT-129)."""
    match run.status:
        case "completed":
            return Finished(run_id=run.run_id, summary=run.summary)
        case "error":
            return Failed(run_id=run.run_id, error=run.error)
        case "aborted":
            return Aborted(run_id=run.run_id, reason=run.error)
        case "interrupted":
            return Interrupted(
                run_id=run.run_id,
                error=run.error,
                reason=run.reason,
                child_still_running=run.child_still_running,
            )
        case "starting" | "running":
            return None
