"""What users set and override on a `Think`, beside the chat verbs."""

from collections.abc import Awaitable, Sequence
from typing import TypeAlias

from pydantic_ai.models import Model

from ramet.chat.turn import Turn
from ramet.protocol.ui_message import UIChunk
from ramet.think.hooks import StepResult, ToolCallInfo, ToolCallResult

ModelChoice: TypeAlias = Model | str | None
"""A pydantic-ai model, or its name such as `"openai:gpt-5"`."""


class ThinkVerbs:
    """The settings and hooks of a `Think`; every method may be a coroutine function."""

    model: ModelChoice = None
    """The model; a name loads its provider at the first turn."""
    instructions: str = ""
    """What the model is told to be."""
    max_steps: int = 10
    """How many times a turn may ask the model; then it ends with a sentence that says so."""

    def get_model(self) -> ModelChoice | Awaitable[ModelChoice]:
        """Choose the model for a turn; by default `model`."""
        return self.model

    def get_system_prompt(self) -> str | Awaitable[str]:
        """Give the instructions for a turn; by default `instructions`."""
        return self.instructions

    def get_tools(self) -> Sequence[object] | Awaitable[Sequence[object]]:
        """Give the tools for a turn: functions, pydantic-ai `Tool`s and toolsets, mixed.

        A synchronous function runs in a thread. The tools that a model calls in one step run at
        once. `RunContext.deps` is this agent.
        """
        return ()

    def before_turn(self, turn: Turn) -> object:
        """Run before a turn asks the model for the first time; raising ends the turn."""

    def before_step(self, step: int) -> object:
        """Run before each request to the model, counted from 0; raising ends the turn."""

    def before_tool_call(self, call: ToolCallInfo) -> object:
        """Run before a tool; raising refuses the call, and the model is told the reason."""

    def after_tool_call(self, call: ToolCallInfo, result: ToolCallResult) -> object:
        """Run after a tool, before the model is told; raising makes the call a failure."""

    def on_step_finish(self, result: StepResult) -> object:
        """Run when the model has said all of a step, before its tools run."""

    def on_chunk(self, chunk: UIChunk) -> object:
        """Run for each chunk of an answer before it is stored; it holds the answer up."""
