"""Whether a stored transcript is one that a page can show, and agrees with the answers shown."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ramet.core.json import JsonObject, JsonValue
from tests.crash.seen import Seen, stored_parts

_OPEN = frozenset({"streaming", "input-streaming", "input-available"})


def transcript_findings(messages: Sequence[JsonObject], after: Seen) -> Iterator[str]:
    """What is wrong with a transcript that nobody is writing to any more."""
    ids = Counter(str(message.get("id")) for message in messages)
    for message_id, times in ids.items():
        if times > 1:
            yield f"message {message_id} is there {times} times"
    for message in messages:
        yield from _message_findings(message)
    texts = [_text(message) for message in messages if message.get("role") == "assistant"]
    for request_id, chunks in after.chunks.items():
        shown = "".join(piece for chunk in chunks for piece in stored_parts(chunk.body))
        if shown not in texts and shown:
            yield f"request {request_id} showed {shown!r}, which is in no stored message: {texts}"


def _message_findings(message: JsonObject) -> Iterator[str]:
    where = f"message {message.get('id')}"
    if not isinstance(message.get("id"), str) or message.get("role") not in {"user", "assistant"}:
        yield f"{where} is no message: {message}"
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        yield f"{where} has no parts"
        return
    for part in parts:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield f"{where} has a part that is none: {part!r}"
        elif part.get("state") in _OPEN:
            yield f"{where} has an open part: {part}"


def _text(message: JsonObject) -> str:
    parts = message.get("parts")
    pieces = [_piece(part) for part in parts] if isinstance(parts, list) else []
    return "".join(pieces)


def _piece(part: JsonValue) -> str:
    shown = isinstance(part, dict) and part.get("type") in {"text", "reasoning"}
    return str(part.get("text", "")) if shown and isinstance(part, dict) else ""
