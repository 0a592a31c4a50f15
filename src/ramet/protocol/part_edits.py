"""Decides what one chunk changes in a message's parts, without changing anything (MB-001 … 007)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks, tool_parts

PartKey: TypeAlias = tuple[str, str]
ChunkObject: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add a part at the end."""

    part: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Put another part in the place of one; the text of a text part stays."""

    at: int
    part: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend:
    """Add to the text of a part."""

    at: int
    delta: str
    metadata: JsonValue = None


Edit: TypeAlias = Append | Replace | Extend


class PartIndex(Protocol):
    """The parts so far, as an edit looks at them."""

    def find(self, key: PartKey) -> int | None:
        """Give the place of the last part that has the key."""

    def part(self, at: int) -> JsonObject:
        """Give a part; the text of a text part may be behind."""


def keys_of(part: Mapping[str, JsonValue]) -> list[PartKey]:
    """List what a part can be found by: its kind of text, its call, its approval, its data id."""
    part_type, part_id = part.get("type"), part.get("id")
    if not isinstance(part_type, str):
        return []
    if part_type in _TEXT_TYPES:
        return [_text_key(part_type)]
    if part_type.startswith(chunks.DATA_PREFIX):
        return [(part_type, part_id)] if isinstance(part_id, str) else []
    call_id = tool_parts.tool_call_id(part)
    if call_id is None:
        return []
    approval_id = _approval(part).get("id")
    approvals = [("approval", approval_id)] if isinstance(approval_id, str) else []
    return [("call", call_id), *approvals]


def edit_for(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    """Decide what a chunk changes; None for a chunk that changes no part."""
    chunk_type = chunk.get("type")
    if not isinstance(chunk_type, str):
        return None
    decide = _DECISIONS.get(chunk_type)
    if decide is not None:
        return decide(chunk, index)
    return _data(chunk, index) if chunk_type.startswith(chunks.DATA_PREFIX) else None


def with_metadata(part: JsonObject, metadata: JsonValue) -> JsonObject:
    """Merge provider metadata into a part."""
    if not isinstance(metadata, dict):
        return part
    known = part.get("providerMetadata")
    merged = {**known, **metadata} if isinstance(known, dict) else metadata
    return {**part, "providerMetadata": merged}


def _text_key(part_type: str) -> PartKey:
    return ("text of type", part_type)


def _text_start(part_type: str, chunk: ChunkObject, _: PartIndex) -> Edit:
    return Append(part=_text_part(part_type, "", chunk))


def _text_delta(part_type: str, chunk: ChunkObject, index: PartIndex) -> Edit | None:
    delta = chunk.get("delta")
    if not isinstance(delta, str):
        return None
    at = index.find(_text_key(part_type))
    if at is None:
        return Append(part=_text_part(part_type, delta, chunk))
    return Extend(at=at, delta=delta, metadata=chunk.get("providerMetadata"))


def _text_end(part_type: str, chunk: ChunkObject, index: PartIndex) -> Edit | None:
    at = index.find(_text_key(part_type))
    if at is None:
        return None
    done: JsonObject = {**index.part(at), "state": "done"}
    return Replace(at=at, part=with_metadata(done, chunk.get("providerMetadata")))


def _text_part(part_type: str, text: str, chunk: ChunkObject) -> JsonObject:
    part: JsonObject = {"type": part_type, "text": text, "state": "streaming"}
    return with_metadata(part, chunk.get("providerMetadata"))


def _tool_input_start(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    if _call_at(chunk, index) is not None:
        return None
    return _append_call(chunk, {"state": tool_parts.INPUT_STREAMING})


def _tool_input_available(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    change: JsonObject = {
        "state": tool_parts.INPUT_AVAILABLE,
        "input": tool_parts.input_object(chunk.get("input")),
    }
    at = _call_at(chunk, index)
    if at is None:
        return _append_call(chunk, change)
    part = index.part(at)
    if part.get("state") != tool_parts.INPUT_STREAMING:
        return None
    return Replace(at=at, part={**part, **_call_options(chunk), **change})


def _tool_input_error(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    change: JsonObject = {
        "state": tool_parts.OUTPUT_ERROR,
        "input": tool_parts.input_object(chunk.get("input")),
        "errorText": _text(chunk, "errorText"),
    }
    at = _call_at(chunk, index)
    if at is None:
        return _append_call(chunk, change)
    part = index.part(at)
    if _is_decided(part):
        return None
    return Replace(at=at, part={**part, **_call_options(chunk), **change})


def _approval_request(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    at, approval_id = _call_at(chunk, index), chunk.get("approvalId")
    if at is None or not isinstance(approval_id, str):
        return None
    part = index.part(at)
    if _is_decided(part) or part.get("state") == tool_parts.APPROVAL_RESPONDED:
        return None
    requested: JsonObject = {
        "state": tool_parts.APPROVAL_REQUESTED,
        "approval": {"id": approval_id, **_present(chunk, _APPROVAL_OPTIONS)},
    }
    return Replace(at=at, part={**part, **requested})


def _approval_response(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    approval_id, approved = chunk.get("approvalId"), chunk.get("approved")
    if not isinstance(approval_id, str) or not isinstance(approved, bool):
        return None
    at = index.find(("approval", approval_id))
    if at is None or index.part(at).get("state") != tool_parts.APPROVAL_REQUESTED:
        return None
    part = index.part(at)
    responded: JsonObject = {
        "state": tool_parts.APPROVAL_RESPONDED,
        "approval": {**_approval(part), "approved": approved, **_present(chunk, ("reason",))},
    }
    return Replace(at=at, part={**part, **responded})


def _tool_output_available(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    result: JsonObject = {"state": tool_parts.OUTPUT_AVAILABLE, "output": chunk.get("output")}
    if chunk.get("preliminary") is True:
        result["preliminary"] = True
    return _settle_call(chunk, index, result)


def _tool_output_error(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    failed: JsonObject = {
        "state": tool_parts.OUTPUT_ERROR,
        "errorText": _text(chunk, "errorText"),
    }
    return _settle_call(chunk, index, failed)


def _settle_call(chunk: ChunkObject, index: PartIndex, result: JsonObject) -> Edit | None:
    at = _call_at(chunk, index)
    if at is None:
        return None
    before = {key: value for key, value in index.part(at).items() if key not in _RESULT_KEYS}
    options = _present(chunk, ("providerExecuted",))
    if isinstance(chunk.get("providerMetadata"), dict):
        options["resultProviderMetadata"] = chunk["providerMetadata"]
    return Replace(at=at, part={"input": {}, **before, **options, **result})


def _tool_output_denied(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    at = _call_at(chunk, index)
    if at is None or _is_decided(index.part(at)):
        return None
    denied: JsonObject = {**index.part(at), "state": tool_parts.OUTPUT_DENIED}
    if "approval" in denied:
        denied["approval"] = {**_approval(denied), "approved": False}
    return Replace(at=at, part=denied)


def _step_start(_: ChunkObject, __: PartIndex) -> Edit:
    return Append(part={"type": "step-start"})


def _attachment(required: tuple[str, str], chunk: ChunkObject, _: PartIndex) -> Edit | None:
    if not all(isinstance(chunk.get(key), str) for key in required):
        return None
    return Append(part=_present(chunk, ("type", *required, *_ATTACHMENT_OPTIONS)))


def _data(chunk: ChunkObject, index: PartIndex) -> Edit | None:
    if chunk.get("transient") is True:
        return None
    part_id = chunk.get("id")
    at = index.find((str(chunk["type"]), part_id)) if isinstance(part_id, str) else None
    if at is not None:
        return Replace(at=at, part={**index.part(at), "data": chunk.get("data")})
    return Append(part={**_present(chunk, ("type", "id")), "data": chunk.get("data")})


def _append_call(chunk: ChunkObject, change: JsonObject) -> Edit | None:
    call_id, name = chunk.get("toolCallId"), chunk.get("toolName")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    dynamic = chunk.get("dynamic") is True
    part: JsonObject = {
        "type": tool_parts.DYNAMIC_TOOL if dynamic else tool_parts.TOOL_PREFIX + name,
        "toolCallId": call_id,
        "toolName": name,
    }
    return Append(part={**part, **_call_options(chunk), **change})


def _call_at(chunk: ChunkObject, index: PartIndex) -> int | None:
    call_id = chunk.get("toolCallId")
    return index.find(("call", call_id)) if isinstance(call_id, str) else None


def _call_options(chunk: ChunkObject) -> JsonObject:
    options = _present(chunk, ("providerExecuted", "title", "toolMetadata"))
    if isinstance(chunk.get("providerMetadata"), dict):
        options["callProviderMetadata"] = chunk["providerMetadata"]
    return options


def _is_decided(part: JsonObject) -> bool:
    return part.get("state") in tool_parts.SETTLED or tool_parts.is_approved(part)


def _approval(part: ChunkObject) -> JsonObject:
    approval = part.get("approval")
    return approval if isinstance(approval, dict) else {}


def _present(chunk: ChunkObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: chunk[key] for key in keys if chunk.get(key) is not None}


def _text(chunk: ChunkObject, key: str) -> str:
    value = chunk.get(key)
    return value if isinstance(value, str) else ""


_TEXT_TYPES: Final = ("text", "reasoning")
_RESULT_KEYS: Final = frozenset({"state", "output", "errorText", "preliminary"})
_APPROVAL_OPTIONS: Final = ("isAutomatic", "signature")
_ATTACHMENT_OPTIONS: Final = ("title", "filename", "providerMetadata")

_Decision: TypeAlias = Callable[[ChunkObject, PartIndex], Edit | None]

_DECISIONS: Final[Mapping[str, _Decision]] = {
    chunks.TEXT_START: partial(_text_start, "text"),
    chunks.TEXT_DELTA: partial(_text_delta, "text"),
    chunks.TEXT_END: partial(_text_end, "text"),
    chunks.REASONING_START: partial(_text_start, "reasoning"),
    chunks.REASONING_DELTA: partial(_text_delta, "reasoning"),
    chunks.REASONING_END: partial(_text_end, "reasoning"),
    chunks.TOOL_INPUT_START: _tool_input_start,
    chunks.TOOL_INPUT_AVAILABLE: _tool_input_available,
    chunks.TOOL_INPUT_ERROR: _tool_input_error,
    chunks.TOOL_APPROVAL_REQUEST: _approval_request,
    chunks.TOOL_APPROVAL_RESPONSE: _approval_response,
    chunks.TOOL_OUTPUT_AVAILABLE: _tool_output_available,
    chunks.TOOL_OUTPUT_ERROR: _tool_output_error,
    chunks.TOOL_OUTPUT_DENIED: _tool_output_denied,
    chunks.START_STEP: _step_start,
    "step-start": _step_start,
    chunks.FILE: partial(_attachment, ("url", "mediaType")),
    chunks.SOURCE_URL: partial(_attachment, ("sourceId", "url")),
    chunks.SOURCE_DOCUMENT: partial(_attachment, ("sourceId", "mediaType")),
}
