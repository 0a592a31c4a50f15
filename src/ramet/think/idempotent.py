"""`@idempotent`: marks tools that may run again when a crash has cut them off (D9)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, WrapperToolset

F = TypeVar("F", bound=Callable[..., object])

_MARK: Final = "__ramet_idempotent__"
_KEY: Final = "ramet_idempotent"


def idempotent(function: F) -> F:
    """Mark a tool: run twice with the same arguments it does no harm.

    When the process dies while it runs, it is run again with the same arguments. The model is told
    of any other tool that it was interrupted.
    """
    setattr(function, _MARK, True)
    return function


def noted(tool: Tool[object], *, always: bool = False) -> Tool[object]:
    """The tool, with its function's mark where the loop finds it."""
    if always or getattr(tool.function, _MARK, False):
        tool.metadata = {**(tool.metadata or {}), _KEY: True}
    return tool


def note_all(toolset: AbstractToolset[Any]) -> None:
    """Note the marks of all functions in a toolset."""
    if isinstance(toolset, FunctionToolset):
        for tool in toolset.tools.values():
            noted(tool)
    elif isinstance(toolset, CombinedToolset):
        for each in toolset.toolsets:
            note_all(each)
    elif isinstance(toolset, WrapperToolset):
        note_all(toolset.wrapped)


def may_run_again(metadata: Mapping[str, object] | None) -> bool:
    """Whether the tool with this metadata may be run again."""
    return bool(metadata and metadata.get(_KEY))
