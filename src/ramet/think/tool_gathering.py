"""Makes one toolset of what a user gave as tools: functions, `Tool`s and toolsets, mixed."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import isawaitable, isroutine
from typing import Any

from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from ramet.core.threads import in_thread
from ramet.errors import ConfigurationError
from ramet.think.idempotent import note_all, noted

_MOST_KNOWN = 1_024

_known: dict[Hashable, "_Known"] = {}


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found out about a function: reading its docstring takes milliseconds."""

    schema: Any
    name: str
    description: str | None


def gather(given: Iterable[object]) -> AbstractToolset[object]:
    """One toolset out of functions, `Tool`s and toolsets; plain functions run in threads.

    Raises:
        ConfigurationError: Something else was given.
    """
    tools: list[Tool[object]] = []
    toolsets: list[AbstractToolset[object]] = []
    for item in given:
        if isinstance(item, AbstractToolset):
            note_all(item)
            toolsets.append(item)
        elif isinstance(item, Tool):
            tools.append(_off_the_loop(noted(item)))
        elif isroutine(item):
            tools.append(_off_the_loop(noted(_tool_of(item))))
        else:
            raise ConfigurationError(
                f"{item!r} is no tool: give functions, pydantic-ai `Tool`s or toolsets"
            )
    own = FunctionToolset[object](tools)
    return CombinedToolset([own, *toolsets]) if toolsets else own


def _tool_of(function: Callable[..., Any]) -> Tool[object]:
    key = _key_of(function)
    known = _known.get(key) if key is not None else None
    if known is not None:
        return Tool[object](
            function,
            name=known.name,
            description=known.description,
            function_schema=replace(known.schema, function=function),
        )
    tool = Tool[object](function)
    if key is not None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        schema = replace(tool.function_schema, function=_nothing)
        _known[key] = _Known(schema, tool.name, tool.description)
    return tool


def _key_of(function: Callable[..., Any]) -> Hashable | None:
    """What a function's schema hangs on; None for other callables and what cannot be compared."""
    plain = getattr(function, "__func__", function)
    try:
        key: Hashable = (
            plain.__code__,
            plain.__module__,
            plain.__qualname__,
            plain.__doc__,
            plain.__defaults__,
            tuple((plain.__kwdefaults__ or {}).items()),
            tuple(plain.__annotations__.items()),
            function is plain,
        )
        hash(key)
    except (AttributeError, TypeError):
        return None
    return key


def _off_the_loop(tool: Tool[object]) -> Tool[object]:
    """The tool as it is when it is async, else one whose function runs in a thread."""
    schema = tool.function_schema
    if schema.is_async:
        return tool
    threaded = copy(tool)
    threaded.function_schema = replace(schema, function=_threaded(schema.function), is_async=True)
    return threaded


def _threaded(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        result = await in_thread(function, *args, **kwargs)
        return await result if isawaitable(result) else result

    return run


def _nothing() -> None:
    return None
