"""What is told of durable submissions, and the rules that need nothing but values (SB-001 …)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ramet.core.json import JsonValue
from ramet.core.listing import statuses
from ramet.errors import InvalidArguments

SubmissionStatus: TypeAlias = Literal[
    "pending", "running", "completed", "aborted", "skipped", "error"
]
EndStatus: TypeAlias = Literal["completed", "aborted", "skipped", "error"]

TERMINAL: Final = frozenset({"completed", "aborted", "skipped", "error"})
INTERRUPTED: Final = "The process ended while the submission was running; it was not run again."
HALF_APPLIED: Final = (
    "The process ended while the submission's messages were being added; it was not run again."
)
OVERTAKEN: Final = "The conversation went on before the interrupted turn could."
UNREADABLE: Final = "The submission's stored messages cannot be read."

_OVERTAKEN: Final = frozenset({"conversation_changed", "no_unanswered_user_message"})
_ALL: Final = TERMINAL | {"pending", "running"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Messages that were handed over to be answered, and how far that came."""

    submission_id: str
    request_id: str
    """Names the turn on the wire: the same as the submission id."""
    status: SubmissionStatus
    created_at: int
    """Milliseconds since the epoch, as the other moments."""
    idempotency_key: str | None = None
    stream_id: str | None = None
    metadata: JsonValue = None
    error: str | None = None
    """Why it was not completed."""
    messages_applied_at: int | None = None
    """When all of its messages were in the transcript."""
    started_at: int | None = None
    completed_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitResult(Submission):
    """A submission as `submit_messages` found or made it."""

    accepted: bool
    """False when one of that id or key was there already; the messages were not looked at."""


@dataclass(frozen=True, slots=True)
class RunAgain:
    """It has left no trace in the transcript: it waits again."""


@dataclass(frozen=True, slots=True)
class LeaveRunning:
    """Chat recovery goes on with its turn."""


@dataclass(frozen=True, slots=True)
class End:
    """It is over, and never run again."""

    status: EndStatus
    error: str | None = None


AfterRestart: TypeAlias = RunAgain | LeaveRunning | End


def after_restart(
    *, applied: bool, readable: bool, in_history: int, owned: bool, recorded: End | None
) -> AfterRestart:
    """What becomes of a submission that ran when its process ended (SB-011 … SB-014).

    Args:
        applied: All of its messages were recorded as added.
        readable: Its stored messages can be read.
        in_history: How many of them are in the transcript.
        owned: Chat recovery goes on with its turn.
        recorded: How its turn is recorded to have ended.
    """
    if applied:
        return LeaveRunning() if owned else recorded or End("error", INTERRUPTED)
    if not readable:
        return End("error", UNREADABLE)
    return End("error", HALF_APPLIED) if in_history else RunAgain()


def recorded_end(outcome: str | None, error: str | None, *, given_up_for: str | None) -> End | None:
    """The end of a submission by what is recorded of its turn; None when that has no end (SB-015).

    Args:
        outcome: The turn's.
        error: The text that clients were shown.
        given_up_for: Why chat recovery did not go on with the turn.
    """
    match outcome:
        case "completed" | "skipped":
            return End(outcome)
        case "error":
            return End("error", error)
        case "aborted":
            return End("skipped", OVERTAKEN) if given_up_for in _OVERTAKEN else End("aborted")
    return None


def the_one(
    by_id: Submission | None,
    by_key: Submission | None,
    *,
    submission_id: str | None,
    key: str | None,
) -> Submission | None:
    """The submission that an id and a key both name.

    Raises:
        InvalidArguments: They name different ones (SB-005).
    """
    if by_key is not None and submission_id not in {None, by_key.submission_id}:
        raise InvalidArguments(
            f"The idempotency key {key!r} belongs to the submission {by_key.submission_id!r}, "
            f"not to {submission_id!r}"
        )
    found = by_id or by_key
    if found is not None and key is not None and found.idempotency_key != key:
        raise InvalidArguments(
            f"The submission {found.submission_id!r} has the idempotency key "
            f"{found.idempotency_key!r}, not {key!r}"
        )
    return found


def listed(status: str | Iterable[str] | None) -> frozenset[str]:
    """The statuses of submissions that are asked for; all of them for None."""
    return statuses(status, _ALL)
