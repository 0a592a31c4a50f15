"""Which agent, connection and turn the running code belongs to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol


class CurrentConnection(Protocol):
    """What the rest of ramet needs to know of the connection that caused the running code."""

    @property
    def id(self) -> str:
        """The connection's id."""
        ...

    @property
    def readonly(self) -> bool:
        """Whether it may not change the state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What the running code works for."""

    agent: object
    connection: CurrentConnection | None = None
    request_id: str | None = None
    """The chat turn, when the code runs inside one."""
    tool_call_id: str | None = None
    """The model's tool call, when the code runs inside one."""
    run_positions: Iterator[int] = field(default_factory=count, repr=False, compare=False)
    """Numbers the runs that one execution of a tool call starts (D9)."""


_current: ContextVar[Current | None] = ContextVar("ramet_current", default=None)


def current() -> Current | None:
    """What the running code works for; None outside any agent."""
    return _current.get()


def current_agent() -> object | None:
    """The agent that the running code belongs to; None outside any."""
    found = _current.get()
    return found.agent if found else None


def set_base(base: Current) -> None:
    """Say what a context works for from its beginning on."""
    _current.set(base)


@contextmanager
def working_for(agent: object, connection: CurrentConnection | None = None) -> Iterator[None]:
    """Run the block as code of `agent`, started by `connection` if one did."""
    token = _current.set(Current(agent=agent, connection=connection))
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def within(*, request_id: str | None = None, tool_call_id: str | None = None) -> Iterator[None]:
    """Run the block inside a turn or a tool call of the current agent."""
    found = _current.get()
    if found is None:
        yield
        return
    changed = replace(
        found,
        request_id=request_id or found.request_id,
        tool_call_id=tool_call_id or found.tool_call_id,
        run_positions=found.run_positions if tool_call_id is None else count(),
    )
    token = _current.set(changed)
    try:
        yield
    finally:
        _current.reset(token)
