"""A parent's surroundings for tests of single parts: a real database, real outboxes, no host."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ramet.agent_tools.feature import AgentToolPorts
from ramet.agent_tools.records import Progress, RunInfo, RunResult, StoredChunk
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.json import JsonObject
from ramet.core.options import AgentOptions, HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Call
from ramet.storage import combined
from ramet.testing import ManualClock
from tests.support.databases import open_database

T = TypeVar("T")

SCHEMA = combined(AGENT_TOOL_MIGRATIONS)


class NoHooks:
    """A parent without code of its own."""

    filters_views = False

    async def agent_tool_started(self, run: RunInfo) -> None:
        return None

    async def agent_tool_finished(self, run: RunInfo, result: RunResult[object]) -> None:
        return None

    def agent_tool_progress(self, run: RunInfo, progress: Progress) -> None:
        return None

    def can_view(self, connection: Connection, run: RunInfo) -> bool:
        return True

    def report(self, error: BaseException) -> None:
        raise error


class DirectExit:
    """What is released is delivered at once."""

    def release(self, deliver: Callable[[], object]) -> None:
        deliver()


class Nobody:
    """Ports that these tests do not use."""

    async def call(self, target: AgentPath, call: Call) -> object:
        raise NotImplementedError

    def stream(self, target: AgentPath, call: Call) -> AsyncIterator[object]:
        raise NotImplementedError

    def start(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        raise NotImplementedError

    async def open(self, target: AgentPath) -> None:
        raise NotImplementedError

    def abort(self, target: AgentPath, reason: str) -> None:
        raise NotImplementedError

    async def delete(self, target: AgentPath) -> None:
        raise NotImplementedError

    def emit(self, type: str, payload: JsonObject | None = None) -> None:
        return None

    def name_of(self, cls: type | str) -> str:
        return "Child"

    def class_of(self, name: str) -> type:
        return object

    def by_segment(self, segment: str) -> str | None:
        return None

    def add(self, class_name: str, name: str) -> object:
        return None

    def remove(self, class_name: str, name: str) -> object:
        return None

    def has(self, class_name: str, name: str) -> bool:
        return True


@dataclass
class StoredChunks:
    """What the child has stored, read at once."""

    items: list[StoredChunk]
    most: int = 3

    def read(
        self, path: AgentPath, run_id: str, *, after: int, limit: int
    ) -> Sequence[StoredChunk] | None:
        return [item for item in self.items if item.sequence > after][: min(limit, self.most)]


def ports(
    file: Path, *, clients: ClientSet, chunks: StoredChunks, clock: ManualClock
) -> AgentToolPorts:
    """The surroundings of a parent whose database is `file`."""
    nobody, hooks, fence = Nobody(), NoHooks(), Fence("a test")
    return AgentToolPorts(
        path=AgentPath.of(("Parent", "p")),
        database=open_database(file, SCHEMA, fence=fence),
        clock=clock,
        ids=Ids.seeded(1),
        fence=fence,
        background=nobody,
        clients=clients,
        caller=nobody,
        lifecycles=nobody,
        classes=nobody,
        registry=nobody,
        hooks=hooks,
        errors=hooks,
        events=nobody,
        options=AgentOptions(),
        host_options=HostOptions(),
        chunks=chunks,
    )
