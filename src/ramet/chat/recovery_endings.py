"""Ends lost turns that will not go on: given up, overtaken, or waiting for a person."""

from collections.abc import Callable
from dataclasses import replace

from ramet.chat.continuation_store import Awaiting
from ramet.chat.live_turn import log_key
from ramet.chat.partial import parked, partial_message
from ramet.chat.ports import ChatPorts
from ramet.chat.recovering_flag import RecoveringFlag
from ramet.chat.recovery_losses import Losses, Lost, event_of, question_of
from ramet.chat.recovery_options import ChatRecovery, ChatRecoveryExhausted, ExhaustedReason
from ramet.chat.recovery_policy import IncidentStatus
from ramet.chat.settling import Ending, report_failure, settled, terminal
from ramet.chat.turn import TurnResult
from ramet.core.failpoints import failpoint
from ramet.protocol import frames
from ramet.protocol.ui_message import UIMessage


class Endings:
    """Brings lost turns to an end that is recorded before it is told."""

    def __init__(
        self,
        ports: ChatPorts,
        losses: Losses,
        flag: RecoveringFlag,
        *,
        budgets: Callable[[], ChatRecovery],
        ended: Callable[[], object],
    ) -> None:
        """Begin.

        Args:
            ports: The chat.
            losses: Describes lost turns.
            flag: Told when a turn has its outcome.
            budgets: The agent's own.
            ended: Called when a turn has ended: clients that wait may go, runs are to be sealed.
        """
        self._ports = ports
        self._losses = losses
        self._flag = flag
        self._budgets = budgets
        self._ended = ended

    async def exhaust(self, lost: Lost, reason: ExhaustedReason) -> None:
        """Give a turn up (CR-019).

        It is told before the incident is sealed, so that one cut off in the middle is done again
        from the start (CR-021).
        """
        budgets = self._budgets()
        lost.incident = replace(lost.incident, status="exhausting", reason=reason)
        self._ports.recovery.keep_incident(lost.incident)
        failpoint("recovery.exhausting")
        self._end(lost, Ending("error", budgets.terminal_message))
        self._ports.context.events.emit("chat:recovery:exhausted", event_of(lost.incident))
        await self._tell_user(lost, reason, budgets)
        self._seal(lost, "exhausted", reason)

    def fail(self, lost: Lost, reason: str) -> None:
        """End a turn whose recovery has raised something."""
        self._end(lost, Ending("error", self._budgets().terminal_message))
        self._seal(lost, "failed", reason)
        self._ports.context.events.emit("chat:recovery:failed", event_of(lost.incident))

    def refuse(self, lost: Lost, reason: str) -> None:
        """End a turn that its agent does not want to go on (CR-014)."""
        self._end(lost, Ending("error", self._budgets().terminal_message))
        self._skipped(lost, reason)

    def skip(self, lost: Lost, reason: str) -> None:
        """End a turn that was overtaken (CR-017) or cancelled; its answer stays as it is."""
        self._end(lost, Ending("aborted"))
        self._skipped(lost, reason)

    def park(self, lost: Lost) -> None:
        """End a turn that waits for a person or a browser, who can still answer (CR-016)."""
        self._end(lost, Ending("aborted"), waiting=True)
        self._skipped(lost, "awaiting_client_interaction")

    def _skipped(self, lost: Lost, reason: str) -> None:
        self._seal(lost, "skipped", reason)
        self._ports.context.events.emit("chat:recovery:skipped", event_of(lost.incident))

    def _seal(self, lost: Lost, status: IncidentStatus, reason: str) -> None:
        lost.incident = replace(lost.incident, status=status, reason=reason)
        self._ports.recovery.keep_incident(lost.incident)
        failpoint("recovery.sealed")

    def _end(self, lost: Lost, ending: Ending, *, waiting: bool = False) -> None:
        ports, turn = self._ports, lost.turn
        stored = ports.turns.get(turn.turn_id)
        if stored is not None and stored.status == "recovering":
            message = self._store_end(lost, ending, waiting=waiting)
            if ending.outcome == "error":
                report_failure(ports, turn.request_id, "recovery")
            stream = ports.log.of_turn(turn.turn_id)
            frame = terminal(
                turn.request_id,
                ending,
                message_ids=turn.message_ids,
                continuation=turn.continuation,
            )
            ports.clients.broadcast_frame(frames.chat_messages(ports.transcript.all()))
            if stream is None:
                ports.clients.broadcast_frame(frame)
            else:
                ports.clients.broadcast_log(frame, log_key(stream.stream_id))
            lost.finish(
                TurnResult(
                    request_id=turn.request_id,
                    status="error" if ending.outcome == "error" else "aborted",
                    error=ending.error,
                    message=message,
                    continuation=turn.continuation,
                )
            )
        self._flag.off(turn.recovery_root)
        self._ended()

    def _store_end(self, lost: Lost, ending: Ending, *, waiting: bool) -> UIMessage | None:
        ports, turn = self._ports, lost.turn
        partial = partial_message(ports, turn)
        message = partial and (parked(ports, turn, partial) if waiting else settled(partial))
        stream = ports.log.of_turn(turn.turn_id)
        with ports.transcript.changing():
            if message:
                ports.transcript.put(message, after=question_of(turn))
            ports.turns.end(
                turn.turn_id,
                ending.outcome,
                now=ports.context.clock.now_ms(),
                error_text=ending.error,
            )
            if stream is not None:
                ports.log.close(stream.stream_id, ending.outcome)
            if waiting:
                asked = ports.recovery.asked(turn.turn_id)
                ports.continuation.keep_awaiting(
                    Awaiting(
                        message_id=turn.assistant_message_id,
                        message_ids=turn.message_ids,
                        body=asked.body,
                        client_tools=asked.client_tools,
                    )
                )
            else:
                ports.continuation.forget_wish_for(turn.assistant_message_id)
            ports.recovery.forget_asked(turn.turn_id)
        failpoint("recovery.turn_ended")
        return message or None

    async def _tell_user(self, lost: Lost, reason: ExhaustedReason, budgets: ChatRecovery) -> None:
        on_exhausted = budgets.on_exhausted
        if on_exhausted is None:
            return
        context = self._losses.context(lost.turn, lost.incident, lost.partial)
        try:
            exhausted = ChatRecoveryExhausted(context=context, reason=reason)
            await self._ports.hooks.decide_by(lambda: on_exhausted(exhausted))
        except Exception as error:  # noqa: BLE001 - a hook's fault must not keep the turn open
            self._ports.context.fence.check()
            self._ports.errors.report(error)
