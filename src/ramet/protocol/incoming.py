"""What a client's text frame asks for, parsed once into a union of records; it never raises."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ramet.core.json import JsonObject, JsonValue, loads_object
from ramet.protocol import types
from ramet.protocol.fields import (
    FieldError,
    is_id,
    optional_flag,
    optional_text,
    optional_tools,
    required_flag,
    required_id,
    required_messages,
)
from ramet.protocol.ui_message import UIMessage

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]
ToolResultState: TypeAlias = Literal["output-available", "output-error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcCall:
    """A call of one of the agent's methods."""

    id: str
    method: str
    args: list[JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """A client's whole new state."""

    state: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A question to the chat.

    Attributes:
        id: Names the request and each frame of its answer; it is no message id.
        messages: The client's whole transcript.
        trigger: Whether a message was added or the last answer is wanted anew.
        client_tools: Tools the browser executes; None when the client says nothing of them.
        body: What the application sent beside these.
    """

    id: str
    messages: list[UIMessage]
    trigger: Trigger
    client_tools: list[JsonObject] | None
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessagesPush:
    """A transcript that a client has changed by itself."""

    messages: list[UIMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatClear:
    """Forget the chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCancel:
    """Stop the turn of a request."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """A probe for a running stream; the id is echoed in the direct answer."""

    probe_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAck:
    """The answer to an offered stream: send it."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool that the client executed; the name may be empty."""

    tool_call_id: str
    tool_name: str
    output: JsonValue
    state: ToolResultState
    error_text: str | None
    auto_continue: bool
    client_tools: list[JsonObject] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApproval:
    """A person's yes or no to a tool call."""

    tool_call_id: str
    approved: bool
    auto_continue: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A frame of a known type with wrong fields (D25).

    Attributes:
        type: The frame's type.
        id: The request that an error frame can name; None when there is no usable id.
        reason: One sentence for the client: what is wrong with which field.
    """

    type: str
    id: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Not a frame of the protocol: for the agent's message hook."""

    text: str


Incoming: TypeAlias = (
    RpcCall
    | StateUpdate
    | ChatRequest
    | ChatMessagesPush
    | ChatClear
    | ChatCancel
    | ResumeRequest
    | ResumeAck
    | ToolResult
    | ToolApproval
    | Malformed
    | Application
)


def parse_frame(text: str) -> Incoming:
    """Parse one text frame.

    What is no JSON object, has an unknown type, or is `rpc` without its fields goes to the
    application; any other known type with wrong fields is `Malformed`.
    """
    frame = loads_object(text)
    if frame is None:
        return Application(text=text)
    frame_type = frame.get("type")
    if not isinstance(frame_type, str):
        return Application(text=text)
    if frame_type == types.RPC:
        return _rpc_call(frame) or Application(text=text)
    parser = _PARSERS.get(frame_type)
    if parser is None:
        return Application(text=text)
    try:
        return parser(frame)
    except FieldError as error:
        frame_id = frame.get("id")
        return Malformed(
            type=frame_type,
            id=frame_id if is_id(frame_id) else None,
            reason=f"Malformed {frame_type} frame: {error}",
        )


def _rpc_call(frame: JsonObject) -> RpcCall | None:
    match frame:
        case {"id": str(call_id), "method": str(method), "args": list(args)}:
            return RpcCall(id=call_id, method=method, args=args)
    return None


def _state_update(frame: JsonObject) -> StateUpdate:
    if "state" not in frame:
        raise FieldError('"state" must be there.')
    return StateUpdate(state=frame["state"])


def _chat_request(frame: JsonObject) -> ChatRequest:
    request_id = required_id(frame, "id")
    init = frame.get("init")
    if not isinstance(init, dict):
        raise FieldError('"init" must be an object.')
    if init.get("method") != "POST":
        raise FieldError('"init.method" must be "POST".')
    text = init.get("body")
    body = loads_object(text) if isinstance(text, str) else None
    if body is None:
        raise FieldError('"init.body" must be a string that holds a JSON object.')
    return ChatRequest(
        id=request_id,
        messages=required_messages(body, "messages"),
        trigger=_trigger(body),
        client_tools=optional_tools(body, "clientTools"),
        body={key: value for key, value in body.items() if key not in _REQUEST_KEYS},
    )


def _trigger(body: JsonObject) -> Trigger:
    match body.get("trigger"):
        case None | "submit-message":
            return "submit-message"
        case "regenerate-message":
            return "regenerate-message"
    raise FieldError('"trigger" must be "submit-message" or "regenerate-message".')


def _messages_push(frame: JsonObject) -> ChatMessagesPush:
    return ChatMessagesPush(messages=required_messages(frame, "messages"))


def _clear(_: JsonObject) -> ChatClear:
    return ChatClear()


def _cancel(frame: JsonObject) -> ChatCancel:
    return ChatCancel(id=required_id(frame, "id"))


def _resume_request(frame: JsonObject) -> ResumeRequest:
    return ResumeRequest(probe_id=optional_text(frame, "probeId"))


def _resume_ack(frame: JsonObject) -> ResumeAck:
    return ResumeAck(id=required_id(frame, "id"))


def _tool_result(frame: JsonObject) -> ToolResult:
    return ToolResult(
        tool_call_id=required_id(frame, "toolCallId"),
        tool_name=optional_text(frame, "toolName") or "",
        output=frame.get("output"),
        state=_result_state(frame),
        error_text=optional_text(frame, "errorText"),
        auto_continue=optional_flag(frame, "autoContinue"),
        client_tools=optional_tools(frame, "clientTools"),
    )


def _result_state(frame: JsonObject) -> ToolResultState:
    match frame.get("state"):
        case None | "output-available":
            return "output-available"
        case "output-error":
            return "output-error"
    raise FieldError('"state" must be "output-available" or "output-error".')


def _tool_approval(frame: JsonObject) -> ToolApproval:
    return ToolApproval(
        tool_call_id=required_id(frame, "toolCallId"),
        approved=required_flag(frame, "approved"),
        auto_continue=optional_flag(frame, "autoContinue"),
    )


_REQUEST_KEYS: Final = frozenset({"messages", "trigger", "clientTools"})

_PARSERS: Final[Mapping[str, Callable[[JsonObject], Incoming]]] = {
    types.STATE: _state_update,
    types.CHAT_REQUEST: _chat_request,
    types.CHAT_MESSAGES: _messages_push,
    types.CHAT_CLEAR: _clear,
    types.CHAT_CANCEL: _cancel,
    types.STREAM_RESUME_REQUEST: _resume_request,
    types.STREAM_RESUME_ACK: _resume_ack,
    types.TOOL_RESULT: _tool_result,
    types.TOOL_APPROVAL: _tool_approval,
}
