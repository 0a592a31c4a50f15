"""Takes the chat frames of clients; none of this waits: turns go on by themselves (D13)."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from ramet.chat.client_tools import ClientAnswers
from ramet.chat.concurrency import Drop
from ramet.chat.ports import ChatPorts
from ramet.chat.resuming import Resuming
from ramet.chat.settling import Ending, report_failure, terminal
from ramet.chat.submits import PlannedSubmit, Submits
from ramet.chat.submitted import added, replaced
from ramet.chat.turns import TurnRequest, Turns
from ramet.connections.connection import Connection
from ramet.connections.inbox import Inbox
from ramet.core.public_errors import public_text
from ramet.errors import InvalidOptions, StorageError
from ramet.protocol import frames
from ramet.protocol.incoming import (
    ChatCancel,
    ChatClear,
    ChatMessagesPush,
    ChatRequest,
    ResumeAck,
    ResumeRequest,
    ToolApproval,
    ToolResult,
)
from ramet.protocol.messages import trailing_user_ids
from ramet.protocol.ui_message import UIMessage

AT_WORK = "This agent is working on a run for its parent; write again when that has ended."


class ChatWire:
    """The chat as clients reach it."""

    def __init__(
        self,
        ports: ChatPorts,
        turns: Turns,
        resuming: Resuming,
        *,
        submits: Submits,
        answers: ClientAnswers,
        clear: Callable[[Connection | None], None],
    ) -> None:
        self._ports = ports
        self._turns = turns
        self._resuming = resuming
        self._submits = submits
        self._answers = answers
        self._clear = clear

    def listen(self, inbox: Inbox) -> None:
        """Take the chat frames of the agent's clients."""
        inbox.on(ChatRequest, self._request)
        inbox.on(ChatMessagesPush, self._push)
        inbox.on(ChatClear, lambda connection, _: self._clear(connection))
        inbox.on(ChatCancel, lambda _, frame: self._turns.cancel(frame.id))
        inbox.on(ToolResult, self._answers.take)
        inbox.on(ToolApproval, self._answers.take)
        inbox.on(ResumeRequest, lambda connection, frame: self._probe(connection, frame))
        inbox.on(ResumeAck, lambda connection, frame: self._ack(connection, frame))

    def _request(self, connection: Connection, frame: ChatRequest) -> None:
        try:
            self._answer(connection, frame)
        except (StorageError, InvalidOptions) as error:
            self._ports.errors.report(error)
            report_failure(self._ports, frame.id, "persist")
            text = public_text(error, self._ports.context.ids)
            self._give_back(connection, frame, Ending("error", text))

    def _answer(self, connection: Connection, frame: ChatRequest) -> None:
        known = self._turns.find(frame.id) or self._ports.turns.of_request(frame.id)
        if known is not None:
            self._resuming.offer(connection, frame.id)
        elif self._is_closed(regenerates=frame.trigger == "regenerate-message"):
            self._give_back(connection, frame, Ending("error", AT_WORK))
        else:
            self._accept(connection, frame)

    def _accept(self, connection: Connection, frame: ChatRequest) -> None:
        admission = self._submits.admission(frame)
        if isinstance(admission, Drop):
            self._give_back(connection, frame, Ending("skipped"))
            return
        planned = self._submits.plan(frame, admission)
        live = self._turns.accept(
            TurnRequest(
                trigger="ws-chat",
                request_id=frame.id,
                store=lambda _: self._store(frame, planned),
                message_ids=planned.message_ids,
                body=frame.body,
                client_tools=frame.client_tools or (),
                sender=connection.link,
                supersedes=planned.supersedes,
                submit=planned.submit,
            )
        )
        self._share_transcript(besides=None if planned.joined else connection)
        self._turns.enqueue(live, quiet=planned.quiet)

    def _store(self, frame: ChatRequest, planned: PlannedSubmit) -> None:
        """Store what a request brings; an answer that still streams is not the client's to give."""
        transcript, incoming = self._ports.transcript, self._without_running(planned.messages)
        if self._ports.family.prunes_on_submit:
            gone = planned.submit.absorbed if planned.submit is not None else frozenset()
            transcript.replace(self._replaced(incoming, gone=gone))
            return
        if frame.trigger == "regenerate-message" and incoming:
            transcript.cut_after(str(incoming[-1]["id"]))
        for message in added(incoming, transcript.all()):
            transcript.put(message)

    def _push(self, connection: Connection, frame: ChatMessagesPush) -> None:
        if not self._ports.family.takes_transcripts:
            return
        if self._is_closed(regenerates=True):
            connection.send_frame(frames.transcript(self._ports.transcript.json()))
            return
        transcript = self._ports.transcript
        with transcript.changing():
            transcript.replace(self._replaced(self._without_running(frame.messages)))
        self._share_transcript(besides=connection)

    def _probe(self, connection: Connection, frame: ResumeRequest) -> None:
        self._resuming.probed(connection, frame.probe_id)

    def _ack(self, connection: Connection, frame: ResumeAck) -> None:
        self._resuming.acknowledged(connection, frame.id)

    def _without_running(self, messages: Sequence[UIMessage]) -> list[UIMessage]:
        running = {live.plan.assistant_message_id for live in self._turns}
        return [message for message in messages if message["id"] not in running]

    def _replaced(
        self, incoming: list[UIMessage], *, gone: frozenset[str] = frozenset()
    ) -> list[UIMessage]:
        asked = {message_id for live in self._turns for message_id in live.plan.message_ids}
        return replaced(incoming, self._ports.transcript.all(), asked=asked - gone)

    def _is_closed(self, *, regenerates: bool) -> bool:
        """Whether people may not write, because a run for a parent is under way.

        Where they may, a question waits for its place behind the run's. It may not come before a
        run's turn that was lost and is to go on, nor change what the run has said.
        """
        runs = self._ports.runs.unsealed()
        if not runs or self._ports.context.options.drill_in == "refuse" or regenerates:
            return bool(runs)
        turns = (self._ports.turns.of_request(run.request_id) for run in runs)
        return any(turn is not None and turn.status == "recovering" for turn in turns)

    def _share_transcript(self, *, besides: Connection | None) -> None:
        frame = frames.transcript(self._ports.transcript.json())
        left_out = None if besides is None else besides.link
        self._ports.clients.broadcast_frame(frame, only=lambda link: link is not left_out)

    def _give_back(self, connection: Connection, frame: ChatRequest, ending: Ending) -> None:
        """Turn a request down: the client takes its message back and is told why."""
        with suppress(StorageError):  # what cannot be read cannot be told, but the request ends
            connection.send_frame(frames.transcript(self._ports.transcript.json()))
        ids = trailing_user_ids(frame.messages)
        connection.send_frame(terminal(frame.id, ending, message_ids=ids))
