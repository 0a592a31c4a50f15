"""What a parent keeps and shows of a run's input: a preview, never the input itself (D30)."""

import hashlib
from typing import Final

from ramet.core.json import JsonValue, NotJson, dump_sorted, dumps, loads, to_json
from ramet.protocol.run_events import ABSENT, Absent

PREVIEW_LENGTH: Final = 500
ELLIPSIS: Final = "..."


def input_preview(input: object, given: object = None) -> JsonValue | Absent:
    """Give the preview of an input: the caller's own, else one made from the input.

    Raises:
        NotJson: The caller's own preview is nothing JSON can carry.
    """
    if given is not None:
        return to_json(given)
    if input is ABSENT:
        return ABSENT
    if isinstance(input, str):
        return _sendable(input[:PREVIEW_LENGTH])
    try:
        text = dumps(input)
    except NotJson:
        return _sendable(_told(input)[:PREVIEW_LENGTH])
    if len(text) <= PREVIEW_LENGTH:
        return loads(text)
    return text[: PREVIEW_LENGTH - len(ELLIPSIS)] + ELLIPSIS


def input_digest(input: object) -> str | None:
    """Give what tells this input from others; None for one that is no JSON."""
    try:
        encoded = dump_sorted(None if input is ABSENT else input)
    except NotJson:
        return None
    return hashlib.sha256(encoded).hexdigest()


def _told(input: object) -> str:
    """What Python says of an input that is no JSON; it may be too deep for that as well."""
    try:
        return str(input)
    except RecursionError:
        return f"{type(input).__name__} (nested too deeply)"


def _sendable(text: str) -> str:
    """The text without lone surrogates, which no frame can carry."""
    return text.encode("utf-8", "replace").decode()
