"""UI messages as JSON objects: what is read from them, and how one is made."""

from collections.abc import Iterable, Mapping, Sequence

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import tool_parts


def parts_of(message: Mapping[str, JsonValue]) -> list[JsonObject]:
    """Give a message's parts; what is no part is left out."""
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def text_of(message: Mapping[str, JsonValue], *, separator: str = "\n") -> str:
    """Join the text parts of a message."""
    texts = [part.get("text") for part in parts_of(message) if part.get("type") == "text"]
    return separator.join(text for text in texts if isinstance(text, str))


def user_message(message_id: str, text: str) -> JsonObject:
    """Make a user's message of one text part."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def trailing_user_ids(messages: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Give the ids of the user messages at the end: those that a turn answers."""
    ids: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "user":
            break
        ids.append(str(message.get("id")))
    return ids[::-1]


def asks_client(message: Mapping[str, JsonValue] | None) -> bool:
    """Whether an answer that is not being written waits for an approval or a client's tool."""
    if message is None or message.get("role") != "assistant":
        return False
    waiting = {tool_parts.INPUT_AVAILABLE, tool_parts.APPROVAL_REQUESTED}
    return any(
        tool_parts.tool_call_id(part) is not None and part.get("state") in waiting
        for part in parts_of(message)
    )


def normalise_tool_inputs(message: JsonObject) -> JsonObject:
    """Give the message with each tool input as an object, `{}` where there is none (MB-005).

    A call whose input is still being written may have none. A message that is right already is
    given back as it is.
    """
    parts = parts_of(message)
    normal = [_with_input_object(part) for part in parts]
    if all(new is old for new, old in zip(normal, parts, strict=True)):
        return message
    return with_parts(message, normal)


def with_parts(message: JsonObject, parts: Iterable[JsonObject]) -> JsonObject:
    """Give the message with other parts."""
    return {**message, "parts": [*parts]}


def _with_input_object(part: JsonObject) -> JsonObject:
    if tool_parts.tool_call_id(part) is None or isinstance(part.get("input"), dict):
        return part
    if part.get("state") == tool_parts.INPUT_STREAMING and part.get("input") is None:
        return part
    return {**part, "input": tool_parts.input_object(part.get("input"))}
