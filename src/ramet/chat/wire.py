"""Takes the chat frames of clients; none of this waits: turns go on by themselves (D13)."""

from collections.abc import Callable

from ramet.chat.ports import ChatPorts
from ramet.chat.resuming import Resuming
from ramet.chat.settling import Ending, terminal
from ramet.chat.submitted import added, replaced
from ramet.chat.turns import TurnRequest, Turns
from ramet.connections.connection import Connection
from ramet.connections.inbox import Inbox
from ramet.core.json import JsonObject
from ramet.core.public_errors import public_text
from ramet.errors import StorageError
from ramet.protocol import frames
from ramet.protocol.incoming import (
    ChatCancel,
    ChatClear,
    ChatMessagesPush,
    ChatRequest,
    ResumeAck,
    ResumeRequest,
)
from ramet.protocol.messages import trailing_user_ids

AT_WORK = "This agent is working on a run for its parent; write again when that has ended."


class ChatWire:
    """The chat as clients reach it."""

    def __init__(
        self,
        ports: ChatPorts,
        turns: Turns,
        resuming: Resuming,
        *,
        clear: Callable[[Connection | None], None],
    ) -> None:
        self._ports = ports
        self._turns = turns
        self._resuming = resuming
        self._clear = clear

    def listen(self, inbox: Inbox) -> None:
        """Take the chat frames of the agent's clients."""
        inbox.on(ChatRequest, self._request)
        inbox.on(ChatMessagesPush, self._push)
        inbox.on(ChatClear, lambda connection, _: self._clear(connection))
        inbox.on(ChatCancel, lambda _, frame: self._turns.cancel(frame.id))
        inbox.on(ResumeRequest, lambda connection, frame: self._probe(connection, frame))
        inbox.on(ResumeAck, lambda connection, frame: self._ack(connection, frame))

    def _request(self, connection: Connection, frame: ChatRequest) -> None:
        known = self._turns.find(frame.id) or self._ports.turns.of_request(frame.id)
        if known is not None:
            self._resuming.offer(connection, frame.id)
            return
        if self._is_closed():
            self._refuse(connection, frame, AT_WORK)
            return
        try:
            self._accept(connection, frame)
        except StorageError as error:
            self._ports.errors.report(error)
            self._refuse(connection, frame, public_text(error, self._ports.context.ids))

    def _accept(self, connection: Connection, frame: ChatRequest) -> None:
        live = self._turns.accept(
            TurnRequest(
                trigger="ws-chat",
                request_id=frame.id,
                store=lambda _: self._store(frame),
                message_ids=trailing_user_ids(frame.messages),
                body=frame.body,
                client_tools=frame.client_tools or (),
                sender=connection.link,
            )
        )
        self._share_transcript(besides=connection)
        self._turns.enqueue(live)

    def _store(self, frame: ChatRequest) -> None:
        """Store what a request brings; an answer that still streams is not the client's to give."""
        transcript, incoming = self._ports.transcript, self._without_running(frame.messages)
        if self._ports.family.prunes_on_submit:
            transcript.replace(self._replaced(incoming))
            return
        if frame.trigger == "regenerate-message" and incoming:
            transcript.cut_after(str(incoming[-1]["id"]))
        for message in added(incoming, transcript.all()):
            transcript.put(message)

    def _push(self, connection: Connection, frame: ChatMessagesPush) -> None:
        if not self._ports.family.takes_transcripts or self._is_closed():
            return
        transcript = self._ports.transcript
        with transcript.changing():
            transcript.replace(self._replaced(self._without_running(frame.messages)))
        self._share_transcript(besides=connection)

    def _probe(self, connection: Connection, frame: ResumeRequest) -> None:
        self._resuming.probed(connection, frame.probe_id)

    def _ack(self, connection: Connection, frame: ResumeAck) -> None:
        self._resuming.acknowledged(connection, frame.id)

    def _without_running(self, messages: list[JsonObject]) -> list[JsonObject]:
        running = {live.plan.assistant_message_id for live in self._turns}
        return [message for message in messages if message["id"] not in running]

    def _replaced(self, incoming: list[JsonObject]) -> list[JsonObject]:
        asked = {message_id for live in self._turns for message_id in live.plan.message_ids}
        return replaced(incoming, self._ports.transcript.all(), asked=asked)

    def _is_closed(self) -> bool:
        """Whether people may not write, because a run for a parent is under way."""
        if self._ports.context.options.drill_in != "refuse":
            return False
        return any(live.plan.run_id is not None for live in self._turns)

    def _share_transcript(self, *, besides: Connection) -> None:
        frame = frames.chat_messages(self._ports.transcript.all())
        self._ports.clients.broadcast_frame(frame, only=lambda link: link is not besides.link)

    def _refuse(self, connection: Connection, frame: ChatRequest, reason: str) -> None:
        """Turn a request down: the client takes its message back and is told why."""
        connection.send_frame(frames.chat_messages(self._ports.transcript.all()))
        ids = trailing_user_ids(frame.messages)
        connection.send_frame(terminal(frame.id, Ending("error", reason), message_ids=ids))
