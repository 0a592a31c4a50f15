"""Decides about lost turns: which attempt this is, and when enough is enough; no effects."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from ramet.chat.recovery_options import ChatRecovery, ExhaustedReason, RecoveryKind
from ramet.core.json import JsonObject
from ramet.protocol import tool_parts
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage

IncidentStatus: TypeAlias = Literal[
    "detected", "scheduled", "attempting", "exhausting", "exhausted", "skipped", "failed"
]
SEALED: Final[frozenset[IncidentStatus]] = frozenset({"exhausted", "skipped", "failed"})
"""Nothing more comes of an incident with such a status."""

DEBOUNCE_MS: Final = 30_000
"""Detections within this time of the last attempt are the same attempt (CR-007)."""
KEPT_MS: Final = 3_600_000
"""How long an incident is kept in which nothing happens (CR-025)."""
INCIDENT_PREFIX: Final = "cf:chat-recovery:incident:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What is remembered of a lost turn from attempt to attempt."""

    incident_id: str
    turn_id: str
    """The turn that was lost last."""
    request_id: str
    kind: RecoveryKind
    attempt: int = 1
    opened_at: int
    """Milliseconds since the epoch, as the two below."""
    last_attempt_at: int
    last_progress_at: int
    opened_work: int
    """The progress counter when the incident began."""
    progress: int
    """The progress counter at the last detection."""
    oom_attempts: int = 0
    status: IncidentStatus = "detected"
    reason: str | None = None
    persist: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A turn that was lost just now."""

    incident_id: str
    turn_id: str
    request_id: str
    kind: RecoveryKind
    now: int
    progress: int
    """The durable counter of new content (CR-008)."""
    out_of_memory: bool = False
    awaits_client: bool = False
    """Whether the turn has stopped for a person or a browser, which costs nothing (CR-011)."""


def incident_id(recovery_root: str, message_ids: Sequence[str]) -> str:
    """The incident of a turn: retries and continuations share it (CR-005)."""
    return f"{recovery_root}:{message_ids[-1] if message_ids else ''}"


def classify(*, streamed: bool, is_last: bool) -> RecoveryKind:
    """How a lost turn is taken up (CR-004).

    Args:
        streamed: Whether anything of the answer was stored.
        is_last: Whether the turn's question is still the last message.
    """
    return "retry" if is_last and not streamed else "continue"


def after_loss(before: Incident | None, loss: Loss) -> Incident:
    """The incident as it stands after a turn was lost (CR-006 … CR-008, CR-011)."""
    if before is None or before.status in SEALED:
        return Incident(
            incident_id=loss.incident_id,
            turn_id=loss.turn_id,
            request_id=loss.request_id,
            kind=loss.kind,
            opened_at=loss.now,
            last_attempt_at=loss.now,
            last_progress_at=loss.now,
            opened_work=loss.progress,
            progress=loss.progress,
            oom_attempts=int(loss.out_of_memory),
        )
    if before.status == "exhausting":
        # What was decided is carried to its end, whatever the clock says by now (CR-021).
        return replace(before, turn_id=loss.turn_id, request_id=loss.request_id, kind=loss.kind)
    progressed = loss.progress > before.progress
    fresh = progressed or loss.awaits_client
    return replace(
        before,
        turn_id=loss.turn_id,
        request_id=loss.request_id,
        kind=loss.kind,
        attempt=_attempt(before, loss, progressed=progressed),
        last_attempt_at=loss.now,
        # A moment that is still to come tells of a wall clock that was set back: counted from then,
        # the turn would have hours more. It is counted from now, which costs it nothing.
        last_progress_at=loss.now if fresh else min(before.last_progress_at, loss.now),
        progress=loss.progress,
        oom_attempts=before.oom_attempts + int(loss.out_of_memory),
        status="detected",
    )


def exhaustion(
    incident: Incident,
    budgets: ChatRecovery,
    *,
    now: int,
    keep_going: Callable[[], bool],
    awaits_client: bool = False,
) -> ExhaustedReason | None:
    """Why a turn is given up; None while it is not (CR-009 … CR-011).

    `keep_going` is the user's; it is asked neither at the first detection nor when a hard bound has
    decided already.
    """
    if awaits_client:
        return None
    if incident.oom_attempts > budgets.max_oom_retries:
        return "out_of_memory"
    if incident.progress - incident.opened_work > budgets.max_recovery_work:
        return "work_budget_exceeded"
    if now - incident.last_progress_at > budgets.no_progress_timeout * 1000:
        return "no_progress_timeout"
    first = incident.opened_at == incident.last_attempt_at
    if not first and not keep_going():
        return "recovery_aborted"
    return "max_attempts_exceeded" if incident.attempt > budgets.max_attempts else None


def awaits_client(message: UIMessage | None, client_tools: Collection[str]) -> bool:
    """Whether the last step of an answer waits for an approval or a tool of the browser."""
    return message is not None and any(
        part.get("state") == tool_parts.APPROVAL_REQUESTED
        or (
            part.get("state") == tool_parts.INPUT_AVAILABLE
            and tool_parts.tool_name(part) in client_tools
        )
        for part in parts_of(message)
        if tool_parts.tool_call_id(part) is not None
    )


def holds_results(message: UIMessage | None) -> bool:
    """Whether a partial answer has results of tools, which are never dropped (CR-012)."""
    return message is not None and any(
        tool_parts.tool_call_id(part) is not None and tool_parts.is_settled(part)
        for part in parts_of(message)
    )


def still_to_answer(
    transcript: Sequence[UIMessage], question: str | None, *, besides: Collection[str]
) -> bool:
    """Whether a lost turn's question is there and nothing has come after it (CR-017).

    Args:
        transcript: All messages.
        question: The last message that the turn answers, or the one that it extends.
        besides: Messages that do not count: the turn's own answer, and those of other lost turns.
    """
    ids = [str(message["id"]) for message in transcript]
    if question is None:
        return bool(ids)
    if question not in ids:
        return False
    return all(each in besides for each in ids[ids.index(question) + 1 :])


def tool_names(client_tools: Sequence[JsonObject]) -> set[str]:
    """The names of the tools that a browser executes."""
    return {str(tool["name"]) for tool in client_tools if "name" in tool}


def _attempt(before: Incident, loss: Loss, *, progressed: bool) -> int:
    if progressed:
        return 1
    recent = loss.now - before.last_attempt_at < DEBOUNCE_MS
    return before.attempt if recent or loss.awaits_client else before.attempt + 1
