"""Reads the fields of a client's frame, with one sentence for each thing that can be wrong."""

from collections.abc import Mapping
from typing import Final, TypeGuard

from ramet.core.json import JsonObject, JsonValue, fits_json
from ramet.protocol.ui_message import UIMessage, as_message

ROLES: Final = ("system", "user", "assistant")


class FieldError(ValueError):
    """A field that a frame of its type cannot have; the message is for the client."""


def is_id(value: JsonValue) -> TypeGuard[str]:
    """Whether the value can name a request."""
    return isinstance(value, str) and value != ""


def required_id(frame: Mapping[str, JsonValue], key: str) -> str:
    """Read a string that must not be empty."""
    value = frame.get(key)
    if not is_id(value):
        raise FieldError(f'"{key}" must be a string that is not empty.')
    return value


def optional_text(frame: Mapping[str, JsonValue], key: str) -> str | None:
    """Read a string that may be absent or null."""
    value = frame.get(key)
    if value is not None and not isinstance(value, str):
        raise FieldError(f'"{key}" must be a string.')
    return value


def required_flag(frame: Mapping[str, JsonValue], key: str) -> bool:
    """Read true or false."""
    value = frame.get(key)
    if not isinstance(value, bool):
        raise FieldError(f'"{key}" must be true or false.')
    return value


def optional_flag(frame: Mapping[str, JsonValue], key: str) -> bool:
    """Read true or false; absent or null is false."""
    return frame.get(key) is not None and required_flag(frame, key)


def required_messages(frame: Mapping[str, JsonValue], key: str) -> list[UIMessage]:
    """Read a list of UI messages, each with an id, a role and typed parts."""
    value = frame.get(key)
    if not isinstance(value, list):
        raise FieldError(f'"{key}" must be a list of messages.')
    if not fits_json(value):
        raise FieldError(f'"{key}" must not be nested so deeply.')
    return [_message(item, f"{key}[{index}]") for index, item in enumerate(value)]


def optional_tools(frame: Mapping[str, JsonValue], key: str) -> list[JsonObject] | None:
    """Read a list of tool schemas, each with a name; None when absent or null."""
    value = frame.get(key)
    if value is None:
        return None
    if not isinstance(value, list):
        raise FieldError(f'"{key}" must be a list of tools.')
    tools = [tool for tool in value if isinstance(tool, dict) and is_id(tool.get("name"))]
    if len(tools) < len(value):
        raise FieldError(f'Each of "{key}" must be an object with a "name".')
    return tools


def _message(value: JsonValue, where: str) -> UIMessage:
    if not isinstance(value, dict):
        raise FieldError(f'"{where}" must be an object.')
    if not is_id(value.get("id")):
        raise FieldError(f'"{where}.id" must be a string that is not empty.')
    if value.get("role") not in ROLES:
        raise FieldError(f'"{where}.role" must be one of {", ".join(ROLES)}.')
    parts = value.get("parts")
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        raise FieldError(f'"{where}.parts" must be a list of objects with a "type".')
    return as_message(value)


def _is_part(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)
