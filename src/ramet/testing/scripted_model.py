"""A model that plays a script: listed texts, tool calls, pauses, gates and errors, no more."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import ClassVar, Self, TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from typing_extensions import override

from ramet.core.clock import SystemClock
from ramet.core.json import JsonValue, dumps
from ramet.errors import InvalidArguments, RametError

MODEL_NAME = "scripted"
_WORD = re.compile(r"\s*\S+|\s+$")


class ScriptedError(RametError):
    """An error that the script makes the model raise; its message reaches the caller."""

    public: ClassVar[bool] = True


class ScriptBroken(AssertionError):
    """The model was asked more, or less, than its script has answers for."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning part, streamed word by word."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. Without an id it gets `call_1`, `call_2` … through the whole script."""

    tool: str
    input: JsonValue = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """A pause of so many seconds, on the model's own `sleep`."""

    seconds: float


class Gate:
    """A place where the model (or a tool of a test) waits until the test opens it."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._reached = asyncio.Event()
        self.waiting = 0
        """How many wait there now."""

    def open(self) -> None:
        """Let everything pass, now and later."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until something waits at the gate, or has passed it."""
        await self._reached.wait()

    async def wait(self) -> None:
        """Wait until the gate is open."""
        self._reached.set()
        self.waiting += 1
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1


Piece: TypeAlias = str | Reasoning | ToolCall | Delay | Gate | ScriptedError
Answer: TypeAlias = Piece | Sequence[Piece]
"""What the model says to one request: a text, or several pieces in order."""

Rule: TypeAlias = Callable[[list[ModelMessage], list[ToolDefinition]], Answer]
Sleep: TypeAlias = Callable[[float], Awaitable[object]]


def last_asked(messages: Sequence[ModelMessage]) -> str:
    """What a model was asked last: the text of the user, or what a tool has given.

    Several tools may have answered at once; it is the last of them. Empty when nothing was asked.
    """
    for part in (part for message in reversed(messages) for part in reversed(message.parts)):
        match part:
            case UserPromptPart(content=str() as text):
                return text
            case UserPromptPart(content=pieces):
                return "".join(piece for piece in pieces if isinstance(piece, str))
            case ToolReturnPart():
                return part.model_response_str()
            case _:
                continue
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """What the model was asked once."""

    messages: list[ModelMessage]
    tools: list[ToolDefinition]
    instructions: str | None
    settings: ModelSettings | None

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that the model had."""
        return [tool.name for tool in self.tools]


class ScriptedModel(Model[None]):
    """A pydantic-ai model that answers its n-th request with the n-th answer of a script.

    ```python
    model = ScriptedModel([
        [Reasoning("hm"), ToolCall("search", {"query": "QUIC"}), ToolCall("plan")],
        ["Two sources say ", gate, "the same."],
        ScriptedError("out of credit"),
    ])
    ```

    A request that the script has no answer for fails with `ScriptBroken`. `assert_done()`, which
    leaving `with model:` calls, fails when there was one, and when an answer was never asked for.

    Args:
        script: One answer for each request, in order.
        sleep: What a `Delay` waits with; give `ManualClock().sleep` to move the time yourself.
    """

    def __init__(self, script: Iterable[Answer], *, sleep: Sleep | None = None) -> None:
        super().__init__()
        if isinstance(script, str):
            raise InvalidArguments(
                f"A script is a list of answers: write ScriptedModel([{script!r}])"
            )
        self._answers = list(script)
        self._rule: Rule | None = None
        self._sleep = sleep or SystemClock().sleep
        self._calls = 0
        self._unexpected = 0
        self.requests: list[ScriptedRequest] = []
        """What it was asked so far."""

    @classmethod
    def by_rule(cls, rule: Rule, *, sleep: Sleep | None = None) -> Self:
        """A model that makes up each answer from the messages and the tools it is given."""
        model = cls([], sleep=sleep)
        model._rule = rule
        return model

    @property
    def model_name(self) -> str:
        """The name under which its answers are stored: `scripted`."""
        return MODEL_NAME

    @property
    def system(self) -> str:
        """The provider's name: `ramet`."""
        return "ramet"

    def assert_done(self) -> None:
        """Fail unless every answer was asked for, and nothing else."""
        left = len(self._answers) - len(self.requests)
        if self._unexpected:
            raise ScriptBroken(
                f"The model was asked {len(self.requests)} times; "
                f"its script has {len(self._answers)} answers"
            )
        if self._rule is None and left:
            raise ScriptBroken(
                f"{left} of the script's {len(self._answers)} answers were not asked for"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.assert_done()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Play the next answer and return it whole."""
        async with self.request_stream(
            messages, model_settings, model_request_parameters
        ) as stream:
            async for _ in stream:
                pass
        return stream.get()

    @override
    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[object] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Play the next answer."""
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        parts = parameters.instruction_parts or []
        asked = ScriptedRequest(
            messages=list(messages),
            tools=list(parameters.function_tools),
            instructions="\n\n".join(part.content for part in parts) or None,
            settings=settings,
        )
        self.requests.append(asked)
        yield ScriptedStream(
            model_request_parameters=parameters, pieces=self._next(asked), play=self._play
        )

    def _next(self, asked: ScriptedRequest) -> Sequence[Piece]:
        if self._rule is not None:
            answer = self._rule(asked.messages, asked.tools)
        elif len(self.requests) <= len(self._answers):
            answer = self._answers[len(self.requests) - 1]
        else:
            self._unexpected += 1
            raise ScriptBroken(f"The script has no answer for request {len(self.requests)}")
        if isinstance(answer, Sequence) and not isinstance(answer, str):
            return answer
        return [answer]

    async def _play(self, piece: Piece) -> ToolCall | None:
        match piece:
            case ToolCall(id=None):
                self._calls += 1
                return ToolCall(piece.tool, piece.input, f"call_{self._calls}")
            case ToolCall():
                return piece
            case Delay(seconds=seconds):
                await self._sleep(seconds)
            case Gate():
                await piece.wait()
            case ScriptedError():
                raise piece
            case _:
                pass
        return None


@dataclass
class ScriptedStream(StreamedResponse):
    """One answer as it is handed out."""

    pieces: Sequence[Piece]
    play: Callable[[Piece], Awaitable[ToolCall | None]]
    started: datetime = field(default_factory=lambda: datetime.fromtimestamp(0, UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for index, piece in enumerate(self.pieces):
            call = await self.play(piece)
            if isinstance(piece, str | Reasoning):
                text = piece if isinstance(piece, str) else piece.text
                for word in _WORD.findall(text):
                    for event in self._say(piece, word):
                        yield event
            elif call is not None:
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id=f"call {index}",
                    tool_name=call.tool,
                    args=dumps(call.input),
                    tool_call_id=call.id,
                )

    def _say(self, piece: str | Reasoning, word: str) -> Iterable[ModelResponseStreamEvent]:
        if isinstance(piece, str):
            return self._parts_manager.handle_text_delta(vendor_part_id=None, content=word)
        return self._parts_manager.handle_thinking_delta(vendor_part_id=None, content=word)

    async def close_stream(self) -> None:
        """Nothing is open that could be closed."""

    @property
    def model_name(self) -> str:
        """The model's name."""
        return MODEL_NAME

    @property
    def provider_name(self) -> str:
        """The provider's name."""
        return "ramet"

    @property
    def provider_url(self) -> None:
        """There is no address."""
        return None

    @property
    def timestamp(self) -> datetime:
        """When the answer was made: the epoch, so that runs compare."""
        return self.started
