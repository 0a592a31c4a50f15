"""Takes note of turns that were lost: what there is of them, and whether they are worth a try."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ramet.chat.live_turn import LiveTurn
from ramet.chat.partial import partial_message, waits_for_client
from ramet.chat.ports import ChatPorts
from ramet.chat.recovery_options import ChatRecovery, ChatRecoveryContext
from ramet.chat.recovery_policy import (
    KEPT_MS,
    Incident,
    Loss,
    after_loss,
    classify,
    exhaustion,
    incident_id,
    still_to_answer,
)
from ramet.chat.turn import TurnResult
from ramet.chat.turn_store import StoredTurn
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.protocol.ui_message import UIMessage


@dataclass(slots=True, kw_only=True)
class Lost:
    """A turn without a producer, and what is to become of it."""

    turn: StoredTurn
    incident: Incident
    partial: UIMessage | None
    live: LiveTurn | None = None
    """The turn as it ran in this process, when it was lost in this process."""
    waiters: list[Callable[[TurnResult], object]] = field(default_factory=list)

    @property
    def question(self) -> str | None:
        """The last message that the turn answers, or the one that it extends."""
        return question_of(self.turn)

    def finish(self, result: TurnResult) -> None:
        """Tell who waits for the turn how it ended."""
        waiters, self.waiters = self.waiters, []
        if self.live is not None:
            self.live.result = result
        for waiter in waiters:
            waiter(result)


class Losses:
    """Records lost turns with their incidents."""

    def __init__(self, ports: ChatPorts, budgets: Callable[[], ChatRecovery]) -> None:
        self._ports = ports
        self._budgets = budgets

    def note(self, turn: StoredTurn, *, out_of_memory: bool = False) -> Lost:
        """Record that a turn was lost; one commit, and harmless when it is done again.

        What there is of the answer is stored, with what is open left open.
        """
        ports, now = self._ports, self._ports.context.clock.now_ms()
        partial = partial_message(ports, turn)
        awaits = waits_for_client(ports, turn, partial)
        loss = Loss(
            incident_id=incident_id(turn.recovery_root, turn.message_ids),
            turn_id=turn.turn_id,
            request_id=turn.request_id,
            kind=classify(
                streamed=self._streamed(turn, partial), is_last=self.still_to_answer(turn)
            ),
            now=now,
            progress=ports.recovery.progress(),
            out_of_memory=out_of_memory,
            awaits_client=awaits,
        )
        ports.recovery.sweep(older_than=now - KEPT_MS)
        before = ports.recovery.incident(loss.incident_id)
        incident = after_loss(before, loss)
        if incident.status != "exhausting":
            reason = exhaustion(
                incident,
                self._budgets(),
                now=now,
                keep_going=lambda: self._keep_going(turn, incident, partial),
                awaits_client=awaits,
            )
            if reason is not None:
                incident = replace(incident, status="exhausting", reason=reason)
        with ports.transcript.changing():
            ports.turns.mark_lost(turn.turn_id)
            if partial is not None and not turn.continuation:
                ports.transcript.put(partial, after=question_of(turn))
            ports.recovery.keep_incident(incident)
        failpoint("recovery.detected")
        self._tell(incident, first=before is None)
        return Lost(turn=turn, incident=incident, partial=partial)

    def still_to_answer(self, turn: StoredTurn) -> bool:
        """Whether nothing has come after a lost turn's question but what is lost as well."""
        besides = {turn.assistant_message_id}
        for lost in self._ports.turns.unfinished():
            besides.update((*lost.message_ids, lost.assistant_message_id))
        return still_to_answer(self._ports.transcript.all(), question_of(turn), besides=besides)

    def context(
        self, turn: StoredTurn, incident: Incident, partial: UIMessage | None
    ) -> ChatRecoveryContext:
        """A lost turn as users are shown it."""
        return ChatRecoveryContext(
            incident_id=incident.incident_id,
            request_id=turn.request_id,
            recovery_root=turn.recovery_root,
            kind=incident.kind,
            attempt=incident.attempt,
            max_attempts=self._budgets().max_attempts,
            messages=self._ports.transcript.all(),
            partial=partial,
            created_at=turn.created_at,
        )

    def _streamed(self, turn: StoredTurn, partial: UIMessage | None) -> bool:
        if partial is not None or not self._ports.family.resumes_steps:
            return partial is not None
        stream = self._ports.log.of_turn(turn.turn_id)
        return stream is not None and bool(
            self._ports.log.page(stream.stream_id, after=-1, limit=1).chunks
        )

    def _keep_going(self, turn: StoredTurn, incident: Incident, partial: UIMessage | None) -> bool:
        ask = self._budgets().should_keep_recovering
        if ask is None:
            return True
        try:
            return ask(self.context(turn, incident, partial)) is not False
        except Exception as error:  # noqa: BLE001 - a predicate that raises means: keep going (CR-010)
            self._ports.errors.report(error)
            return True

    def _tell(self, incident: Incident, *, first: bool) -> None:
        events = self._ports.context.events
        payload = event_of(incident)
        if first:
            events.emit("chat:recovery:detected", payload)
        events.emit("chat:recovery:attempt", payload)


def question_of(turn: StoredTurn) -> str | None:
    """The last message that a turn answers, or the one that it extends."""
    if turn.message_ids:
        return turn.message_ids[-1]
    return turn.assistant_message_id if turn.continuation else None


def tools_for(ports: ChatPorts, turn: StoredTurn) -> Sequence[JsonObject]:
    """The tools of the page for the turn that goes on for a lost one.

    Where that is shown what the page has answered they are those named with it; a step that itself
    goes on has those that it began with.
    """
    asked = ports.recovery.asked(turn.turn_id).client_tools
    if ports.family.resumes_steps:
        return asked
    return ports.continuation.newest_tools(turn.assistant_message_id, asked)


def event_of(incident: Incident) -> JsonObject:
    """An incident as events tell of it."""
    return {
        "incidentId": incident.incident_id,
        "requestId": incident.request_id,
        "attempt": incident.attempt,
        "recoveryKind": incident.kind,
        "reason": incident.reason,
    }
