"""Ends a turn: the answer is stored, then the transcript is sent, then the one final frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ramet.chat.continuation_store import Awaiting
from ramet.chat.lapsing import lapse
from ramet.chat.live_turn import LiveTurn
from ramet.chat.ports import ChatPorts
from ramet.chat.turn import ChatResult, StoredOutcome, TurnOutcome, TurnResult
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, NotJson
from ramet.core.public_errors import public_text
from ramet.errors import StorageError
from ramet.protocol import frames
from ramet.protocol.messages import asks_client, parts_of, with_parts
from ramet.protocol.parts import settle_parts
from ramet.protocol.ui_message import UIMessage

UNSTORABLE = "The answer holds JSON that is nested too deeply to be stored"
NOT_FINISHED = "The tool call was interrupted before it could finish."


@dataclass(frozen=True, slots=True)
class LastWord:
    """How a request ended; the text is what clients are shown for an error."""

    outcome: StoredOutcome
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Ending(LastWord):
    """How a turn ended, for good."""

    outcome: TurnOutcome


def settle(ports: ChatPorts, live: LiveTurn, ending: Ending) -> TurnResult:
    """Store how a turn ended together with its answer, and tell everybody, in this order."""
    message = None if live.discarded else partial_message(live, ending.outcome)
    if ending.outcome == "error":
        report_failure(ports, live.plan.request_id, "stream" if live.answer is not None else "turn")
    try:
        ending, message = _stored(ports, live, ending, message=message)
    except StorageError as error:
        ports.errors.report(error)
        report_failure(ports, live.plan.request_id, "persist")
        ports.turns.unsettled.add(live.plan.turn_id)
        ending, message = Ending("error", public_text(error, ports.context.ids)), None
    failpoint("turn.message_stored")
    if not live.discarded and live.plan.turn_id not in ports.turns.unsettled:
        ports.clients.broadcast_frame(frames.transcript(ports.transcript.json()))
    tell_ended(ports, live, ending)
    failpoint("turn.ended")
    return _result(ports, live, ending, message=message)


def tell_ended(ports: ChatPorts, live: LiveTurn, ending: Ending) -> None:
    """Send the one final frame, unless it was sent when the chat was cleared."""
    if not live.told:
        live.told = True
        ports.clients.broadcast_log(final_frame(live, ending), live.log_key)


def dismiss(ports: ChatPorts, live: LiveTurn) -> None:
    """Say that a turn has ended whose chat is cleared, before clients are told of the clear.

    Hooks before `agents` 0.32 take the end of an answer that they do not watch for an empty answer.
    """
    if live.discarded and live.phase != "ended":
        tell_ended(ports, live, Ending("aborted"))


def report_failure(
    ports: ChatPorts, request_id: str, stage: Literal["persist", "turn", "stream", "recovery"]
) -> None:
    """Report that a request has failed, and where (OB-007)."""
    ports.context.events.emit("chat:request:failed", {"requestId": request_id, "stage": stage})


def partial_message(live: LiveTurn, outcome: TurnOutcome) -> UIMessage | None:
    """The answer as it is to be stored; None when there is nothing to show."""
    message = None if live.answer is None else live.answer.message()
    return message if message is None or outcome == "completed" else settled(message)


def settled(message: UIMessage) -> UIMessage:
    """The message with nothing left open: nobody will go on with it."""
    return with_parts(message, settle_parts(parts_of(message), reason=NOT_FINISHED))


def settled_part(part: JsonObject) -> JsonObject:
    """The part with nothing left open, unless it waits for a person."""
    return settle_parts([part], reason=NOT_FINISHED)[0]


def final_frame(live: LiveTurn, ending: LastWord) -> str:
    """The one frame that ends a request, live."""
    return terminal(
        live.plan.request_id,
        ending,
        message_ids=live.plan.message_ids,
        continuation=live.plan.continuation,
    )


def terminal(
    request_id: str,
    ending: LastWord,
    *,
    message_ids: Sequence[str],
    continuation: bool = False,
    replay: bool = False,
) -> str:
    """The one frame that ends a request."""
    return frames.chat_response(
        request_id,
        body=ending.error or "",
        done=True,
        error=ending.outcome == "error",
        continuation=continuation,
        replay=replay,
        message_ids=message_ids,
        outcome=ending.outcome,
    )


def _stored(
    ports: ChatPorts, live: LiveTurn, ending: Ending, *, message: UIMessage | None
) -> tuple[Ending, UIMessage | None]:
    """Store the end of a turn; an answer that cannot be stored as it is is kept by its texts."""
    try:
        _store(ports, live, ending, message=message)
    except NotJson as error:
        ports.errors.report(error)
        ending = Ending("error", UNSTORABLE)
        texts = [] if message is None else _texts_of(message)
        message = with_parts(message, texts) if message is not None and texts else None
        _store(ports, live, ending, message=message)
    return ending, message


def _texts_of(message: UIMessage) -> list[JsonObject]:
    return [
        {"type": str(part["type"]), "text": str(part.get("text", "")), "state": "done"}
        for part in parts_of(message)
        if part.get("type") in {"text", "reasoning"}
    ]


def _store(ports: ChatPorts, live: LiveTurn, ending: Ending, *, message: UIMessage | None) -> None:
    plan = live.plan
    with ports.transcript.changing():
        if message is not None:
            behind = plan.message_ids[-1] if plan.message_ids else None
            ports.transcript.put(message, after=behind)
        ports.turns.end(
            plan.turn_id,
            ending.outcome,
            now=ports.context.clock.now_ms(),
            error_text=ending.error,
            status="cleared" if live.discarded else "ended",
        )
        if live.phase == "streaming":
            ports.log.close(plan.stream_id, ending.outcome)
        _keep_awaiting(ports, live, message)
        if ending.outcome != "completed":
            ports.continuation.forget_wish_for(plan.assistant_message_id)
        _keep_newest(ports)
        ports.recovery.forget_asked(plan.turn_id)
    ports.log.sweep(ports.runs.bound_requests)


def _keep_awaiting(ports: ChatPorts, live: LiveTurn, message: UIMessage | None) -> None:
    """Keep what an answer was asked with that stops to ask a page; but nothing of a run's turn.

    What was approved in the answer before and has not run will not run any more.
    """
    plan = live.plan
    asked = ports.continuation.awaited()
    if asked is not None and asked != plan.assistant_message_id:
        lapse(ports.transcript, asked)
    if message is None or plan.run_id is not None or not asks_client(message):
        ports.continuation.forget_awaiting()
        return
    ports.continuation.keep_awaiting(
        Awaiting(
            message_id=plan.assistant_message_id,
            message_ids=plan.message_ids,
            body=plan.body,
            client_tools=plan.client_tools,
        )
    )


def _keep_newest(ports: ChatPorts) -> None:
    """Forget the oldest messages beyond what the agent keeps, but none that a turn still needs."""
    most = ports.hooks.most_messages()
    if most is None or len(ports.transcript) <= most:
        return
    needed = {
        message_id
        for turn in ports.turns.unfinished()
        for message_id in (*turn.message_ids, turn.assistant_message_id)
    }
    ports.transcript.keep_newest(most, besides=needed)


def _result(
    ports: ChatPorts, live: LiveTurn, ending: Ending, *, message: UIMessage | None
) -> TurnResult:
    plan = live.plan
    if message is not None:
        ports.hooks.responded(
            ChatResult(
                request_id=plan.request_id,
                message=message,
                status=ending.outcome,
                error=ending.error,
                continuation=plan.continuation,
            )
        )
    result = TurnResult(
        request_id=plan.request_id,
        status="skipped" if live.discarded else ending.outcome,
        error=ending.error,
        message=message,
        continuation=plan.continuation,
    )
    live.finish(result)
    return result
