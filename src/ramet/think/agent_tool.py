"""`agent_tool`: another agent as a tool that a model can call (AT-009 … 013, AT-164 … 173)."""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.tools import GenerateToolJsonSchema, RunContext, Tool

from ramet.agent_tools.children import check_adapter
from ramet.agent_tools.records import RunResult
from ramet.agent_tools.verbs import AgentToolVerbs
from ramet.core.current import current, within
from ramet.core.json import JsonObject, JsonValue
from ramet.errors import AgentNotRegistered, InvalidArguments, NoCurrentAgent
from ramet.think.idempotent import noted

_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that the providers of models take."""
_WRAPPED = "input"
_FAILURES = {
    "interrupted": "The run was interrupted before it could finish; it can be retried.",
    "aborted": "The run was cancelled.",
    "error": "The run failed.",
}

_log = logging.getLogger("ramet.think")


def agent_tool(
    cls: type,
    *,
    description: str,
    input: Any = str,
    output: Any = None,
    name: str | None = None,
    display_name: str | None = None,
    icon: str | None = None,
    display: Mapping[str, JsonValue] | None = None,
) -> Tool[object]:
    """Make a tool that runs another agent, for `Think.get_tools()` or any pydantic-ai agent.

    The run belongs to the agent that the code runs in, and is shown under the tool call. A run that
    completes gives the model its summary, or its output when `output` is given; any other gives it
    an object `{"ok": false, "status", "error", "retryable", …}`.

    Args:
        cls: The child's class, given to `App`.
        description: Tells the model what the child is good for.
        input: The type of what the child is asked; its fields are the tool's parameters. A type
            that is no object is asked for as the one parameter `input`.
        output: A type that the child's output must fit.
        name: The tool's name; by default the class name in snake_case.
        display_name: The name that clients show the run under; where the run is shown with an icon
            or more, the class name in words by default.
        icon: What clients show beside it.
        display: More for clients; `display_name` and `icon` override its `name` and `icon`.

    Raises:
        InvalidArguments, NotAnAgentTool: There can be no tool of that class or name.
    """
    words = _WORD_BEGINS.sub(" ", _checked_class(cls).__name__)
    tool_name = _checked_name(words.replace(" ", "_").lower() if name is None else name)
    question = _question(input)
    shown = _display(display, display_name, icon, words=words)

    def check(ctx: RunContext[object], /, **arguments: Any) -> None:
        question.read(arguments)

    async def run(ctx: RunContext[object], /, **arguments: Any) -> object:
        now = current()
        agent = now.agent if now is not None else None
        if now is None or not isinstance(agent, AgentToolVerbs):
            raise NoCurrentAgent(
                f"The agent tool {tool_name!r} was called outside of an agent: "
                "use it from inside a turn of a ramet agent"
            )
        tool_call_id = None if now.tool_call_id else ctx.tool_call_id
        with within(tool_call_id=tool_call_id), _unregistered_logged(tool_name):
            result = await agent.run_agent_tool(
                cls, input=question.read(arguments), output=output, display=shown
            )
        return answer(result, structured=output is not None)

    tool = Tool[object].from_schema(
        run, tool_name, description, question.schema, takes_ctx=True, args_validator=check
    )
    return noted(tool, always=True)


def answer(result: RunResult[object], *, structured: bool) -> object:
    """What the model is told of a run that has ended."""
    if result.status == "completed":
        return result.output if structured else result.summary or ""
    failure: JsonObject = {
        "ok": False,
        "status": result.status,
        "error": result.error or _FAILURES[result.status],
        "retryable": result.status == "interrupted",
    }
    if result.status == "interrupted" and result.reason is not None:
        failure["reason"] = result.reason
    if result.status == "interrupted" and result.child_still_running is not None:
        failure["childStillRunning"] = result.child_still_running
    return failure


@contextmanager
def _unregistered_logged(tool_name: str) -> Iterator[None]:
    """Tell the log of a class that `App` was not given: the model alone can do nothing about it."""
    try:
        yield
    except AgentNotRegistered as error:
        _log.error("The tool %r cannot be called: %s", tool_name, error)
        raise


def _checked_class(cls: object) -> type:
    if not isinstance(cls, type):
        raise InvalidArguments(f"agent_tool takes an agent class, not {cls!r}")
    check_adapter(cls)
    return cls


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise InvalidArguments(
            f"The name of a tool has 1 to 64 letters (a to z), digits, _ and -, not {name!r}: "
            "give agent_tool another name=…"
        )
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What a child is asked, as the parameters of a tool."""

    adapter: TypeAdapter[Any]
    schema: dict[str, Any]
    wrapped: bool

    def read(self, arguments: Mapping[str, Any]) -> JsonValue:
        """The child's input as JSON data; raises pydantic's `ValidationError`."""
        given = arguments.get(_WRAPPED) if self.wrapped else dict(arguments)
        asked: JsonValue = self.adapter.dump_python(
            self.adapter.validate_python(given), mode="json", by_alias=True
        )
        return asked


@lru_cache(maxsize=256)
def _question(asked: Any) -> _Question:
    adapter = TypeAdapter[Any](asked)
    schema = adapter.json_schema(schema_generator=GenerateToolJsonSchema)
    if schema.get("type") == "object":
        return _Question(adapter=adapter, schema=schema, wrapped=False)
    definitions = schema.pop("$defs", None)
    wrapping = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
    if definitions:
        wrapping["$defs"] = definitions
    return _Question(adapter=adapter, schema=wrapping, wrapped=True)


def _display(
    display: Mapping[str, JsonValue] | None, name: str | None, icon: str | None, *, words: str
) -> JsonObject | None:
    if display is None and name is None and icon is None:
        return None
    named = {"name": name, "icon": icon}
    return {
        "name": words,
        **(display or {}),
        **{key: value for key, value in named.items() if value is not None},
    }
