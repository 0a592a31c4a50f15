"""The model's history out of a transcript: native messages where they hold, else the parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
    repair_messages,
)

from ramet.chat.settling import NOT_FINISHED
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import tool_parts
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage
from ramet.think.step_store import StoredStep
from ramet.think.tool_outcome import wire_output

GO_ON: Final = "Continue your last answer from where it ended."

_DENIED: Final = "The tool call was denied."
_STEP: Final[JsonObject] = {"type": "step-start"}

Steps: TypeAlias = Mapping[str, Sequence[StoredStep]]


@dataclass(frozen=True, slots=True)
class _Told:
    message: UIMessage
    steps: Sequence[StoredStep]
    native: Sequence[ModelMessage]


class History:
    """What the model is told of a chat; messages that have not changed are not looked at again."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def tell(self, messages: Iterable[UIMessage], steps: Steps) -> list[ModelMessage]:
        """What `model_history` gives for the messages and their steps."""
        told: dict[str, _Told] = {}
        for message in messages:
            message_id = str(message.get("id"))
            stored = steps.get(message_id, ())
            known = self._told.get(message_id)
            if known is None or known.steps is not stored or known.message != message:
                known = _Told(deepcopy(message), stored, _native(message, stored))
            told[message_id] = known
        self._told = told
        return _ready([each for known in told.values() for each in known.native])


def model_history(messages: Iterable[UIMessage], steps: Steps) -> list[ModelMessage]:
    """What the model is told of the chat so far, ready to be sent: it ends with a request.

    An answer whose steps are stored and still say what its parts say is told as the model said it;
    one that was changed meanwhile, or came from elsewhere, as its parts say it (D5). A tool call
    without a result is told as interrupted.
    """
    return History().tell(messages, steps)


def _native(message: UIMessage, stored: Sequence[StoredStep]) -> list[ModelMessage]:
    complete = answered_steps(message, stored)
    if complete and says_the_same(message, complete):
        return list(native_messages(complete))
    return messages_of(message)


def _ready(history: list[ModelMessage]) -> list[ModelMessage]:
    if not history or isinstance(history[-1], ModelResponse):
        history.append(ModelRequest(parts=[UserPromptPart(GO_ON)]))
    return repair_messages(history)


def native_messages(steps: Iterable[StoredStep]) -> Iterator[ModelMessage]:
    """The messages of some steps: each response, and after it the results of its calls."""
    for step in steps:
        yield step.response
        requests = [result for result in step.results.values() if result is not None]
        results = [part for request in requests for part in request.parts]
        if results:
            returns = [part for part in results if isinstance(part, ToolReturnPart)]
            others = [part for part in results if not isinstance(part, ToolReturnPart)]
            yield ModelRequest(parts=[*returns, *others])


def answered_steps(message: UIMessage, steps: Sequence[StoredStep]) -> Sequence[StoredStep]:
    """The steps behind an answer, with the results that its message has of calls left open.

    So it is with the tools of a page, and with calls that a person has refused.
    """
    if all(None not in step.results.values() for step in steps):
        return steps
    parts = {tool_parts.tool_call_id(part): part for part in parts_of(message)}
    return [
        StoredStep(
            response=step.response,
            results={
                wire_id: result or _result_outside(call, parts.get(wire_id))
                for (wire_id, result), call in zip(step.results.items(), step.calls, strict=False)
            },
        )
        for step in steps
    ]


def _result_outside(call: ToolCallPart, part: JsonObject | None) -> ModelRequest | None:
    if part is None or part.get("errorText") == NOT_FINISHED:
        return None
    results = _result(part, call.tool_call_id)
    return ModelRequest(parts=results) if results else None


def says_the_same(message: UIMessage, steps: Sequence[StoredStep]) -> bool:
    """Whether a message still has the texts, tool calls and outputs of the steps behind it.

    Text and outputs that were shortened to fit on disk count as unchanged.
    """
    parts, shortened = parts_of(message), _shortened(message)
    said = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    native = "".join(_text_of(step.response) for step in steps)
    if said != native and not shortened["compactedTextParts"]:
        return False
    results = {call_id: result for step in steps for call_id, result in step.results.items()}
    calls = {call_id: part for part in parts if (call_id := tool_parts.tool_call_id(part))}
    return calls.keys() == results.keys() and all(
        _same_result(part, results[call_id])
        for call_id, part in calls.items()
        if call_id not in shortened["compactedToolOutputs"]
    )


def messages_of(message: UIMessage) -> list[ModelMessage]:
    """A message of the transcript as messages to or from a model.

    Reasoning is left out: a model takes its own only with the provider's signature.
    """
    match message.get("role"):
        case "assistant":
            return list(_answer(parts_of(message)))
        case "system":
            texts = [str(part["text"]) for part in parts_of(message) if part.get("type") == "text"]
            return [ModelRequest(parts=[SystemPromptPart("\n".join(texts))])] if texts else []
        case _:
            content = [item for part in parts_of(message) if (item := _content(part)) is not None]
            if not content:
                return []
            only = content[0] if len(content) == 1 else None
            prompt = only if isinstance(only, str) else content
            return [ModelRequest(parts=[UserPromptPart(prompt)])]


def _answer(parts: Iterable[JsonObject]) -> Iterator[ModelMessage]:
    said: list[ModelResponsePart] = []
    results: list[ModelRequestPart] = []
    for part in [*parts, _STEP]:
        call_id = tool_parts.tool_call_id(part)
        is_text = part.get("type") == "text" and bool(part.get("text"))
        if said and (part.get("type") == "step-start" or (is_text and results)):
            yield ModelResponse(parts=said)
            if results:
                yield ModelRequest(parts=results)
            said, results = [], []
        if is_text:
            said.append(TextPart(str(part["text"])))
        elif call_id is not None:
            said.append(_call(part, call_id))
            results.extend(_result(part, call_id))


def _call(part: JsonObject, call_id: str) -> ToolCallPart:
    return ToolCallPart(
        tool_name=tool_parts.tool_name(part),
        args=tool_parts.input_object(part.get("input")),
        tool_call_id=call_id,
    )


def _result(part: JsonObject, call_id: str) -> list[ToolReturnPart]:
    name = tool_parts.tool_name(part)
    match part.get("state"):
        case tool_parts.OUTPUT_AVAILABLE:
            return [ToolReturnPart(name, part.get("output"), call_id)]
        case tool_parts.OUTPUT_ERROR:
            return [ToolReturnPart(name, part.get("errorText"), call_id, outcome="failed")]
        case tool_parts.OUTPUT_DENIED:
            return [ToolReturnPart(name, _DENIED, call_id, outcome="denied")]
        case _:
            return []


def _content(part: JsonObject) -> UserContent | None:
    text, url = part.get("text"), part.get("url")
    if part.get("type") == "text" and isinstance(text, str):
        return text or None
    if part.get("type") == "file" and isinstance(url, str):
        return _file(url, str(part.get("mediaType") or "") or None)
    return None


def _file(url: str, media: str | None) -> UserContent | None:
    if url.startswith("data:"):
        try:
            return BinaryContent.from_data_uri(url)
        except ValueError:
            return None
    match (media or "").partition("/")[0]:
        case "image":
            return ImageUrl(url, media_type=media)
        case "audio":
            return AudioUrl(url, media_type=media)
        case "video":
            return VideoUrl(url, media_type=media)
        case _:
            return DocumentUrl(url, media_type=media)


def _same_result(part: JsonObject, result: ModelRequest | None) -> bool:
    state = part.get("state")
    returned = [part for part in result.parts if isinstance(part, ToolReturnPart)] if result else []
    if not returned or returned[0].outcome != "success":
        return state != tool_parts.OUTPUT_AVAILABLE
    output = wire_output(returned[0].content)
    return state == tool_parts.OUTPUT_AVAILABLE and part.get("output") == output


def _text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _shortened(message: UIMessage) -> Mapping[str, Sequence[JsonValue]]:
    metadata = message.get("metadata")
    noted = metadata if isinstance(metadata, dict) else {}
    keys = ("compactedToolOutputs", "compactedTextParts")
    return {key: names if isinstance(names := noted.get(key), list) else [] for key in keys}
