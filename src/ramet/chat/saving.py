"""Turns that code starts by saving messages."""

from collections.abc import Sequence

from ramet.chat.feature import Chat
from ramet.chat.turn import Message, TurnResult
from ramet.chat.turns import TurnRequest
from ramet.core.json import JsonObject, to_json
from ramet.core.signals import AbortSignal
from ramet.errors import UnknownModelResult
from ramet.protocol import frames
from ramet.protocol.messages import trailing_user_ids


async def run_saved(
    chat: Chat, messages: Sequence[Message], signal: AbortSignal | None
) -> TurnResult:
    """Store messages at the end of the transcript and run a turn on them."""
    chat.turns.refuse_inside_turn()
    added = [_checked(message) for message in messages]

    def store(_: object) -> None:
        for message in added:
            chat.transcript.put(message)

    known = [message for message in chat.transcript.all() if message["id"] not in _ids(added)]
    live = chat.turns.accept(
        TurnRequest(
            trigger="programmatic",
            store=store,
            message_ids=trailing_user_ids([*known, *added]),
        )
    )
    chat.ports.clients.broadcast_frame(frames.transcript(chat.transcript.json()))
    chat.turns.enqueue(live)
    if signal is not None:
        remove = signal.add_listener(lambda _: live.controller.abort(signal.reason_text()))
        live.when_finished(lambda _: remove())
    return await chat.turns.result_of(live)


def _ids(messages: Sequence[JsonObject]) -> set[str]:
    return {str(message["id"]) for message in messages}


def _checked(message: object) -> JsonObject:
    copied = to_json(message)
    if not isinstance(copied, dict) or not {"id", "role", "parts"} <= copied.keys():
        raise UnknownModelResult(f"A message needs an id, a role and parts: {message!r}")
    return copied
