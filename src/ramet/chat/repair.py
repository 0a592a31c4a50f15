"""Makes a producer's chunks a stream that every client can follow (PROTOCOL 4.10).

A chunk that refers to a part nobody opened makes browsers throw away the answer; here it opens the
part or is left out. The first chunk is always a `start` with the server's message id.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ramet.chat.turn import Chunk
from ramet.core.json import JsonObject, JsonValue, to_json
from ramet.errors import UnknownModelResult
from ramet.protocol import chunks

_log = logging.getLogger("ramet.chat")

_DELTA_KEYS: Final = ("type", "id", "delta")
_CLOSING_ALL: Final = frozenset({chunks.FINISH_STEP, chunks.FINISH})
_INPUTS: Final = frozenset({chunks.TOOL_INPUT_AVAILABLE, chunks.TOOL_INPUT_ERROR})
_NEEDING_CALL: Final = frozenset(
    {
        chunks.TOOL_OUTPUT_AVAILABLE,
        chunks.TOOL_OUTPUT_ERROR,
        chunks.TOOL_OUTPUT_DENIED,
        chunks.TOOL_APPROVAL_REQUEST,
    }
)


class ChunkRepair:
    """Takes the chunks of one answer in order and gives those to send."""

    def __init__(self, message_id: str | None, *, known_calls: Iterable[str] = ()) -> None:
        """Begin an answer.

        Args:
            message_id: The id that the `start` chunk gets; None when it extends a message.
            known_calls: Tool calls that clients have seen before this answer, which may end in it.
        """
        self._message_id = message_id
        self._started = False
        self._open: dict[tuple[str, str], None] = {}
        self._plain: str | None = None
        self._plain_parts = 0
        self._known = set(known_calls)
        self._calls: set[str] = set()
        self._complete: set[str] = set()

    def take(self, chunk: Chunk) -> Sequence[JsonObject]:
        """Give what to send for a chunk: usually the chunk itself.

        Raises:
            UnknownModelResult: It is not a chunk.
        """
        if isinstance(chunk, str):
            return [*self._start(), *self._plain_text(chunk)]
        chunk_type = chunk.get("type")
        if not isinstance(chunk_type, str):
            raise UnknownModelResult(f"A chunk needs a type: {dict(chunk)!r}")
        delta = self._open_delta(chunk_type, chunk)
        if delta is not None:
            return (delta,)
        plain = _plain_data(chunk)
        if chunk_type == chunks.START:
            return self._take_start(plain)
        return [*self._start(), *self._take(chunk_type, plain)]

    def resume(self, stored: Iterable[JsonObject]) -> None:
        """Take note of the chunks that were sent before, by a producer that was lost."""
        for chunk in stored:
            self._started = True
            chunk_type, part_id = str(chunk["type"]), str(chunk.get("id"))
            if chunk_type in chunks.SPOKEN_STARTS:
                self._open[chunks.SPOKEN_KINDS[chunk_type], part_id] = None
            elif chunk_type in chunks.SPOKEN_KINDS and chunk_type not in chunks.SPOKEN_DELTAS:
                self._open.pop((chunks.SPOKEN_KINDS[chunk_type], part_id), None)
            else:
                self._follows(chunk_type, chunk)

    def end(self) -> Sequence[JsonObject]:
        """Give what closes the parts that are open: at the end, or where a producer was lost."""
        return self._close_all()

    def _open_delta(self, chunk_type: str, chunk: Mapping[str, object]) -> JsonObject | None:
        """Nearly every chunk, told by little: a piece of text for a part that is open."""
        if (
            chunk_type not in chunks.SPOKEN_DELTAS
            or len(chunk) != len(_DELTA_KEYS)
            or self._plain is not None
        ):
            return None
        part_id, delta = chunk.get("id"), chunk.get("delta")
        if not isinstance(delta, str) or not isinstance(part_id, str):
            return None
        if (chunks.SPOKEN_KINDS[chunk_type], part_id) not in self._open:
            return None
        return {"type": chunk_type, "id": part_id, "delta": delta}

    def _start(self) -> Sequence[JsonObject]:
        if self._started:
            return ()
        self._started = True
        return (chunks.start(self._message_id),)

    def _take_start(self, chunk: JsonObject) -> Sequence[JsonObject]:
        if not self._started:
            self._started = True
            kept = {key: value for key, value in chunk.items() if key != "messageId"}
            return ({**chunks.start(self._message_id), **kept},)
        metadata = chunk.get("messageMetadata")
        return () if metadata is None else (chunks.message_metadata(metadata),)

    def _take(self, chunk_type: str, chunk: JsonObject) -> Sequence[JsonObject]:
        kind = chunks.SPOKEN_KINDS.get(chunk_type)
        if kind is not None:
            return self._take_text(chunk_type, kind, chunk)
        if chunk_type.startswith(chunks.DATA_PREFIX):
            return (chunk,)
        if chunk_type in _CLOSING_ALL:
            return (*self._close_all(), chunk)
        before = self._close_plain()
        return (*before, chunk) if self._follows(chunk_type, chunk) else before

    def _take_text(self, chunk_type: str, kind: str, chunk: JsonObject) -> Sequence[JsonObject]:
        part_id = chunk.get("id")
        if not isinstance(part_id, str):
            part_id = kind
            chunk = {**chunk, "id": part_id}
        is_open = (kind, part_id) in self._open
        if chunk_type in chunks.SPOKEN_DELTAS and is_open:
            return (chunk,)
        before = self._close_plain()
        if chunk_type in chunks.SPOKEN_STARTS:
            self._open[kind, part_id] = None
            return (*before, chunk)
        if chunk_type in chunks.SPOKEN_DELTAS:
            self._open[kind, part_id] = None
            return (*before, _opening(kind, part_id), chunk)
        self._open.pop((kind, part_id), None)
        return (*before, chunk) if is_open else before

    def _plain_text(self, text: str) -> Sequence[JsonObject]:
        if not text:
            return ()
        if self._plain is not None:
            return (chunks.text_delta(self._plain, text),)
        self._plain_parts += 1
        self._plain = f"plain-{self._plain_parts}"
        return (chunks.text_start(self._plain), chunks.text_delta(self._plain, text))

    def _close_plain(self) -> Sequence[JsonObject]:
        if self._plain is None:
            return ()
        closed, self._plain = self._plain, None
        return (chunks.text_end(closed),)

    def _close_all(self) -> Sequence[JsonObject]:
        closed = [*self._close_plain(), *(_closing(kind, part_id) for kind, part_id in self._open)]
        self._open.clear()
        return closed

    def _follows(self, chunk_type: str, chunk: Mapping[str, JsonValue]) -> bool:
        """Whether clients can take a chunk that may be about a tool call; notes the call."""
        call_id = chunk.get("toolCallId")
        if not isinstance(call_id, str):
            return True
        if chunk_type == chunks.TOOL_INPUT_START:
            new = call_id not in self._calls
            self._calls.add(call_id)
            return new
        if chunk_type == chunks.TOOL_INPUT_DELTA:
            return call_id in self._calls and call_id not in self._complete
        if chunk_type in _INPUTS:
            new = call_id not in self._complete
            self._calls.add(call_id)
            self._complete.add(call_id)
            return new
        if chunk_type in _NEEDING_CALL and call_id not in self._calls | self._known:
            _log.warning("Left out a %s chunk of an unknown tool call %r", chunk_type, call_id)
            return False
        return True


def _opening(kind: str, part_id: str) -> JsonObject:
    return chunks.text_start(part_id) if kind == "text" else chunks.reasoning_start(part_id)


def _closing(kind: str, part_id: str) -> JsonObject:
    return chunks.text_end(part_id) if kind == "text" else chunks.reasoning_end(part_id)


def _plain_data(chunk: Mapping[str, object]) -> JsonObject:
    """The chunk as JSON data of its own, which its producer cannot change any more."""
    copied: JsonObject = {}
    for key, value in chunk.items():
        if isinstance(value, str | bool | None):
            copied[key] = value
        else:
            copied[key] = to_json(value)
    return copied
