"""What a tool part of a message is: its name, its states, and the shape of its input."""

from collections.abc import Mapping
from typing import Final

from ramet.core.json import JsonObject, JsonValue, loads_object

INPUT_STREAMING: Final = "input-streaming"
INPUT_AVAILABLE: Final = "input-available"
APPROVAL_REQUESTED: Final = "approval-requested"
APPROVAL_RESPONDED: Final = "approval-responded"
OUTPUT_AVAILABLE: Final = "output-available"
OUTPUT_ERROR: Final = "output-error"
OUTPUT_DENIED: Final = "output-denied"

SETTLED: Final = frozenset({OUTPUT_AVAILABLE, OUTPUT_ERROR, OUTPUT_DENIED})

DYNAMIC_TOOL: Final = "dynamic-tool"
TOOL_PREFIX: Final = "tool-"

_PROGRESS: Final = {
    INPUT_STREAMING: 0,
    INPUT_AVAILABLE: 1,
    APPROVAL_REQUESTED: 2,
    APPROVAL_RESPONDED: 3,
    OUTPUT_AVAILABLE: 4,
    OUTPUT_ERROR: 4,
    OUTPUT_DENIED: 4,
}


def tool_call_id(part: Mapping[str, JsonValue]) -> str | None:
    """Give the call a part stands for; None when it is no tool part."""
    part_type, call_id = part.get("type"), part.get("toolCallId")
    if not isinstance(part_type, str) or not isinstance(call_id, str):
        return None
    is_tool = part_type == DYNAMIC_TOOL or part_type.startswith(TOOL_PREFIX)
    return call_id if is_tool else None


def tool_name(part: Mapping[str, JsonValue]) -> str:
    """Give a tool part's tool, wherever the part keeps its name."""
    part_type, name = part.get("type"), part.get("toolName")
    if part_type != DYNAMIC_TOOL and isinstance(part_type, str):
        return part_type.removeprefix(TOOL_PREFIX)
    return name if isinstance(name, str) else ""


def is_settled(part: Mapping[str, JsonValue]) -> bool:
    """Whether the call has its final result, error or refusal; a preliminary output is none."""
    return part.get("state") in SETTLED and part.get("preliminary") is not True


def is_approved(part: Mapping[str, JsonValue]) -> bool:
    """Whether a person has let the call run."""
    approval = part.get("approval")
    refused = isinstance(approval, dict) and approval.get("approved") is False
    return part.get("state") == APPROVAL_RESPONDED and not refused


def progress_of(part: Mapping[str, JsonValue]) -> int:
    """Rank a part's state by how far the call has come; unknown states come first."""
    state = part.get("state")
    return _PROGRESS.get(state, -1) if isinstance(state, str) else -1


def input_object(value: JsonValue) -> JsonObject:
    """Give a tool's input as the object it is stored as: text is parsed, the rest is `{}`."""
    if isinstance(value, str):
        return loads_object(value) or {}
    return value if isinstance(value, dict) else {}
