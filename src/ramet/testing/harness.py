"""A whole host inside a test: real SQLite, a manual clock, no sockets and no sleeps."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.fence import Fence
from ramet.core.http import Request, Response
from ramet.core.ids import Ids
from ramet.core.json import JsonValue
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.host.classes import ClassTable
from ramet.host.host import Host
from ramet.storage import Database, SqlValue
from ramet.testing.client import TestClient
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet

A = TypeVar("A")

Below: TypeAlias = Sequence[tuple[type, str]]
"""The way from a root agent down to a sub-agent: (class, name) pairs."""


class Harness:
    """Runs agents as a server would, in the test's own event loop.

    Time stands still until `advance`; everything else runs until it waits for the clock, the test
    or the outside. `crash` loses all that is not on disk, as `kill -9` does.
    """

    def __init__(
        self,
        *,
        agents: Iterable[type],
        sub_agents: Iterable[type] = (),
        data_dir: Path,
        options: HostOptions | None = None,
        seed: int = 1,
    ) -> None:
        self.clock = ManualClock()
        self._classes = ClassTable(roots=agents, sub_agents=sub_agents)
        self._data_dir = data_dir
        self._options = options or HostOptions(idle_timeout=math.inf)
        self._ids = Ids.seeded(seed)
        self._clients: list[TestClient] = []
        self.host = self._new_host()

    async def __aenter__(self) -> Self:
        await self.host.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self.host.running:
            await self.host.stop()

    async def agent(self, cls: type[A], name: str, sub: Below = ()) -> A:
        """The live instance itself, opened if need be."""
        instance = await self.host.instances.opened(self.path(cls, name, sub))
        agent: Any = instance.built.agent
        found: A = agent
        return found

    def stub(self, cls: type[A], name: str) -> A:
        """A stub of a root agent, as `App.get_agent` gives it."""
        return self.host.stub(self.path(cls, name), cls)

    async def connect(  # noqa: PLR0917 - the address first, as everywhere
        self, cls: type, name: str, sub: Below = (), query: dict[str, str] | None = None
    ) -> TestClient:
        """Connect an in-memory client; it has been greeted when this returns."""
        path = self.path(cls, name, sub)
        asked = dict(query or {})
        link = ClientLink(
            id=asked.get("_pk") or self._ids.url_safe(16),
            request=Request(url=f"ws://test/{path}", query=asked),
            outbox=Outbox(limit_bytes=self._options.outbox_bytes),
        )
        client = TestClient(self.host, link, self.settle)
        self._clients.append(client)
        await self.host.connect(path, link)
        await self.settle()
        return client

    async def request(  # noqa: PLR0917 - an address has three parts
        self, cls: type, name: str, sub: Below = (), request: Request | None = None
    ) -> Response:
        """Send an HTTP request to an agent."""
        return await self.host.respond(self.path(cls, name, sub), request or Request())

    def rows(
        self, cls: type, name: str, query: str, *values: SqlValue, sub: Below = ()
    ) -> list[dict[str, JsonValue]]:
        """Read an agent's SQLite from its file, whether it is open or not; [] when it has none."""
        file = self.host.files.file_of(self.path(cls, name, sub))
        if not file.exists():
            return []
        database = Database(file, fence=Fence("a test"))
        try:
            return [dict(row) for row in database.query(query, *values)]
        finally:
            database.close()

    async def settle(self) -> None:
        """Run everything that can go on without the clock or the outside; clients read along."""
        while True:
            await quiet()
            if not [client for client in self._clients if client.read()]:
                return

    async def advance(self, seconds: float) -> None:
        """Move the clock by `seconds`, running what becomes due on the way in its order."""
        end = self.clock.monotonic() + seconds
        await self.settle()
        while (wait := self.clock.next_due()) is not None:
            if self.clock.monotonic() + wait > end:
                break
            self.clock.move(wait)
            await self.settle()
        self.clock.move(max(0.0, end - self.clock.monotonic()))
        await self.settle()

    async def evict(self, cls: type, name: str, *, sub: Below = (), force: bool = False) -> None:
        """Take an instance out of memory and keep its clients; raises when it is busy."""
        self.host.evict(self.path(cls, name, sub), force=force)
        await self.settle()

    async def crash(self) -> None:
        """Lose all memory, tasks and connections at once; what is on disk stays."""
        self.host.crash()
        self._clients.clear()
        await quiet()

    async def restart(self) -> None:
        """Start again on the same data directory, after `crash` or out of full run."""
        if self.host.running:
            await self.host.stop()
            self._clients.clear()
        self.host = self._new_host()
        await self.host.start()

    def path(self, cls: type, name: str, sub: Below = ()) -> AgentPath:
        """The address of an agent."""
        steps = [
            (self._classes.name_of(step), step_name) for step, step_name in [(cls, name), *sub]
        ]
        return AgentPath.of(*steps)

    def _new_host(self) -> Host:
        return Host(
            self._classes,
            self._data_dir,
            options=self._options,
            clock=self.clock,
            ids=self._ids,
        )
