"""The one place that reads and writes JSON: compact, UTF-8, finite numbers only.

Half a surrogate pair, as texts get that were cut in the middle of an emoji, becomes U+FFFD.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import orjson
from pydantic import BaseModel
from pydantic import JsonValue as JsonValue  # exported: every module takes it from here

from ramet.errors import NotJson as NotJson  # exported, beside what raises it

JsonObject: TypeAlias = dict[str, JsonValue]

AnyJson: TypeAlias = Any
"""A `JsonValue` that users are given: they know its shape, so they need not check it again."""

DEPTH_LEFT_FOR_FRAMES = 16
"""By how many levels what is stored may be less deep than what can be encoded at all."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def dumps(value: object) -> str:
    """Encode as compact JSON text.

    Pydantic models and dataclasses are encoded by their fields.

    Raises:
        NotJson: The value holds something JSON cannot carry, NaN and infinity included.
    """
    return dump_bytes(value).decode()


def dump_bytes(value: object) -> bytes:
    """Encode as compact JSON in UTF-8; raises what `dumps` raises."""
    return _encoded(value, orjson.OPT_PASSTHROUGH_DATACLASS)


def dump_sorted(value: object) -> bytes:
    """Encode like `dump_bytes`, with the keys of every object in order: alike is the same."""
    return _encoded(value, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_SORT_KEYS)


def dump_strict(value: object) -> str:
    """Encode like `dumps`, but refuse numbers that are not finite instead of writing null.

    For values that users hand in to be stored: a NaN that comes back as None is a lost value.
    """
    encoded = dumps(value)  # first: it ends on a value that holds itself
    _refuse_not_finite(value)
    return encoded


def dump_indented(value: object) -> str:
    """Encode as JSON indented by two spaces, for people and models to read."""
    return _encoded(value, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_INDENT_2).decode()


def loads(text: str | bytes | bytearray | memoryview) -> JsonValue:
    """Decode JSON text.

    Raises:
        NotJson: The text is not JSON.
    """
    try:
        decoded: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _loads_leniently(text, error)
    return decoded


def loads_object(text: str | bytes | bytearray | memoryview) -> JsonObject | None:
    """Decode a JSON object; None when the text is not JSON or not an object."""
    try:
        decoded = loads(text)
    except NotJson:
        return None
    return decoded if isinstance(decoded, dict) else None


def text_at(fields: Mapping[str, JsonValue], key: str) -> str | None:
    """The text under a key of a decoded object; None when there is none, or something else."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def texts_in(text: str) -> tuple[str, ...]:
    """The entries of a stored JSON array as texts; none when it is something else.

    Raises:
        NotJson: The text is not JSON.
    """
    decoded = loads(text)
    return tuple(str(each) for each in decoded) if isinstance(decoded, list) else ()


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


def to_json_strict(value: object) -> JsonValue:
    """Plain JSON data like `to_json`, but refuse numbers that are not finite; see `dump_strict`."""
    return loads(dump_strict(value))


def fits_json(value: object) -> bool:
    """Whether a value can be encoded, also inside of frames and records that hold it."""
    for _ in range(DEPTH_LEFT_FOR_FRAMES):
        value = [value]
    try:
        dump_bytes(value)
    except NotJson:
        return False
    return True


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which neither UTF-8 nor SQLite can carry."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


def _encoded(value: object, options: int) -> bytes:
    try:
        return orjson.dumps(value, _encode_other, options)
    except (TypeError, RecursionError) as error:
        if "surrogates" not in str(error):
            raise NotJson(str(error)) from error
    try:
        return orjson.dumps(_cleaned(value), _encode_other, options)
    except (TypeError, RecursionError) as error:
        raise NotJson(str(error)) from error


def _loads_leniently(
    text: str | bytes | bytearray | memoryview, fault: orjson.JSONDecodeError
) -> JsonValue:
    """Decode a text that holds lone surrogates, which is valid JSON all the same."""
    try:
        known = text if isinstance(text, str) else bytes(text).decode()
        if not _SURROGATE.search(known) and not _ESCAPED_SURROGATE.search(known):
            raise NotJson(str(fault)) from fault
        decoded = _cleaned(json.loads(known, parse_constant=_refuse, parse_int=orjson.loads))
        return loads(_encoded(decoded, 0))
    except (ValueError, RecursionError) as error:
        raise NotJson(str(fault)) from error


def _refuse(constant: str) -> None:
    raise NotJson(f"{constant} is not JSON")


def _cleaned(value: object) -> object:
    """The value without lone surrogates."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_cleaned(item) for item in value]
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        return _cleaned(_encode_other(value))
    return value


def as_text(value: object) -> str:
    """A text that can be stored and sent: a string as it is, anything else as JSON.

    Raises:
        NotJson: It holds something that JSON (or UTF-8) cannot carry.
    """
    plain = to_json(value)
    return plain if isinstance(plain, str) else dumps(plain)


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
