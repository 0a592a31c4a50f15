"""Takes what pages answer to tool calls: the first answer stands, is stored, then told to all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramet.chat.continuation_store import Wish
from ramet.chat.continuing import Continuing
from ramet.chat.lapsing import LAPSED, has_gone_on
from ramet.chat.live_turn import LiveTurn
from ramet.chat.partial import folded
from ramet.chat.ports import ChatPorts
from ramet.chat.recovery_policy import tool_names
from ramet.chat.stream_log import StoredStream
from ramet.chat.turn_store import StoredTurn
from ramet.chat.turns import Turns
from ramet.connections.connection import Connection
from ramet.connections.link import ClientLink
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.core.public_errors import public_text
from ramet.errors import ChunkTooLarge, StorageError
from ramet.protocol import chunks, frames, tool_parts
from ramet.protocol.client_answers import answer_chunk, call_part
from ramet.protocol.incoming import ToolApproval, ToolResult
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.ui_message import UIMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a tool call is."""

    message: UIMessage
    """The answer that has it, as clients see it."""
    stored: UIMessage | None
    """The same as the transcript has it; None when the call is in the log of a stream only."""
    live: LiveTurn | None
    """The turn that writes to the answer now."""
    log: str | None = None
    """The log of a lost turn that has the call as well: the turn that goes on begins with it."""

    @property
    def streams(self) -> bool:
        """Whether the call was made by the turn that streams: the log has it, and goes on."""
        return self.live is not None and not (
            self.live.plan.continuation and self.stored is not None
        )


class ClientAnswers:
    """Results and approvals that pages send."""

    def __init__(
        self,
        ports: ChatPorts,
        turns: Turns,
        continuing: Continuing,
        *,
        park: Callable[[ClientLink], None],
    ) -> None:
        self._ports = ports
        self._turns = turns
        self._continuing = continuing
        self._park = park

    def take(self, connection: Connection, answer: ToolResult | ToolApproval) -> None:
        """Store an answer and tell everybody; one to a call that is not open changes nothing."""
        try:
            changed = self._take(connection.link, answer)
        except (StorageError, ChunkTooLarge) as error:
            self._ports.errors.report(error)
            text = public_text(error, self._ports.context.ids)
            connection.send_frame(frames.ramet_error(text))
            return
        if changed:
            self._continuing.recheck()
            self._ports.waking.release()

    def _take(self, sender: ClientLink, answer: ToolResult | ToolApproval) -> bool:
        place = self._place_of(answer.tool_call_id)
        changes = () if place is None else self._changes(place, answer)
        if place is None or not changes:
            return False
        goes_on = answer.auto_continue and not self._is_late(place)
        if goes_on:
            self._ports.waking.promise()  # what is wished goes on although nobody comes back
        with self._ports.transcript.changing():
            if goes_on:
                tools = answer.client_tools if isinstance(answer, ToolResult) else None
                wish = Wish(message_id=str(place.message["id"]), client_tools=tools)
                self._continuing.wish(wish, sender)
            self._store(place, changes)
        failpoint("chat.answer.stored")
        self._show(place, changes)
        if goes_on:
            self._park(sender)
        return True

    def _changes(self, place: _Place, answer: ToolResult | ToolApproval) -> Sequence[JsonObject]:
        """What an answer comes to; nothing when the call is not open for it."""
        part = call_part(place.message, answer.tool_call_id)
        chunk = None if part is None else answer_chunk(part, answer)
        if part is None or chunk is None:
            return ()
        if isinstance(answer, ToolResult):
            return () if self._runs_here(place, part) else (chunk,)
        if answer.approved and self._is_late(place):
            return (chunk, chunks.tool_output_error(answer.tool_call_id, LAPSED))
        return (chunk,)

    def _is_late(self, place: _Place) -> bool:
        return place.live is None and has_gone_on(self._ports.transcript, place.message)

    def _runs_here(self, place: _Place, part: JsonObject) -> bool:
        """Whether a call is the server's, so that no page gives its output.

        Of `AIChatAgent` that is known of calls that a person is asked about, by the tool's name.
        """
        if self._ports.runs_here(str(part["toolCallId"])):
            return True
        if part.get("approval") is None:
            return False
        if self._ports.family.runs_approved:
            return True
        return tool_parts.tool_name(part) not in tool_names(self._tools_of(place))

    def _tools_of(self, place: _Place) -> Sequence[JsonObject]:
        """The tools of the page that an answer was asked with."""
        if place.live is not None:
            return place.live.plan.client_tools
        lost = self._lost_turn_of(place.message)
        if lost is not None:
            return self._ports.recovery.asked(lost.turn_id).client_tools
        return self._ports.continuation.awaiting(str(place.message["id"])).client_tools

    def _store(self, place: _Place, changes: Sequence[JsonObject]) -> None:
        """Keep what an answer comes to; the turn that streams the call keeps it itself."""
        if place.streams:
            return
        if place.stored is not None:
            self._ports.transcript.put(_with_chunks(place.stored, changes))
        if place.log is not None:
            for chunk in changes:
                self._ports.log.append_behind(place.log, chunks.chunk_body(chunk))

    def _show(self, place: _Place, changes: Sequence[JsonObject]) -> None:
        live = place.live
        for chunk in changes:
            if live is not None and place.streams and live.write is not None:
                live.write(chunk)
            elif live is not None and live.answer is not None:
                live.answer.add(chunk)
        self._ports.clients.broadcast_frame(
            frames.message_updated(_with_chunks(place.message, changes))
        )

    def _place_of(self, tool_call_id: str) -> _Place | None:
        stored = self._ports.transcript.of_call(tool_call_id)
        for live in self._turns:
            if live.discarded or tool_call_id in live.under_way:
                return None
            message = None if live.answer is None else live.answer.message()
            if message is not None and call_part(message, tool_call_id) is not None:
                return _Place(message=message, stored=stored, live=live)
        if stored is None:
            return self._place_in_log(tool_call_id)
        lost = self._lost_turn_of(stored)
        log = None if lost is None or lost.continuation else self._log_of(lost)
        behind = None if log is None else log.stream_id
        return _Place(message=stored, stored=stored, live=None, log=behind)

    def _place_in_log(self, tool_call_id: str) -> _Place | None:
        """Where a call is that a lost turn has made which went on with an earlier answer."""
        for turn in self._ports.turns.unfinished():
            log = self._log_of(turn) if turn.continuation else None
            message = None if log is None else folded(self._ports, log)[0].message()
            if log and message and call_part(message, tool_call_id) is not None:
                return _Place(message=message, stored=None, live=None, log=log.stream_id)
        return None

    def _log_of(self, turn: StoredTurn) -> StoredStream | None:
        """The log of a lost turn; of one that is about to go on for it, the log it begins with."""
        own, live = self._ports.log.of_turn(turn.turn_id), self._turns.find(turn.request_id)
        if own is not None or live is None or live.plan.resumes is None:
            return own
        return self._ports.log.get(live.plan.resumes)

    def _lost_turn_of(self, message: UIMessage) -> StoredTurn | None:
        """The turn that has not ended and whose answer a message is."""
        for turn in self._ports.turns.unfinished():
            if turn.assistant_message_id == message["id"]:
                return turn
        return None


def _with_chunks(message: UIMessage, changes: Sequence[JsonObject]) -> UIMessage:
    parts = parts_of(message)
    for chunk in changes:
        parts = apply_chunk_to_parts(parts, chunk)
    return with_parts(message, parts)
