"""UI messages: what is read from them, and how one is made."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence

from ramet.core.json import JsonObject, JsonValue, to_json_strict
from ramet.errors import InvalidArguments, NotJson
from ramet.protocol import tool_parts
from ramet.protocol.fields import is_id
from ramet.protocol.ui_message import UIMessage, UIPart


def parts_of(message: Mapping[str, object]) -> list[JsonObject]:
    """Give a message's parts; what is no part is left out."""
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def text_of(message: Mapping[str, object] | None, *, separator: str = "\n") -> str:
    """Give the text of a message: its text parts, joined; reasoning is none of it.

    An answer has one text part for each stretch of text: what is said before a tool call and what
    is said after it are two. They are put on lines of their own, unless another separator is given.
    None, as a turn gives that has no message, has no text.

    Raises:
        InvalidArguments: It is no message.
    """
    parts = _parts_given(message, to="text_of")
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    return separator.join(text for text in texts if isinstance(text, str))


def tool_calls(message: Mapping[str, object] | None) -> list[UIPart]:
    """Give the tool calls of a message, in order: those of its parts that stand for one.

    A part has the `toolCallId`, the name in its `type` (`tool-<name>`), a `state`, the `input`, and
    once it has ended an `output` or an `errorText`. None, as a turn gives that has no message, has
    no calls.

    Raises:
        InvalidArguments: It is no message.
    """
    parts = _parts_given(message, to="tool_calls")
    return [part for part in parts if tool_parts.tool_call_id(part) is not None]


def user_message(text: str, *, id: str, metadata: Mapping[str, object] | None = None) -> UIMessage:
    """Make a user's message of one text part.

    Raises:
        InvalidArguments: The text or the id is none, or JSON cannot carry the metadata.
    """
    if not isinstance(text, str):
        raise InvalidArguments(f"A message is made of a text, not of {reprlib.repr(text)}")
    if not is_id(id):
        raise InvalidArguments(f"The id of a message is a text that is not empty, not {id!r}")
    message: UIMessage = {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}
    if metadata is not None:
        message["metadata"] = _checked_metadata(metadata)
    return message


def trailing_user_ids(messages: Sequence[Mapping[str, object]]) -> list[str]:
    """Give the ids of the user messages at the end: those that a turn answers."""
    ids: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "user":
            break
        ids.append(str(message.get("id")))
    return ids[::-1]


def asks_client(message: Mapping[str, object] | None) -> bool:
    """Whether an answer that is not being written waits for an approval or a client's tool."""
    if message is None or message.get("role") != "assistant":
        return False
    waiting = {tool_parts.INPUT_AVAILABLE, tool_parts.APPROVAL_REQUESTED}
    return any(
        tool_parts.tool_call_id(part) is not None and part.get("state") in waiting
        for part in parts_of(message)
    )


def normalise_tool_inputs(message: UIMessage) -> UIMessage:
    """Give the message with each tool input as an object, `{}` where there is none (MB-005).

    A call whose input is still being written may have none. A message that is right already is
    given back as it is.
    """
    parts = parts_of(message)
    normal = [_with_input_object(part) for part in parts]
    if all(new is old for new, old in zip(normal, parts, strict=True)):
        return message
    return with_parts(message, normal)


def with_parts(message: UIMessage, parts: Iterable[JsonObject]) -> UIMessage:
    """Give the message with other parts."""
    return {**message, "parts": [*parts]}


def _with_input_object(part: JsonObject) -> JsonObject:
    if tool_parts.tool_call_id(part) is None or isinstance(part.get("input"), dict):
        return part
    if part.get("state") == tool_parts.INPUT_STREAMING and part.get("input") is None:
        return part
    return {**part, "input": tool_parts.input_object(part.get("input"))}


def _parts_given(message: object, *, to: str) -> list[JsonObject]:
    if message is None:
        return []
    if not isinstance(message, Mapping):
        shown = "a list of them" if isinstance(message, list) else reprlib.repr(message)
        raise InvalidArguments(f"{to} takes one UI message, such as messages[-1], not {shown}")
    return parts_of(message)


def _checked_metadata(metadata: object) -> JsonValue:
    if not isinstance(metadata, Mapping):
        raise InvalidArguments(f"The metadata of a message is a mapping, not {metadata!r}")
    try:
        return to_json_strict(metadata)
    except NotJson as error:
        raise InvalidArguments(f"The metadata of a message is not JSON: {error}") from error
