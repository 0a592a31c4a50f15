"""Turns that code starts: on messages that it saves, or going on with the last answer."""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ramet.chat.feature import Chat
from ramet.chat.live_turn import LiveTurn
from ramet.chat.turn import TurnResult
from ramet.chat.turns import TurnRequest
from ramet.core.ids import Ids
from ramet.core.json import NotJson, to_json
from ramet.core.signals import AbortSignal
from ramet.errors import InvalidArguments, UnknownModelResult
from ramet.protocol import frames
from ramet.protocol.messages import trailing_user_ids, user_message
from ramet.protocol.ui_message import UIMessage, as_message

ADD_MODES: Final = ("append", "upsert")

Given: TypeAlias = str | UIMessage | Sequence[UIMessage]
"""What a user says: a text, a UI message, or several."""


async def run_saved(chat: Chat, messages: Given, signal: AbortSignal | None) -> TurnResult:
    """Store messages at the end of the transcript and run a turn on them."""
    return await run_added(chat, given_messages(messages, chat.ports.context.ids), signal)


async def run_added(
    chat: Chat, added: Sequence[UIMessage], signal: AbortSignal | None
) -> TurnResult:
    """Store checked messages and run a turn on them; after turns that a crash has cut."""
    chat.turns.refuse_inside_turn()
    await chat.lost_first()
    return await chat.turns.result_of(begun(chat, added, signal))


def begun(
    chat: Chat,
    added: Sequence[UIMessage],
    signal: AbortSignal | None,
    *,
    before: Callable[[LiveTurn], object] | None = None,
) -> LiveTurn:
    """Store checked messages and queue a turn on them; `before` sees it before it can run."""
    chat.turns.refuse_inside_turn()

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
    if before is not None:
        before(live)
    return _queued(chat, live, signal)


async def run_continued(chat: Chat, signal: AbortSignal | None) -> TurnResult:
    """Run a turn that extends the last answer; skipped when the last message is none (TQ-009)."""
    chat.turns.refuse_inside_turn()
    await chat.lost_first()
    messages = chat.transcript.all()
    if not messages or messages[-1]["role"] != "assistant":
        return TurnResult(request_id="", status="skipped", continuation=True)
    request = TurnRequest(
        trigger="programmatic", store=lambda _: None, continues=str(messages[-1]["id"])
    )
    return await chat.turns.result_of(_queued(chat, chat.turns.accept(request), signal))


def add_messages(chat: Chat, added: Sequence[UIMessage], *, mode: str, parent: str | None) -> None:
    """Store checked messages and run nothing (TQ-013).

    Raises:
        InvalidArguments: There is no such mode, or no message `parent`; nothing was stored.
    """
    if mode not in ADD_MODES:
        raise InvalidArguments(f"mode is one of {', '.join(map(repr, ADD_MODES))}, not {mode!r}")
    if parent is not None and parent not in chat.transcript:
        raise InvalidArguments(f"There is no message {parent!r} to add messages after")
    with chat.transcript.changing():
        for message in added:
            message_id = str(message["id"])
            if mode == "upsert" or message_id not in chat.transcript:
                chat.transcript.put(message, after=parent)
            parent = None if parent is None else message_id
    if added and chat.turns.current() is None:
        chat.ports.clients.broadcast_frame(frames.chat_messages(chat.transcript.all()))


def checked_message(message: object) -> UIMessage:
    """A copy of a UI message that code has given.

    Raises:
        UnknownModelResult: It lacks what a message has.
        NotJson: JSON cannot carry it.
    """
    try:
        copied = to_json(message)
    except NotJson as error:
        raise NotJson(f"A message is not JSON: {reprlib.repr(message)} ({error})") from error
    if not isinstance(copied, dict) or not {"id", "role", "parts"} <= copied.keys():
        raise UnknownModelResult(f"A message needs an id, a role and parts: {message!r}")
    return as_message(copied)


def given_messages(given: Given, ids: Ids) -> list[UIMessage]:
    """What a user says, as messages; empty for an empty text or list.

    Raises:
        UnknownModelResult: It is something else.
    """
    if isinstance(given, str):
        return [user_message(given, id=ids.message_id("user_"))] if given else []
    if isinstance(given, Mapping):
        return [checked_message(given)]
    if not isinstance(given, Sequence):
        raise UnknownModelResult(f"A text or messages are expected, not {given!r}")
    return [checked_message(message) for message in given]


def _queued(chat: Chat, live: LiveTurn, signal: AbortSignal | None) -> LiveTurn:
    chat.turns.enqueue(live)
    if signal is not None:
        remove = signal.add_listener(lambda _: live.controller.abort(signal.reason_text()))
        live.when_finished(lambda _: remove())
    return live


def _ids(messages: Sequence[UIMessage]) -> set[str]:
    return {str(message["id"]) for message in messages}
