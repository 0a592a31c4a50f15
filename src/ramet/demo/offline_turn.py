"""What the offline model sees and does: a turn read from messages, and the moves it can make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ramet.core.json import JsonObject, JsonValue, loads_object, loads_or_raw, to_json
from ramet.demo.background import Notice, read_notice

_LONGEST_QUESTION = 2_000
_ASKING_KEYS = ("query", "goal", "question", "task", "prompt", "text", "input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool to call with these arguments."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTools:
    """Call one or more tools in one step."""

    reason: str
    """The rule that led here, in a sentence or two."""
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """End the turn with a text."""

    reason: str
    """The rule that led here, in a sentence or two."""
    text: str


Move: TypeAlias = CallTools | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the model may call."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one call gave back."""

    tool: str
    arguments: JsonObject
    content: JsonValue
    failure: str | None = None
    """Why the call failed; None when it did not."""

    def argument(self, name: str) -> str:
        """An argument of the call as text; empty when it was not given."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The last question of a conversation and what was done about it so far."""

    question: str
    aspect: str = ""
    """What the answer should also touch on, such as the other side of a comparison."""
    thorough: bool = False
    """Whether to look further than an answer needs."""
    notice: Notice | None = None
    """Set when the last message is no question: a run in the background has ended."""
    previous: str = ""
    """The question before this one."""
    steps: tuple[tuple[ToolResult, ...], ...] = ()
    """The results of each step that was taken, in call order."""

    def results(self, tool: str) -> list[ToolResult]:
        """What a tool gave back in this turn, failures left out."""
        return [result for result in self.every_result(tool) if result.failure is None]

    def every_result(self, tool: str) -> list[ToolResult]:
        """What a tool gave back in this turn, failures too."""
        return [result for step in self.steps for result in step if result.tool == tool]

    def failures(self) -> list[ToolResult]:
        """The calls of this turn that failed."""
        return [result for step in self.steps for result in step if result.failure is not None]


def read_turn(messages: Sequence[ModelMessage]) -> Turn:
    """Find the last question in the messages, and the tool results that came after it."""
    questions: list[str] = []
    steps: list[tuple[ToolResult, ...]] = []
    calls: dict[str, JsonObject] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            calls.update(_arguments(message))
            continue
        asked = list(filter(None, map(_prompt, message.parts)))
        if asked:
            questions.extend(asked)
            steps = []
        if results := tuple(_results(message, calls)):
            steps.append(results)
    last = _asked(questions[-1]) if questions else _Asked(question="")
    earlier = (text for text in reversed(questions[:-1]) if read_notice(text) is None)
    previous = _asked(next(earlier, ""))
    return Turn(
        question=last.question[:_LONGEST_QUESTION],
        aspect=last.aspect[:_LONGEST_QUESTION],
        thorough=last.thorough,
        notice=read_notice(questions[-1]) if questions else None,
        previous=previous.question[:_LONGEST_QUESTION],
        steps=tuple(steps),
    )


def failure_of(content: JsonValue) -> str | None:
    """Why a run failed, from the envelope that an agent tool gives; None when it is no failure."""
    if not isinstance(content, dict) or content.get("ok") is not False:
        return None
    error, status = content.get("error"), content.get("status")
    return str(error or status or "it failed without saying why")


def _arguments(response: ModelResponse) -> Iterator[tuple[str, JsonObject]]:
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            yield part.tool_call_id, loads_object(part.args_as_json_str()) or {}


def _prompt(part: ModelRequestPart) -> str:
    """The text that a user wrote; empty when the part holds none."""
    if not isinstance(part, UserPromptPart):
        return ""
    if isinstance(part.content, str):
        return part.content.strip()
    texts = (
        item.content if isinstance(item, TextContent) else item
        for item in part.content
        if isinstance(item, str | TextContent)
    )
    return " ".join(texts).strip()


def _results(request: ModelRequest, calls: dict[str, JsonObject]) -> Iterator[ToolResult]:
    """The results in a request; those before its last question belong to an earlier turn."""
    asked = (at for at, part in enumerate(request.parts, 1) if _prompt(part))
    for part in request.parts[max(asked, default=0) :]:
        if not isinstance(part, ToolReturnPart):
            continue
        content = _plain(part.content)
        failure = failure_of(content)
        if failure is None and part.outcome != "success":
            failure = content if isinstance(content, str) and content else part.outcome
        yield ToolResult(
            tool=part.tool_name,
            arguments=calls.get(part.tool_call_id, {}),
            content=content,
            failure=failure,
        )


def _plain(content: object) -> JsonValue:
    """A result as JSON data; a text that is a JSON object or list is read as one."""
    if not isinstance(content, str):
        return to_json(content)
    decoded = loads_or_raw(content)
    return decoded if isinstance(decoded, dict | list) else content


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    question: str
    aspect: str = ""
    thorough: bool = False


def _asked(prompt: str) -> _Asked:
    """What a text asks; a child is asked with a JSON object."""
    given = loads_object(prompt)
    if given is None:
        return _Asked(question=prompt)
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value}
    question = next((texts.pop(key) for key in _ASKING_KEYS if key in texts), "")
    return _Asked(
        question=question or prompt,
        aspect=" ".join(texts.values()),
        thorough=given.get("thorough") is True,
    )
