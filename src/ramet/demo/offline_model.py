"""A model that works by rule, without a network or a key, over whatever tools it is given.

It is no language model and does not pretend to be one: it is called `offline`, its reasoning part
names the rule that was followed, and its answers are made of what tools returned. Which rules apply
follows from the tools it may call:

- `research(query)`, `plan(goal)`, `compare(a, b)`: the assistant's. `research` and `plan` return
  the child's Markdown; `compare` returns `{"a": …, "b": …}` with the Markdown of each side.
- `search(query)`, `read(id)`: the researcher's. `search` returns a list of `Passage.hit()`, `read`
  returns a `Passage.page()`.
- `list_files()`, `search_files(words)`, `read_file(path, start_line)`: the planner's. They return
  what `Folder.describe()`, `Folder.search_text()` and `Folder.read_text()` return, as JSON.

A child may be asked with a plain text, or with a JSON object that holds the question under `query`
or `goal`; other texts in it are aspects that the answer should touch on. Anything that failed may
come as the failure envelope `{"ok": false, "status": …, "error": …}` instead, also as one side of a
comparison, and is named in the answer.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage

from ramet.core.clock import SystemClock
from ramet.core.json import dumps
from ramet.demo.offline_assistant import assist
from ramet.demo.offline_planner import PLANNER_TOOLS, plan
from ramet.demo.offline_researcher import RESEARCHER_TOOLS, research
from ramet.demo.offline_turn import Answer, CallTools, Move, Tool, Turn, read_turn

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

MODEL_NAME = "offline"
PROVIDER = "ramet"
_PIECE = re.compile(r"\s*\S+|\s+$")


class OfflineModel(Model[None]):
    """The offline rules as a pydantic-ai model.

    Args:
        delay_seconds: The pause before each piece of a streamed response, so that a person sees it
            grow.
        sleep: What waits for that long; the machine's clock by default.
    """

    def __init__(self, *, delay_seconds: float = 0.012, sleep: Sleep | None = None) -> None:
        super().__init__()
        self._delay_seconds = delay_seconds
        self._sleep = sleep or SystemClock().sleep

    @property
    def model_name(self) -> str:
        """The name under which its responses are stored: `offline`."""
        return MODEL_NAME

    @property
    def system(self) -> str:
        """The provider's name: `ramet`."""
        return PROVIDER

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Decide on the next move and return it at once."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        return _respond(messages, parameters)

    @asynccontextmanager
    async def request_stream(  # noqa: PLR0917 - the library's signature
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[object] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Decide on the next move and stream it word by word."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        yield OfflineStream(
            model_request_parameters=parameters,
            response=_respond(messages, parameters),
            delay_seconds=self._delay_seconds,
            sleep=self._sleep,
        )


@dataclass
class OfflineStream(StreamedResponse):
    """A response that is handed out in small pieces."""

    response: ModelResponse
    delay_seconds: float
    sleep: Sleep

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self._usage = RequestUsage(input_tokens=self.response.usage.input_tokens)
        for index, part in enumerate(self.response.parts):
            for piece, events in self._pieces(index, part):
                await self.sleep(self.delay_seconds)
                for event in events:
                    yield event
                self._usage += RequestUsage(output_tokens=_words(piece))

    async def close_stream(self) -> None:
        """There is no connection to close."""

    @property
    def model_name(self) -> str:
        """The model's name."""
        return MODEL_NAME

    @property
    def provider_name(self) -> str:
        """The provider's name."""
        return PROVIDER

    @property
    def provider_url(self) -> None:
        """There is no address: nothing leaves the process."""
        return

    @property
    def timestamp(self) -> datetime:
        """When the response was made."""
        return self.response.timestamp

    def _pieces(
        self, index: int, part: ModelResponsePart
    ) -> Iterator[tuple[str, Iterable[ModelResponseStreamEvent]]]:
        manager = self._parts_manager
        match part:
            case ThinkingPart():
                for piece in _split(part.content):
                    yield piece, manager.handle_thinking_delta(vendor_part_id=index, content=piece)
            case TextPart():
                for piece in _split(part.content):
                    yield piece, manager.handle_text_delta(vendor_part_id=index, content=piece)
            case ToolCallPart():
                for number, piece in enumerate(_split(part.args_as_json_str())):
                    first = number == 0
                    yield (
                        piece,
                        manager.handle_tool_call_delta_events(
                            vendor_part_id=index,
                            tool_name=part.tool_name if first else None,
                            args=piece,
                            tool_call_id=part.tool_call_id if first else None,
                        ),
                    )
            case _:
                raise AssertionError(f"the offline rules made a {part.part_kind} part")


def _respond(messages: list[ModelMessage], parameters: ModelRequestParameters) -> ModelResponse:
    tools = tuple(
        Tool(name=tool.name, description=tool.description or "")
        for tool in parameters.function_tools
    )
    parts = _parts(_decide(read_turn(messages), tools))
    return ModelResponse(
        parts=parts,
        model_name=MODEL_NAME,
        provider_name=PROVIDER,
        usage=RequestUsage(
            input_tokens=sum(_words(text) for message in messages for text in _texts(message)),
            output_tokens=sum(_words(text) for text in _texts(ModelResponse(parts=parts))),
        ),
    )


def _decide(turn: Turn, tools: tuple[Tool, ...]) -> Move:
    """Follow the rules of the role that the tools make."""
    names = {tool.name for tool in tools}
    if names >= RESEARCHER_TOOLS:
        return research(turn)
    if names >= PLANNER_TOOLS:
        return plan(turn)
    return assist(turn, tools)


def _parts(move: Move) -> list[ModelResponsePart]:
    thinking = ThinkingPart(content=move.reason)
    match move:
        case Answer(text=text):
            return [thinking, TextPart(content=text)]
        case CallTools(calls=calls):
            made = (ToolCallPart(call.tool, dumps(call.arguments)) for call in calls)
            return [thinking, *made]


def _texts(message: ModelMessage) -> Iterator[str]:
    if isinstance(message, ModelRequest):
        if message.instructions:
            yield message.instructions
        for part in message.parts:
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                yield part.content
            elif isinstance(part, ToolReturnPart):
                yield part.model_response_str()
        return
    for response_part in message.parts:
        if isinstance(response_part, TextPart | ThinkingPart):
            yield response_part.content
        elif isinstance(response_part, ToolCallPart):
            yield response_part.args_as_json_str()


def _split(text: str) -> list[str]:
    """A text as words with the space before each, so that joined they are the text."""
    return _PIECE.findall(text)


def _words(text: str) -> int:
    return len(text.split())
