"""One live instance as the host sees it: its fence, its tasks, its database and its sockets."""

import asyncio
from collections.abc import Callable
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
    requests: int = 0
    """HTTP requests that are being answered."""

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
        if self.requests:
            return "an HTTP request is being answered"
        return self.runtime.busy()

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
