"""What a continuation says of the tool calls of the message it extends, which clients know already.

Clients may not take a result of an earlier call in a new stream (PROTOCOL 4.7): they are sent the
message as it is then, and the stream has new parts only.
"""

from collections.abc import Mapping

from ramet.chat.live_turn import LiveTurn
from ramet.chat.ports import ChatPorts
from ramet.chat.turn import Chunk
from ramet.core.json import JsonObject, to_json
from ramet.protocol import frames
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.tool_parts import tool_call_id


class EarlierCalls:
    """The tool calls that were there before a turn."""

    def __init__(self, ports: ChatPorts, live: LiveTurn) -> None:
        self._ports = ports
        self._live = live
        extended = (
            ports.transcript.some([live.plan.assistant_message_id])
            if live.plan.continuation
            else []
        )
        self._calls = {tool_call_id(part) for each in extended for part in parts_of(each)} - {None}

    def take(self, chunk: Chunk) -> bool:
        """Store what a chunk says of an earlier call, and tell everybody; False for other chunks.

        What repeats the call as it stands changes nothing.
        """
        if not self._calls or not isinstance(chunk, Mapping):
            return False
        call_id = chunk.get("toolCallId")
        if not isinstance(call_id, str) or call_id not in self._calls:
            return False
        plain = to_json(chunk)
        if isinstance(plain, dict) and not self._live.discarded:
            self._store(plain)
        return True

    def _store(self, chunk: JsonObject) -> None:
        transcript, message_id = self._ports.transcript, self._live.plan.assistant_message_id
        for message in transcript.some([message_id]):
            parts = parts_of(message)
            changed = apply_chunk_to_parts(parts, chunk)
            if changed == parts:
                return
            with transcript.changing():
                transcript.put(with_parts(message, changed))
            answer = self._live.answer
            if answer is not None:
                answer.add(chunk)
            shown = None if answer is None else answer.message()
            self._ports.clients.broadcast_frame(
                frames.message_updated(shown or with_parts(message, changed))
            )
