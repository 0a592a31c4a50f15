"""The one place that reads and writes JSON: compact, UTF-8, finite numbers only."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TypeAlias

import orjson
from pydantic import BaseModel
from pydantic import JsonValue as JsonValue  # exported: every module takes it from here

JsonObject: TypeAlias = dict[str, JsonValue]


class NotJson(ValueError):
    """A value that JSON cannot carry, or a text that is not JSON."""


def dumps(value: object) -> str:
    """Encode as compact JSON text.

    Pydantic models and dataclasses are encoded by their fields.

    Raises:
        NotJson: The value holds something JSON cannot carry, NaN and infinity included.
    """
    return dump_bytes(value).decode()


def dump_bytes(value: object) -> bytes:
    """Encode as compact JSON in UTF-8; raises what `dumps` raises."""
    try:
        return orjson.dumps(value, _encode_other, orjson.OPT_PASSTHROUGH_DATACLASS)
    except (TypeError, RecursionError) as error:
        raise NotJson(str(error)) from error


def dump_strict(value: object) -> str:
    """Encode like `dumps`, but refuse numbers that are not finite instead of writing null.

    For values that users hand in to be stored: a NaN that comes back as None is a lost value.
    """
    encoded = dumps(value)  # first: it ends on a value that holds itself
    _refuse_not_finite(value)
    return encoded


def dump_indented(value: object) -> str:
    """Encode as JSON indented by two spaces, for people and models to read."""
    try:
        return orjson.dumps(
            value, _encode_other, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_INDENT_2
        ).decode()
    except (TypeError, RecursionError) as error:
        raise NotJson(str(error)) from error


def loads(text: str | bytes | bytearray | memoryview) -> JsonValue:
    """Decode JSON text.

    Raises:
        NotJson: The text is not JSON.
    """
    try:
        decoded: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJson(str(error)) from error
    return decoded


def loads_object(text: str | bytes | bytearray | memoryview) -> JsonObject | None:
    """Decode a JSON object; None when the text is not JSON or not an object."""
    try:
        decoded = loads(text)
    except NotJson:
        return None
    return decoded if isinstance(decoded, dict) else None


def loads_or_raw(text: str | None) -> JsonValue:
    """Decode a stored column; a text that is not JSON is given back as it is (AT-029)."""
    if text is None:
        return None
    try:
        return loads(text)
    except NotJson:
        return text


def to_json(value: object) -> JsonValue:
    """Turn a model, dataclass or JSON value into plain JSON data, by encoding and decoding it."""
    return loads(dump_bytes(value))


def _encode_other(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def _refuse_not_finite(value: object) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise NotJson(f"{item!r} is not a JSON number")
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            pending.extend(item)
        elif isinstance(item, BaseModel):
            pending.append(item.model_dump())
        elif is_dataclass(item) and not isinstance(item, type):
            pending.extend(getattr(item, field.name) for field in fields(item))
