"""One live instance as the host sees it: its fence, its tasks, its database and its sockets."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ramet.agent.build import BuiltAgent
from ramet.agent.runtime import AgentRuntime
from ramet.connections.link import ClientLink
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.host.tasks import InstanceTasks
from ramet.storage import Database


class DirectExit:
    """The exit of an embedded host: what was committed may be seen at once."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def release(self, deliver: Callable[[], object]) -> None:
        """Deliver now, unless the instance is gone."""
        if not self._fence.down:
            deliver()


@dataclass(slots=True, kw_only=True, eq=False)
class Instance:
    """An agent in memory."""

    path: AgentPath
    fence: Fence
    database: Database
    tasks: InstanceTasks
    exit: DirectExit
    built: BuiltAgent
    started: asyncio.Future[None]
    """Done when `on_start` has returned; it fails when that raised."""
    links: set[ClientLink] = field(default_factory=set)
    used_at: float = 0.0
    """When somebody last came to it, on the clock that never goes back."""
    holds: Counter[str] = field(default_factory=Counter)
    """What the host does with it at the moment, by name and how often."""

    @property
    def runtime(self) -> AgentRuntime:
        """The agent's features."""
        return self.built.runtime

    @property
    def ready(self) -> bool:
        """Whether `on_start` has returned well."""
        started = self.started
        return started.done() and not started.cancelled() and started.exception() is None

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may."""
        if not self.ready:
            return "it is starting"
        return self.runtime.busy() or next(iter(self.holds), None)

    @contextmanager
    def hold(self, reason: str) -> Iterator[None]:
        """Keep the instance in memory for the length of a block; see `held`."""
        release = self.held(reason)
        try:
            yield
        finally:
            release()

    def held(self, reason: str) -> Callable[[], None]:
        """Keep the instance in memory until what this returns is called, once."""
        self.holds[reason] += 1

        def release() -> None:
            self.holds[reason] -= 1
            if not self.holds[reason]:
                del self.holds[reason]

        return release

    def end(self, reason: str) -> list[asyncio.Task[Any]]:
        """Take the fence down, then end the tasks; nothing the instance does after this has effect.

        Returns the tasks that still have to notice.
        """
        self.fence.drop(reason)
        ending = self.tasks.cancel()
        if not self.started.done():
            self.started.set_exception(self.fence.error())
            self.started.exception()
        self.database.close()
        return ending
