"""A host with a parent whose children a test moves by hand."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.http import Request
from ramet.core.json import JsonObject, loads_object
from ramet.testing import Harness, TestClient
from tests.integration.agent_tools.children import (
    AskedChild,
    BusyNoTailChild,
    HandChild,
    NoAdapter,
    NoTailChild,
    OtherChild,
    Parent,
    events,
)


class CappedParent(Parent):
    """A parent that runs at most two children at once."""

    options = ramet.AgentOptions(max_concurrent_agent_tools=2)


class PageReader:
    """A client that takes one page at a time, when its test says so."""

    def __init__(self, link: ClientLink) -> None:
        self.link = link
        self.frames: list[JsonObject] = []

    def take(self) -> int:
        """Take what can be sent at once; how many frames that were."""
        batch = self.link.outbox.take_now()
        for item in batch:
            frame = loads_object(item) if isinstance(item, str) else None
            assert frame is not None
            self.frames.append(frame)
        return len(batch)

    def take_all(self) -> None:
        """Take until nothing waits."""
        while self.take():
            pass


class Stage:
    """A parent, its children and a client, as a test uses them."""

    def __init__(self, harness: Harness, tasks: set[asyncio.Task[Any]]) -> None:
        self.harness = harness
        self._tasks = tasks
        self.root: type[Parent] = Parent

    async def parent(self) -> Parent:
        """The live parent."""
        return await self.harness.agent(self.root, "p")

    async def child(self, run_id: str, cls: type[HandChild] = HandChild) -> HandChild:
        """The live child of a run."""
        agent: object = await self.harness.agent(self.root, "p", [(cls, run_id)])
        assert isinstance(agent, HandChild)
        return agent

    async def client(self) -> TestClient:
        """A new client of the parent."""
        return await self.harness.connect(self.root, "p")

    async def page_reader(self) -> PageReader:
        """A new client of the parent that has read nothing yet."""
        link = ClientLink(id="slow", request=Request(), outbox=Outbox(limit_bytes=2**22))
        await self.harness.host.connect(self.harness.path(self.root, "p"), link)
        return PageReader(link)

    async def dispatch(
        self, cls: type = HandChild, **options: Any
    ) -> asyncio.Task[ramet.RunResult[Any]]:
        """Start a run as a caller that waits for it."""
        parent = await self.parent()
        task = asyncio.get_running_loop().create_task(parent.run_agent_tool(cls, **options))
        self._tasks.add(task)
        await self.harness.settle()
        return task

    async def settle(self) -> None:
        """Run what can run."""
        await self.harness.settle()

    def row(self, run_id: str) -> JsonObject:
        """The stored row of a run."""
        query = "SELECT * FROM cf_agent_tool_runs WHERE run_id = ?"
        return self.harness.rows(self.root, "p", query, run_id)[0]

    def rows(self) -> list[JsonObject]:
        """All stored rows."""
        query = "SELECT * FROM cf_agent_tool_runs ORDER BY rowid"
        return self.harness.rows(self.root, "p", query)


@pytest.fixture(autouse=True)
def fresh_scripts() -> Iterator[None]:
    """Children and parents as each test finds them: nothing stalls, nothing raises."""
    yield
    HandChild.stalls_on.clear()
    HandChild.fails_on.clear()
    HandChild.calls.clear()
    Parent.log.clear()
    Parent.start_error = None
    Parent.finish_error = None


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    tasks: set[asyncio.Task[Any]] = set()
    children: list[type] = [
        HandChild,
        AskedChild,
        OtherChild,
        NoTailChild,
        BusyNoTailChild,
        NoAdapter,
    ]
    async with Harness(
        agents=[Parent, CappedParent], sub_agents=children, data_dir=tmp_path
    ) as harness:
        yield Stage(harness, tasks)
        for task in tasks:
            task.cancel()
        await harness.settle()


def kinds(client: TestClient | PageReader) -> list[str]:
    """The kinds of the run events that a client got."""
    return [str(event_of(frame)["kind"]) for frame in events(client.frames)]


def numbers(client: TestClient | PageReader) -> list[object]:
    """The numbers of the run events that a client got."""
    return [frame["sequence"] for frame in events(client.frames)]


def event_of(frame: JsonObject) -> JsonObject:
    """The event in a frame."""
    event = frame["event"]
    assert isinstance(event, dict)
    return event
