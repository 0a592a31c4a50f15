"""The vocabulary of UI message chunks: their type names, and builders for the common ones."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ramet.core.json import JsonObject, JsonValue, dumps, loads_object

START: Final = "start"
START_STEP: Final = "start-step"
FINISH_STEP: Final = "finish-step"
TEXT_START: Final = "text-start"
TEXT_DELTA: Final = "text-delta"
TEXT_END: Final = "text-end"
REASONING_START: Final = "reasoning-start"
REASONING_DELTA: Final = "reasoning-delta"
REASONING_END: Final = "reasoning-end"
TOOL_INPUT_START: Final = "tool-input-start"
TOOL_INPUT_DELTA: Final = "tool-input-delta"
TOOL_INPUT_AVAILABLE: Final = "tool-input-available"
TOOL_INPUT_ERROR: Final = "tool-input-error"
TOOL_APPROVAL_REQUEST: Final = "tool-approval-request"
TOOL_APPROVAL_RESPONSE: Final = "tool-approval-response"
TOOL_OUTPUT_AVAILABLE: Final = "tool-output-available"
TOOL_OUTPUT_ERROR: Final = "tool-output-error"
TOOL_OUTPUT_DENIED: Final = "tool-output-denied"
SOURCE_URL: Final = "source-url"
SOURCE_DOCUMENT: Final = "source-document"
FILE: Final = "file"
DATA_PREFIX: Final = "data-"
DATA_PROGRESS: Final = "data-agent-progress"
DATA_MILESTONE: Final = "data-agent-milestone"
MESSAGE_METADATA: Final = "message-metadata"
FINISH: Final = "finish"
ABORT: Final = "abort"
ERROR: Final = "error"

# What an item of a run's tail is (D2): only plain chunks are stored under an index of their own.
ChunkKind: TypeAlias = Literal["chunk", "progress", "milestone"]
FinishReason: TypeAlias = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted"
]

SPOKEN_KINDS: Final = {
    TEXT_START: "text",
    TEXT_DELTA: "text",
    TEXT_END: "text",
    REASONING_START: "reasoning",
    REASONING_DELTA: "reasoning",
    REASONING_END: "reasoning",
}
"""The chunks that parts of words are made of, with the kind of part."""
SPOKEN_STARTS: Final = frozenset({TEXT_START, REASONING_START})
SPOKEN_DELTAS: Final = frozenset({TEXT_DELTA, REASONING_DELTA})

_SIGNAL_MARK = '"data-agent-'


def chunk_body(chunk: Mapping[str, object]) -> str:
    """Encode a chunk as it is stored and sent; raises NotJson when JSON cannot carry it."""
    return dumps(chunk)


def is_progress(chunk_type: object) -> bool:
    """Whether this is the type of a transient progress signal."""
    return chunk_type == DATA_PROGRESS


def is_milestone(chunk_type: object) -> bool:
    """Whether this is the type of a milestone."""
    return chunk_type == DATA_MILESTONE


def kind_of_body(body: str) -> ChunkKind:
    """Tell what an encoded chunk is, parsing it only when it could be a signal."""
    if _SIGNAL_MARK not in body:
        return "chunk"
    chunk = loads_object(body)
    chunk_type = chunk.get("type") if chunk else None
    if is_progress(chunk_type):
        return "progress"
    return "milestone" if is_milestone(chunk_type) else "chunk"


def start(message_id: str | None = None, *, metadata: JsonValue = None) -> JsonObject:
    """Open a message; without an id in a continuation of the last one."""
    return _without_none(type=START, messageId=message_id, messageMetadata=metadata)


def finish(reason: FinishReason | None = None, *, metadata: JsonValue = None) -> JsonObject:
    """End a message."""
    return _without_none(type=FINISH, finishReason=reason, messageMetadata=metadata)


def message_metadata(metadata: JsonValue) -> JsonObject:
    """Merge metadata into the message."""
    return {"type": MESSAGE_METADATA, "messageMetadata": metadata}


def abort(reason: str | None = None) -> JsonObject:
    """Say that the turn was stopped."""
    return _without_none(type=ABORT, reason=reason)


def error(text: str) -> JsonObject:
    """Fail the turn."""
    return {"type": ERROR, "errorText": text}


def start_step() -> JsonObject:
    """Open a step: one request to the model."""
    return {"type": START_STEP}


def finish_step() -> JsonObject:
    """End a step."""
    return {"type": FINISH_STEP}


def text_start(part_id: str) -> JsonObject:
    """Open a text part."""
    return {"type": TEXT_START, "id": part_id}


def text_delta(part_id: str, delta: str) -> JsonObject:
    """Append to the text part."""
    return {"type": TEXT_DELTA, "id": part_id, "delta": delta}


def text_end(part_id: str) -> JsonObject:
    """End the text part."""
    return {"type": TEXT_END, "id": part_id}


def reasoning_start(part_id: str) -> JsonObject:
    """Open a reasoning part."""
    return {"type": REASONING_START, "id": part_id}


def reasoning_delta(part_id: str, delta: str) -> JsonObject:
    """Append to the reasoning part."""
    return {"type": REASONING_DELTA, "id": part_id, "delta": delta}


def reasoning_end(part_id: str) -> JsonObject:
    """End the reasoning part."""
    return {"type": REASONING_END, "id": part_id}


def tool_input_start(tool_call_id: str, tool_name: str) -> JsonObject:
    """Open a tool call whose input is still being written."""
    return {"type": TOOL_INPUT_START, "toolCallId": tool_call_id, "toolName": tool_name}


def tool_input_delta(tool_call_id: str, delta: str) -> JsonObject:
    """Append to the text of a tool call's input."""
    return {"type": TOOL_INPUT_DELTA, "toolCallId": tool_call_id, "inputTextDelta": delta}


def tool_input_available(tool_call_id: str, tool_name: str, tool_input: JsonValue) -> JsonObject:
    """Give a tool call's whole input."""
    return {
        "type": TOOL_INPUT_AVAILABLE,
        "toolCallId": tool_call_id,
        "toolName": tool_name,
        "input": tool_input,
    }


def tool_input_error(
    tool_call_id: str, tool_name: str, *, tool_input: JsonValue, error_text: str
) -> JsonObject:
    """Say that a tool call cannot run because its input is wrong."""
    return {
        "type": TOOL_INPUT_ERROR,
        "toolCallId": tool_call_id,
        "toolName": tool_name,
        "input": tool_input,
        "errorText": error_text,
    }


def tool_approval_request(approval_id: str, tool_call_id: str) -> JsonObject:
    """Ask a person whether a tool call may run."""
    return {"type": TOOL_APPROVAL_REQUEST, "approvalId": approval_id, "toolCallId": tool_call_id}


def tool_approval_response(approval_id: str, *, approved: bool) -> JsonObject:
    """Say what a person has answered."""
    return {"type": TOOL_APPROVAL_RESPONSE, "approvalId": approval_id, "approved": approved}


def tool_output_available(
    tool_call_id: str, output: JsonValue, *, preliminary: bool = False
) -> JsonObject:
    """Give a tool call's output; a preliminary one is followed by another."""
    chunk: JsonObject = {
        "type": TOOL_OUTPUT_AVAILABLE,
        "toolCallId": tool_call_id,
        "output": output,
    }
    if preliminary:
        chunk["preliminary"] = True
    return chunk


def tool_output_error(tool_call_id: str, error_text: str) -> JsonObject:
    """Say that a tool call failed."""
    return {"type": TOOL_OUTPUT_ERROR, "toolCallId": tool_call_id, "errorText": error_text}


def tool_output_denied(tool_call_id: str) -> JsonObject:
    """Say that a person refused a tool call."""
    return {"type": TOOL_OUTPUT_DENIED, "toolCallId": tool_call_id}


def data(
    name: str, value: JsonValue, *, data_id: str | None = None, transient: bool = False
) -> JsonObject:
    """Carry application data: a part named `data-<name>`, or an event when transient."""
    chunk: JsonObject = {"type": DATA_PREFIX + name, "data": value}
    if data_id is not None:
        chunk["id"] = data_id
    if transient:
        chunk["transient"] = True
    return chunk


def progress(signal_id: str, signal: JsonObject) -> JsonObject:
    """Carry a run's progress; the id lets clients drop a repeated one."""
    return {"type": DATA_PROGRESS, "id": signal_id, "transient": True, "data": signal}


def milestone(signal: JsonObject) -> JsonObject:
    """Carry a run's milestone: `{name, sequence, at, …}`, kept in the message (D23)."""
    return {"type": DATA_MILESTONE, "data": signal}


def _without_none(**fields: JsonValue) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}
