"""The hooks of a user's `Think` as the step loop calls them; one not overridden costs nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TypeAlias

from pydantic_ai.messages import ModelResponse

from ramet.core.json import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallInfo:
    """A tool call as hooks are told of it."""

    tool_call_id: str
    """The id that clients know it by."""
    tool_name: str
    input: JsonValue
    """What the model gave; not validated yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallResult:
    """How a tool call ended, as hooks are told of it."""

    output: JsonValue = None
    error: str | None = None
    """What went wrong, when something did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """One step of a turn: what the model said, before its tools run."""

    step: int
    """Counted from 0."""
    response: ModelResponse
    """With the text, the tool calls and the usage."""


Maybe: TypeAlias = object | Awaitable[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHooks:
    """The overridden hooks; each may be a coroutine function."""

    before_step: Callable[[int], Maybe] | None = None
    before_tool_call: Callable[[ToolCallInfo], Maybe] | None = None
    after_tool_call: Callable[[ToolCallInfo, ToolCallResult], Maybe] | None = None
    on_step_finish: Callable[[StepResult], Maybe] | None = None

    async def starting_step(self, step: int) -> None:
        """Tell that a step begins."""
        if self.before_step is not None:
            await settled(self.before_step(step))

    async def finished_response(self, step: int, response: ModelResponse) -> None:
        """Tell what the model said in a step."""
        if self.on_step_finish is not None:
            await settled(self.on_step_finish(StepResult(step=step, response=response)))

    async def starting_call(self, call: ToolCallInfo) -> None:
        """Tell that a tool is about to run."""
        if self.before_tool_call is not None:
            await settled(self.before_tool_call(call))

    async def finished_call(self, call: ToolCallInfo, result: ToolCallResult) -> None:
        """Tell how a tool call ended."""
        if self.after_tool_call is not None:
            await settled(self.after_tool_call(call, result))


NO_HOOKS = StepHooks()


async def settled(value: object) -> object:
    """What a method gave that may be a coroutine function."""
    return await value if isawaitable(value) else value
