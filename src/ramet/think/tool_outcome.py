"""How a tool call ended: what the model is told and what clients are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import (
    ModelRequest,
    RetryInfo,
    ToolCallPart,
    ToolRetryCause,
    ToolReturn,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_core import PydanticSerializationError

from ramet.core.json import (
    JsonObject,
    JsonValue,
    NotJson,
    to_json,
    to_json_strict,
    without_surrogates,
)
from ramet.errors import ChatError
from ramet.protocol import chunks
from ramet.think.hooks import ToolCallInfo, ToolCallResult

Refusal: TypeAlias = ValidationError | ModelRetry | ToolFailed
"""What a tool, or the check of its input, raises to tell the model that a call was no good."""

INTERRUPTED_TOOL: Final = (
    "The tool call was interrupted before it could finish; it may or may not have had its effect."
)

_JSON = TypeAdapter[object](object, config=ConfigDict(ser_json_inf_nan="constants"))
_UNUSABLE = "The tool {name!r} returned something that cannot be written as JSON: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A tool call of the model with the id that clients know it by."""

    call: ToolCallPart
    """As the model made it, with the provider's id."""
    wire_id: str

    @property
    def info(self) -> ToolCallInfo:
        """The call as hooks are told of it."""
        return ToolCallInfo(
            tool_call_id=self.wire_id, tool_name=self.call.tool_name, input=wire_input(self.call)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that stops the turn: somebody outside has to answer it."""

    planned: PlannedCall
    needs_approval: bool = False
    """Whether a person is asked; else a page executes the tool."""

    @property
    def chunks(self) -> Sequence[JsonObject]:
        """What clients are shown."""
        wire_id = self.planned.wire_id
        if not self.needs_approval:
            return ()
        return (chunks.tool_approval_request(f"approval_{wire_id}", wire_id),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The end of one tool call."""

    planned: PlannedCall
    result: ToolReturnPart
    """What the model is told, under the provider's id."""
    chunk: JsonObject
    """What clients are shown, under the wire id."""
    extra: Sequence[UserPromptPart] = ()
    """What the tool says to the model beside its result."""
    fatal: ChatError | None = None
    """Why the turn cannot go on after this call."""

    @property
    def request(self) -> ModelRequest:
        """The result as a message to the model."""
        return ModelRequest(parts=[self.result, *self.extra])

    @property
    def info(self) -> ToolCallResult:
        """The outcome as hooks are told of it."""
        error = self.chunk.get("errorText")
        if isinstance(error, str):
            return ToolCallResult(error=error)
        return ToolCallResult(output=self.chunk.get("output"))


def returned(planned: PlannedCall, value: object) -> ToolOutcome:
    """A tool's return value as the outcome of its call."""
    name, content, metadata = planned.call.tool_name, value, None
    extra: str | Sequence[UserContent] | None = None
    if isinstance(value, ToolReturn):
        content, metadata, extra = value.return_value, value.metadata, value.content
    try:
        plain = _JSON.dump_python(content, mode="json")
        output = to_json_strict(plain)
    except (PydanticSerializationError, NotJson, ValueError) as error:
        return failed(planned, _UNUSABLE.format(name=name, reason=error))
    return ToolOutcome(
        planned=planned,
        result=ToolReturnPart(
            tool_name=name,
            # What JSON cannot carry as it is, the model does not get as it is either.
            content=content if plain == output else output,
            tool_call_id=planned.call.tool_call_id,
            metadata=metadata,
        ),
        chunk=chunks.tool_output_available(planned.wire_id, output),
        extra=(UserPromptPart(content=extra),) if extra else (),
    )


def recalled(planned: PlannedCall, stored: ModelRequest) -> ToolOutcome | None:
    """The outcome of a call that had ended before; None when no result of it is stored."""
    results = [part for part in stored.parts if isinstance(part, ToolReturnPart)]
    if not results:
        return None
    result = results[0]
    if result.outcome == "success":
        chunk = chunks.tool_output_available(planned.wire_id, wire_output(result.content))
    else:
        text = result.model_response_str(wrap_if_error=False)
        chunk = chunks.tool_output_error(planned.wire_id, text)
    extra = [part for part in stored.parts if isinstance(part, UserPromptPart)]
    return ToolOutcome(planned=planned, result=result, chunk=chunk, extra=extra)


def failed(planned: PlannedCall, text: str) -> ToolOutcome:
    """A failure that the model should know of and work around."""
    text = without_surrogates(text)
    return ToolOutcome(
        planned=planned,
        result=ToolReturnPart(
            tool_name=planned.call.tool_name,
            content=text,
            tool_call_id=planned.call.tool_call_id,
            outcome="failed",
        ),
        chunk=chunks.tool_output_error(planned.wire_id, text),
    )


def refused(planned: PlannedCall, error: Refusal, *, attempt: int, limit: int) -> ToolOutcome:
    """A call that the model has to make again, better; past the limit it ends the turn."""
    if isinstance(error, ToolFailed):
        return failed(planned, error.message)
    cause: ToolRetryCause = "model_retry"
    if isinstance(error, ModelRetry):
        text = content = without_surrogates(error.message)
    else:
        cause, text = "validation_error", _validation_text(error)
        details = error.errors(include_url=False, include_context=False)
        content = _JSON.dump_python(details, mode="json")
    name = planned.call.tool_name
    fatal = ChatError(f"The model could not use the tool {name!r}: {text}")
    return ToolOutcome(
        planned=planned,
        result=ToolReturnPart(
            tool_name=name,
            content=content,
            tool_call_id=planned.call.tool_call_id,
            outcome="retried",
            retry=RetryInfo(cause=cause, attempt=attempt, max_retries=limit),
        ),
        chunk=chunks.tool_output_error(planned.wire_id, text),
        fatal=fatal if attempt > limit else None,
    )


def wire_output(content: object) -> JsonValue:
    """A tool's result as JSON data; raises when it holds something JSON cannot carry."""
    if content is None or isinstance(content, str | bool | int):
        return content
    return to_json(_JSON.dump_python(content, mode="json"))


def wire_input(call: ToolCallPart) -> JsonValue:
    """A tool call's input as clients see it: an object always, empty when the model's was none."""
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return {}


def _validation_text(error: ValidationError) -> str:
    details = [
        ".".join(str(step) for step in detail["loc"]) + f": {detail['msg']}"
        if detail["loc"]
        else detail["msg"]
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return "; ".join(details)
