"""Folds chunks into the parts of a message: purely, one at a time, or into a growing message."""

from collections.abc import Iterable, Mapping, Sequence

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks, tool_parts
from ramet.protocol.part_edits import (
    Append,
    ChunkObject,
    Extend,
    PartKey,
    Replace,
    edit_for,
    keys_of,
    with_metadata,
)
from ramet.protocol.ui_message import UIMessage, UIPart


def apply_chunk_to_parts(parts: Sequence[UIPart], chunk: ChunkObject) -> list[UIPart]:
    """Give the parts as they are after a chunk; neither argument is changed.

    What a chunk says of parts it cannot find, or without the fields of its type, changes nothing.
    """
    result = list(parts)
    match edit_for(chunk, _Scan(result)):
        case Append(part=part):
            result.append(part)
        case Replace(at=at, part=part):
            result[at] = part
        case Extend(at=at, delta=delta, metadata=metadata):
            longer: JsonObject = {**result[at], "text": _text(result[at]) + delta}
            result[at] = with_metadata(longer, metadata)
    return result


def settle_parts(parts: Iterable[JsonObject], *, reason: str) -> list[JsonObject]:
    """Give the parts of a message whose producer is gone, with nothing left open (D4).

    Tool calls without a final result become errors with the reason; those that wait for a person
    keep waiting. Streaming text is done. The parts given are not changed.
    """
    return [_settled(part, reason) for part in parts]


class MessageFold:
    """An assistant message that grows chunk by chunk, each in constant time (MB-001 … 008)."""

    def __init__(
        self,
        message_id: str,
        *,
        parts: Iterable[JsonObject] = (),
        metadata: JsonObject | None = None,
        continuation: bool = False,
    ) -> None:
        """Begin a message.

        Args:
            message_id: The id it has until a `start` chunk names another.
            parts: What it holds already.
            metadata: Its metadata so far.
            continuation: It goes on with a stored message, whose id no chunk may change.
        """
        self.message_id = message_id
        self.error: str | None = None
        """The text of the last `error` chunk: the turn failed."""
        self._metadata: JsonObject = dict(metadata or {})
        self._continuation = continuation
        self._parts = _GrowingParts(parts)

    def apply(self, chunk: ChunkObject) -> None:
        """Take in one chunk."""
        edit = edit_for(chunk, self._parts)
        if edit is None:
            self._apply_to_message(chunk)
        else:
            self._parts.apply(edit)

    @property
    def metadata(self) -> JsonObject:
        """The metadata merged so far."""
        return dict(self._metadata)

    @property
    def has_content(self) -> bool:
        """Whether there is anything to show: a part that is neither a step marker nor empty."""
        return any(map(_is_content, self._parts.snapshot()))

    def parts(self) -> list[JsonObject]:
        """Give the parts as they are now; later chunks do not change them."""
        return [{**part} for part in self._parts.snapshot()]

    def message(self) -> UIMessage:
        """Give the whole message as it is now; later chunks do not change it."""
        message: UIMessage = {"id": self.message_id, "role": "assistant", "parts": self.parts()}
        if self._metadata:
            message["metadata"] = self.metadata
        return message

    def _apply_to_message(self, chunk: ChunkObject) -> None:
        match chunk.get("type"):
            case chunks.START:
                self._start(chunk.get("messageId"))
                self._merge(chunk.get("messageMetadata"))
            case chunks.FINISH | chunks.MESSAGE_METADATA:
                self._merge(chunk.get("messageMetadata"))
            case chunks.ERROR:
                text = chunk.get("errorText")
                self.error = text if isinstance(text, str) else ""

    def _start(self, message_id: JsonValue) -> None:
        if isinstance(message_id, str) and message_id and not self._continuation:
            self.message_id = message_id

    def _merge(self, metadata: JsonValue) -> None:
        if isinstance(metadata, dict):
            self._metadata = _merged(self._metadata, metadata)


class _Scan:
    """Finds parts by looking at all of them."""

    def __init__(self, parts: list[JsonObject]) -> None:
        self._parts = parts

    def find(self, key: PartKey) -> int | None:
        places = range(len(self._parts) - 1, -1, -1)
        return next((at for at in places if key in keys_of(self._parts[at])), None)

    def part(self, at: int) -> JsonObject:
        return self._parts[at]


class _GrowingParts:
    """Finds parts by an index that grows with them, and joins their text only when asked for."""

    def __init__(self, parts: Iterable[JsonObject]) -> None:
        self._parts: list[JsonObject] = []
        self._places: dict[PartKey, int] = {}
        self._unjoined: dict[int, list[str]] = {}
        for part in parts:
            self._append(part)

    def find(self, key: PartKey) -> int | None:
        return self._places.get(key)

    def part(self, at: int) -> JsonObject:
        return self._parts[at]

    def apply(self, edit: Append | Replace | Extend) -> None:
        if isinstance(edit, Extend):
            self._unjoined.setdefault(edit.at, []).append(edit.delta)
            if edit.metadata is not None:
                self._parts[edit.at] = with_metadata(self._parts[edit.at], edit.metadata)
        elif isinstance(edit, Append):
            self._append(edit.part)
        else:
            self._put(edit.at, edit.part)

    def snapshot(self) -> list[JsonObject]:
        for at, deltas in self._unjoined.items():
            text = _text(self._parts[at]) + "".join(deltas)
            self._parts[at] = {**self._parts[at], "text": text}
        self._unjoined.clear()
        return self._parts

    def _append(self, part: JsonObject) -> None:
        self._parts.append(part)
        self._index(len(self._parts) - 1)

    def _put(self, at: int, part: JsonObject) -> None:
        lost = set(keys_of(self._parts[at])).difference(keys_of(part))
        self._parts[at] = part
        self._index(at)
        for key in lost:
            del self._places[key]
            earlier = _Scan(self._parts).find(key)
            if earlier is not None:
                self._places[key] = earlier

    def _index(self, at: int) -> None:
        for key in keys_of(self._parts[at]):
            self._places[key] = at


def _text(part: Mapping[str, JsonValue]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _is_content(part: JsonObject) -> bool:
    if part.get("type") in {"text", "reasoning"}:
        return _text(part) != ""
    return part.get("type") != "step-start"


def _settled(part: JsonObject, reason: str) -> JsonObject:
    if tool_parts.tool_call_id(part) is not None:
        return _settled_call(part, reason)
    if part.get("state") == "streaming":
        return {**part, "state": "done"}
    return part


def _settled_call(part: JsonObject, reason: str) -> JsonObject:
    running = {tool_parts.INPUT_STREAMING, tool_parts.INPUT_AVAILABLE}
    if part.get("state") not in running and part.get("preliminary") is not True:
        return part
    kept = {key: value for key, value in part.items() if key not in {"output", "preliminary"}}
    return {"input": {}, **kept, "state": tool_parts.OUTPUT_ERROR, "errorText": reason}


def _merged(old: JsonObject, new: JsonObject) -> JsonObject:
    merged = dict(old)
    for key, value in new.items():
        known = merged.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = _merged(known, value)
        else:
            merged[key] = value
    return merged
