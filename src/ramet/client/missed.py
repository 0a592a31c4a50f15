"""The chunks of an answer that never came, told from what came of its message and the whole one."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from ramet.core.json import JsonObject
from ramet.protocol import chunks, tool_parts
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage

_TEXTS: Final = frozenset({"text", "reasoning"})
_STREAMING, _GIVEN, _ASKED, _APPROVED, _SETTLED = (
    tool_parts.progress_of({"state": state})
    for state in (
        tool_parts.INPUT_STREAMING,
        tool_parts.INPUT_AVAILABLE,
        tool_parts.APPROVAL_REQUESTED,
        tool_parts.APPROVAL_RESPONDED,
        tool_parts.OUTPUT_AVAILABLE,
    )
)


def missed_chunks(
    came: UIMessage, whole: UIMessage, *, part_ids: Mapping[str, str]
) -> list[JsonObject]:
    """Give chunks that make the message as it came into the whole one.

    They are what is missing, or, where the whole message is another one, a `start` and all of it.
    What streams leave no trace of is not among them: in how many pieces a text came, the ends of
    steps, why the model stopped.

    Args:
        came: The message as far as it came.
        whole: The message as it is stored.
        part_ids: The id under which the last text, and the last reasoning, came.
    """
    known, parts = parts_of(came), parts_of(whole)
    if came.get("id") == whole.get("id") and len(known) <= len(parts):
        rests = [_rest(old, part, part_ids) for old, part in zip(known, parts, strict=False)]
        if all(rest is not None for rest in rests):
            grown = chain.from_iterable(rest or () for rest in rests)
            return [*grown, *_all(parts, begin=len(known))]
    return [chunks.start(str(whole.get("id"))), *_all(parts)]


def _all(parts: Sequence[JsonObject], *, begin: int = 0) -> list[JsonObject]:
    return [
        chunk
        for at, part in enumerate(parts[begin:], begin)
        for chunk in _whole_part(part, part_id=f"missed-{at}")
    ]


def _whole_part(part: JsonObject, *, part_id: str) -> Sequence[JsonObject]:
    kind = part.get("type")
    if kind in _TEXTS:
        opened = chunks.text_start if kind == "text" else chunks.reasoning_start
        return [opened(part_id), *_rest_of_text({"type": kind}, part, part_id=part_id)]
    if tool_parts.tool_call_id(part) is not None:
        return _rest_of_call({}, part)
    return [chunks.start_step() if kind == "step-start" else part]


def _rest(
    old: JsonObject, part: JsonObject, part_ids: Mapping[str, str]
) -> Sequence[JsonObject] | None:
    """What makes a part into a later form of it; None when it is none."""
    kind = str(part.get("type"))
    if old == part:
        return ()
    if old.get("type") != kind or old.get("toolCallId") != part.get("toolCallId"):
        return None
    if kind in _TEXTS:
        before, text = _text(old), _text(part)
        grows = text.startswith(before) and (old.get("state") != "done" or text == before)
        return _rest_of_text(old, part, part_id=part_ids.get(kind, kind)) if grows else None
    if tool_parts.tool_call_id(part) is None:
        return None
    ahead = tool_parts.progress_of(old) > tool_parts.progress_of(part)
    return None if ahead or tool_parts.is_settled(old) else _rest_of_call(old, part)


def _rest_of_text(old: JsonObject, part: JsonObject, *, part_id: str) -> list[JsonObject]:
    is_text, rest = part.get("type") == "text", _text(part)[len(_text(old)) :]
    delta, end = chunks.text_delta, chunks.text_end
    if not is_text:
        delta, end = chunks.reasoning_delta, chunks.reasoning_end
    ends = part.get("state") == "done" and old.get("state") != "done"
    return [*([delta(part_id, rest)] if rest else []), *([end(part_id)] if ends else [])]


def _rest_of_call(old: JsonObject, part: JsonObject) -> list[JsonObject]:
    call_id, name = str(part.get("toolCallId")), tool_parts.tool_name(part)
    before, now = tool_parts.progress_of(old), tool_parts.progress_of(part)
    approval = part.get("approval")
    found: list[JsonObject] = []
    if now == _STREAMING > before:
        found.append(chunks.tool_input_start(call_id, name))
    if now >= _GIVEN > before:
        given = chunks.tool_input_available(call_id, name, part.get("input"))
        dynamic = part.get("type") == tool_parts.DYNAMIC_TOOL
        found.append({**given, "dynamic": True} if dynamic else given)
    if isinstance(approval, dict) and before < _ASKED:
        found.append(chunks.tool_approval_request(str(approval.get("id")), call_id))
    if isinstance(approval, dict) and approval.get("approved") is True and before < _APPROVED:
        found.append(chunks.tool_approval_response(str(approval.get("id")), approved=True))
    return [*found, *_end_of_call(call_id, part)] if now == _SETTLED else found


def _end_of_call(call_id: str, part: JsonObject) -> Sequence[JsonObject]:
    match part.get("state"):
        case tool_parts.OUTPUT_AVAILABLE:
            preliminary = part.get("preliminary") is True
            output = part.get("output")
            return [chunks.tool_output_available(call_id, output, preliminary=preliminary)]
        case tool_parts.OUTPUT_DENIED:
            return [chunks.tool_output_denied(call_id)]
    return [chunks.tool_output_error(call_id, str(part.get("errorText")))]


def _text(part: JsonObject) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""
