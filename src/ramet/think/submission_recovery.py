"""Decides on submissions that ran when their process ended, and follows recovered turns."""

from collections.abc import Callable, Sequence

from ramet.chat.feature import Chat
from ramet.chat.recovery_policy import incident_id
from ramet.core.failpoints import failpoint
from ramet.think.submission_records import (
    INTERRUPTED,
    End,
    LeaveRunning,
    RunAgain,
    Submission,
    after_restart,
    recorded_end,
)
from ramet.think.submission_store import SubmissionStore

INTERRUPTED_END = End("error", INTERRUPTED)


class InterruptedSubmissions:
    """The submissions of one agent that an earlier process left running."""

    def __init__(self, chat: Chat, store: SubmissionStore, owns: Callable[[str], bool]) -> None:
        """Begin.

        Args:
            chat: Whose submissions they are.
            store: Where they are stored.
            owns: Whether chat recovery goes on with the turn of a request (SB-013).
        """
        self._chat = chat
        self._store = store
        self._owns = owns
        self._noted: list[Submission] = []
        self._recovering: dict[str, str] = {}

    @property
    def recovering(self) -> bool:
        """Whether chat recovery goes on with the turn of one."""
        return bool(self._recovering)

    def note(self) -> None:
        """Note what was left running, before any code of the agent runs."""
        self._noted = self._store.running()

    def take_up(self) -> Sequence[str]:
        """Decide on what was noted; gives the ids of those whose status changed."""
        self._end_called_off()
        noted, self._noted = self._noted, []
        return [each.submission_id for each in noted if self._decide(each)]

    def conclude(self) -> Sequence[str]:
        """End those whose recovered turn has ended (SB-015); gives the ids of those."""
        over = {
            submission_id: request_id
            for submission_id, request_id in self._recovering.items()
            if not self._owns(request_id)
        }
        for submission_id in over:
            del self._recovering[submission_id]
        return [
            submission_id
            for submission_id, request_id in over.items()
            if self._end(submission_id, self.recorded(request_id) or INTERRUPTED_END)
        ]

    def forget(self) -> None:
        """Follow none any more: the chat was cleared."""
        self._recovering.clear()

    def requests_of(self, request_id: str) -> Sequence[str]:
        """A request, and those of the turns that have gone on for its turn."""
        turns = self._chat.ports.turns
        stored = turns.of_request(request_id)
        return [request_id] if stored is None else turns.requests_of(stored.recovery_root)

    def _end_called_off(self) -> None:
        """Let no lost turn go on whose submission was called off just before the process died."""
        turns = self._chat.ports.turns
        for turn in turns.unfinished():
            found = self._store.get(turns.requests_of(turn.recovery_root)[0])
            if found is not None and found.status == "aborted":
                self._chat.turns.cancel(turn.request_id)

    def _decide(self, noted: Submission) -> bool:
        transcript, submission_id = self._chat.transcript, noted.submission_id
        messages = self._store.messages(submission_id)
        applied = noted.messages_applied_at is not None
        decision = after_restart(
            applied=applied,
            readable=messages is not None,
            in_history=sum(str(message["id"]) in transcript for message in messages or ()),
            owned=applied and self._owns(noted.request_id),
            recorded=self.recorded(noted.request_id),
        )
        match decision:
            case LeaveRunning():
                self._recovering[submission_id] = noted.request_id
                return False
            case RunAgain():
                return self._store.wait_again(submission_id)
            case End():
                return self._end(submission_id, decision)

    def _end(self, submission_id: str, end: End) -> bool:
        now = self._chat.ports.context.clock.now_ms()
        ended = self._store.end(submission_id, end.status, error=end.error, now=now)
        failpoint("submission.ended")
        return ended

    def recorded(self, request_id: str) -> End | None:
        """How the newest of the turns that worked on a request is recorded to have ended.

        That a lost turn was sealed at the start is no such record (D10).
        """
        ports = self._chat.ports
        turn = ports.turns.of_request(self.requests_of(request_id)[-1])
        if turn is None or turn.status == "orphaned":
            return None
        incident = ports.recovery.incident(incident_id(turn.recovery_root, turn.message_ids))
        reason = None if incident is None else incident.reason
        return recorded_end(turn.outcome, turn.error_text, given_up_for=reason)
