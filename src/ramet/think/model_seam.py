"""The one place that asks pydantic-ai's models below its `Agent`: a request as a stream of records.

`tests/unit/think/test_pydantic_ai_contract.py` covers what is used here: upgrades fail there first.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias, get_args

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import (
    KnownModelName,
    Model,
    ModelRequestParameters,
    StreamedResponse,
    infer_model,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ramet.errors import NoModel

_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")
_EXTRA = re.compile(r"pydantic-ai-slim\[[\w-]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More of a text part."""

    part: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """More of a reasoning part."""

    part: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEnded:
    """A text or reasoning part is whole, as far as the model has said so far."""

    part: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call begins; its input follows."""

    part: int
    call_id: str
    """The provider's own id."""
    tool_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """More of the JSON text of a tool call's input."""

    part: int
    text: str


StepEvent: TypeAlias = TextDelta | ReasoningDelta | PartEnded | CallStarted | CallDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """What a model is asked in one step."""

    model: Model
    messages: Sequence[ModelMessage]
    """Ends with a `ModelRequest`."""
    tools: Sequence[ToolDefinition] = ()
    instructions: Sequence[str] = ()
    settings: ModelSettings | None = None


class ModelStream:
    """One streamed request: iterate over its `events` once, then take its `response`."""

    def __init__(self, call: ModelCall) -> None:
        self._call = call
        self._stream: StreamedResponse | None = None

    async def events(self) -> AsyncGenerator[StepEvent]:
        """Ask the model and give what it says as it comes; raises what the model raises."""
        call = self._call
        parts = [InstructionPart(content=text) for text in call.instructions if text]
        parameters = ModelRequestParameters(
            function_tools=list(call.tools), instruction_parts=parts or None
        )
        request = model_request_stream(
            call.model,
            with_instructions(call.messages, InstructionPart.join(parts) if parts else None),
            model_settings=call.settings,
            model_request_parameters=parameters,
        )
        async with request as stream:
            self._stream = stream
            raw_events = aiter(stream)
            try:
                async for raw in raw_events:
                    for event in translated(raw):
                        yield event
            finally:
                if isinstance(raw_events, AsyncGenerator):
                    await raw_events.aclose()

    def response(self) -> ModelResponse | None:
        """What the model has said so far, whole or cut; None before it began."""
        if self._stream is None:
            return None
        response = self._stream.get()
        return response if response.parts else None


def with_instructions(
    messages: Sequence[ModelMessage], instructions: str | None
) -> Sequence[ModelMessage]:
    """The messages with the instructions noted in the last request, where some models look."""
    last = messages[-1]
    if instructions is None or not isinstance(last, ModelRequest):
        return messages
    return [*messages[:-1], replace(last, instructions=instructions)]


def translated(raw: ModelResponseStreamEvent) -> Sequence[StepEvent]:
    """The records for one event of the library; empty ones and other kinds are left out."""
    match raw:
        case PartDeltaEvent(index=index, delta=delta):
            return _of_delta(index, delta)
        case PartStartEvent(index=index, part=TextPart(content=text)):
            return (TextDelta(part=index, text=text),) if text else ()
        case PartStartEvent(index=index, part=ThinkingPart(content=text)):
            return (ReasoningDelta(part=index, text=text),) if text else ()
        case PartStartEvent(index=index, part=ToolCallPart() as call):
            return _of_call(index, call)
        case PartEndEvent(index=index, part=TextPart() | ThinkingPart()):
            return (PartEnded(part=index),)
        case _:
            return ()


def _of_delta(index: int, delta: object) -> Sequence[StepEvent]:
    match delta:
        case TextPartDelta(content_delta=text) if text:
            return (TextDelta(part=index, text=text),)
        case ThinkingPartDelta(content_delta=str() as text) if text:
            return (ReasoningDelta(part=index, text=text),)
        case ToolCallPartDelta(args_delta=str() as text) if text:
            return (CallDelta(part=index, text=text),)
        case _:
            return ()


def _of_call(index: int, call: ToolCallPart) -> Sequence[StepEvent]:
    started = CallStarted(part=index, call_id=call.tool_call_id, tool_name=call.tool_name)
    if isinstance(call.args, str) and call.args:
        return (started, CallDelta(part=index, text=call.args))
    return (started,)


def resolve_model(model: Model | str | None, owner: str) -> Model:
    """Turn what a user gave as the model into one.

    Raises:
        NoModel: There is none, it is unknown, its package is missing or it has no key. The sentence
            says what to do and may be shown to anybody.
    """
    if model is None:
        raise NoModel(f"{owner} has no model: set `model` or override `get_model`")
    try:
        return infer_model(model)
    except ImportError as error:
        extra = _EXTRA.search(str(error))
        package = extra.group() if extra else "the package of its provider"
        raise NoModel(
            f"The model {str(model)!r} cannot be used: its package is not installed. "
            f"Install it with: pip install '{package}'"
        ) from error
    except UserError as error:
        raise NoModel(_unusable(str(model), str(error))) from error


def _unusable(model: str, reason: str) -> str:
    variable = _VARIABLE.search(reason)
    if variable is not None:
        return f"The model {model!r} needs the environment variable {variable.group(1)} to be set"
    provider, colon, name = model.partition(":")
    if not colon:
        return f"The model {model!r} is unknown: write it as 'provider:name'"
    known = {each.partition(":")[0] for each in get_args(KnownModelName.__value__)}
    if provider in known:
        return f"The model {model!r} is unknown: {reason}"
    meant = get_close_matches(provider, sorted(known), n=1)
    ask = f". Did you mean '{meant[0]}:{name}'?" if meant else ""
    return f"The model {model!r} is unknown, for there is no provider {provider!r}{ask}"
