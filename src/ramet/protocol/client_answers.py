"""What a page's answer to a tool call changes: a result, an approval or a refusal, as chunks."""

from collections.abc import Mapping, Sequence
from typing import Final

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks, tool_parts
from ramet.protocol.incoming import ToolApproval, ToolResult
from ramet.protocol.messages import parts_of

_TAKES_RESULT: Final = frozenset(
    {
        tool_parts.INPUT_AVAILABLE,
        tool_parts.APPROVAL_REQUESTED,
        tool_parts.APPROVAL_RESPONDED,
    }
)
_ANSWERED: Final = tool_parts.SETTLED | {tool_parts.APPROVAL_RESPONDED}
_STEP_START: Final = "step-start"
FAILED: Final = "The tool failed in the browser."


def call_part(message: Mapping[str, object], tool_call_id: str) -> JsonObject | None:
    """The part of a message that stands for a tool call."""
    for part in parts_of(message):
        if tool_parts.tool_call_id(part) == tool_call_id:
            return part
    return None


def answer_chunk(
    part: Mapping[str, JsonValue], answer: ToolResult | ToolApproval
) -> JsonObject | None:
    """The chunk that an answer comes to; None when the call is not open for it.

    The first answer stands: what comes after it changes nothing.
    """
    state = part.get("state")
    if isinstance(answer, ToolResult):
        return _result(answer) if state in _TAKES_RESULT else None
    if state != tool_parts.APPROVAL_REQUESTED:
        return None
    if not answer.approved:
        return chunks.tool_output_denied(answer.tool_call_id)
    approval = part.get("approval")
    approval_id = approval.get("id") if isinstance(approval, dict) else None
    return chunks.tool_approval_response(str(approval_id), approved=True)


def last_step_is_answered(message: Mapping[str, object] | None) -> bool:
    """Whether an answer's last step has tool calls, and each is settled or approved (AC-002)."""
    if message is None or message.get("role") != "assistant":
        return False
    calls = [part for part in _last_step(message) if tool_parts.tool_call_id(part) is not None]
    return bool(calls) and all(
        part.get("state") in _ANSWERED and part.get("preliminary") is not True for part in calls
    )


def _result(answer: ToolResult) -> JsonObject:
    if answer.state == "output-error":
        return chunks.tool_output_error(answer.tool_call_id, answer.error_text or FAILED)
    return chunks.tool_output_available(answer.tool_call_id, answer.output)


def _last_step(message: Mapping[str, object]) -> Sequence[JsonObject]:
    """The parts of the last step that has tool calls, and what follows it."""
    step: list[JsonObject] = []
    for part in reversed(parts_of(message)):
        if part.get("type") == _STEP_START and any(map(tool_parts.tool_call_id, step)):
            break
        step.append(part)
    return step
