"""Shortens a message that is too large to be stored whole (RS-016, RS-017)."""

from typing import Final

from ramet.core.json import JsonObject, JsonValue, dump_bytes, dumps
from ramet.protocol import tool_parts
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.ui_message import UIMessage

LIMIT_BYTES: Final = 1_800_000

_LONG_OUTPUT_BYTES: Final = 1_024
_LONG_TEXT: Final = 1_000
_KEPT_OUTPUT: Final = 500
_KEPT_TEXT: Final = 500


def compact_message(message: UIMessage, *, limit_bytes: int = LIMIT_BYTES) -> UIMessage:
    """Give a message that fits into `limit_bytes` of JSON, as far as shortening can make it fit.

    First an assistant's tool outputs are shortened, all that are long, and their calls named in
    `metadata.compactedToolOutputs`; then, where that is not enough, long texts from the oldest
    on until it fits, their places named in `metadata.compactedTextParts`. A message that fits is
    given back as it is.
    """
    if _size(message) <= limit_bytes:
        return message
    compacted = message
    if message.get("role") == "assistant":
        compacted = _with_short_outputs(message)
    excess = _size(compacted) - limit_bytes
    return _with_short_texts(compacted, excess) if excess > 0 else compacted


def _with_short_outputs(message: UIMessage) -> UIMessage:
    parts = [_with_short_output(part) for part in parts_of(message)]
    calls = [
        tool_parts.tool_call_id(new)
        for new, old in zip(parts, parts_of(message), strict=True)
        if new is not old
    ]
    return _noted(with_parts(message, parts), "compactedToolOutputs", [*calls])


def _with_short_output(part: JsonObject) -> JsonObject:
    if tool_parts.tool_call_id(part) is None or "output" not in part:
        return part
    output = part["output"]
    size = _size(output)
    if size <= _LONG_OUTPUT_BYTES:
        return part
    text = output if isinstance(output, str) else dumps(output)
    return {**part, "output": f"{text[:_KEPT_OUTPUT]}… [shortened: it had {size} bytes]"}


def _with_short_texts(message: UIMessage, excess: int) -> UIMessage:
    parts, places = parts_of(message), list[JsonValue]()
    excess += len('"metadata":{"compactedTextParts":[]},')
    for place, part in enumerate(parts):
        if excess <= 0:
            break
        text = part.get("text")
        if part.get("type") != "text" or not isinstance(text, str) or len(text) <= _LONG_TEXT:
            continue
        short = f"{text[:_KEPT_TEXT]}… [shortened: it had {len(text)} characters]"
        parts[place] = {**part, "text": short}
        places.append(place)
        excess -= _size(text) - _size(short) - len(f"{place},")
    return _noted(with_parts(message, parts), "compactedTextParts", places)


def _noted(message: UIMessage, key: str, names: list[JsonValue]) -> UIMessage:
    if not names:
        return message
    metadata = message.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    earlier = known.get(key)
    before = earlier if isinstance(earlier, list) else []
    added = [name for name in names if name not in before]
    return {**message, "metadata": {**known, key: [*before, *added]}}


def _size(value: object) -> int:
    return len(dump_bytes(value))
