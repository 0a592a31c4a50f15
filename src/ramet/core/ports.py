"""What features ask for instead of "the host": narrow ports that the host fulfils."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ramet.core.json import JsonObject, JsonValue
from ramet.core.paths import AgentPath

T = TypeVar("T")


class Background(Protocol):
    """Owns the tasks of one instance: they run in its base context and end with it (D12)."""

    def start(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        """Run `work` as a task of the instance.

        An error nobody awaits goes to the agent's `on_error`. When the instance dies its fence goes
        down first, then the task is cancelled.
        """
        ...


class Exit(Protocol):
    """The one way out for everything that leaves an agent: frames, replies, HTTP bodies.

    Embedded, it delivers at once. An engine holds an output here until the commits that it depends
    on (those of the root with its sub-agents so far) are safe elsewhere.
    """

    def release(self, deliver: Callable[[], object]) -> None:
        """Call `deliver` once what was committed may be seen; never after the fence fell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A method call on another agent."""

    method: str
    args: Sequence[object] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


class Caller(Protocol):
    """Reaches other agents: opens them when need be, and runs their methods as their own tasks."""

    async def call(self, target: AgentPath, call: Call) -> object:
        """Run a method of the agent at `target` and return what it returns.

        Cancelling the caller cancels the method, except when the caller's instance is dying. When
        the target dies meanwhile the call raises `InstanceGone` with the reason.
        """
        ...

    def stream(self, target: AgentPath, call: Call) -> AsyncIterator[object]:
        """Iterate over what an async-iterating method of the agent at `target` gives."""
        ...


class Lifecycles(Protocol):
    """Opens, stops and removes agents below the asking one."""

    async def open(self, target: AgentPath) -> None:
        """Open the agent at `target` with everything above it; its `on_start` has run after."""
        ...

    def abort(self, target: AgentPath, reason: str) -> None:
        """Stop the instance at `target` and those below it; what is stored stays."""
        ...

    async def delete(self, target: AgentPath) -> None:
        """Stop the agent at `target` and those below it and remove what they stored."""
        ...


class ClassNames(Protocol):
    """Knows the registered agent classes by name."""

    def name_of(self, cls: type | str) -> str:
        """The registered name of a class, or of a name it had before.

        Raises:
            AgentNotRegistered: It was not given to `App(agents=…, sub_agents=…)`.
        """
        ...

    def class_of(self, name: str) -> type:
        """The class registered under a name or a former name; raises like `name_of`."""
        ...

    def by_segment(self, segment: str) -> str | None:
        """The registered name whose URL form is `segment`."""
        ...


class Events(Protocol):
    """Where things that happened are reported for whoever observes."""

    def emit(self, type: str, payload: JsonObject | None = None) -> None:
        """Report an event of the agent; without a subscriber it costs next to nothing."""
        ...


class ErrorHook(Protocol):
    """Tells the agent's own `on_error` of an error that has no caller to go to."""

    def report(self, error: BaseException) -> None:
        """Hand the error over; never raises."""
        ...


__all__ = [
    "Background",
    "Call",
    "Caller",
    "ClassNames",
    "ErrorHook",
    "Events",
    "Exit",
    "JsonValue",
    "Lifecycles",
]
