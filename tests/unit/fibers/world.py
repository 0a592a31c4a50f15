"""A root agent with sub-agents around their fibers, in place of host and runtime.

The databases are real, the clock is moved by the test, the index of wake-ups outlives a crash.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ramet.core.alarm import Alarm
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.errors import SubAgentNotFound
from ramet.fibers.feature import Fibers
from ramet.fibers.ports import RECOVER_FIBERS, FiberPorts, FrameworkHandler
from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.fibers.schema import FIBER_MIGRATIONS
from ramet.fibers.verbs import FiberVerbs
from ramet.storage import Database, SqlValue, combined, migrate
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet
from tests.support.ground import Index, Log, OfOne

T = TypeVar("T")
SCHEMA = combined(FIBER_MIGRATIONS)
ROOT = AgentPath.of(("Root", "r"))

Hook = Callable[[str, InterruptedFiber], Awaitable[object]]


class Agent(FiberVerbs):
    """What users subclass, with a hook that the test can exchange."""

    def __init__(self, world: "World", path: AgentPath) -> None:
        self.world = world
        self.path = path

    @property
    def fibers(self) -> Fibers:
        return self._ramet_fibers

    def on_fiber_recovered(self, fiber: InterruptedFiber) -> object:
        self.world.told.append((str(self.path), fiber))
        return self.world.hook(str(self.path), fiber)


class Silent(FiberVerbs):
    """An agent that overrides nothing."""


@dataclass
class Tasks:
    """The tasks of one instance, in its base context (D12)."""

    lost: list[BaseException]
    all: set[asyncio.Task[Any]] = field(default_factory=set)

    def start(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        coroutine: Coroutine[Any, Any, T] = work
        loop = asyncio.get_running_loop()
        task = loop.create_task(coroutine, name=name, context=contextvars.Context())
        self.all.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.all.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.lost.append(error)


@dataclass
class Opened:
    """One live instance."""

    agent: Agent
    database: Database
    fence: Fence
    tasks: Tasks


@dataclass
class FencedIndex:
    """The index as one instance of the root reaches it: no longer when that is gone."""

    index: Index
    fence: Fence

    def set(self, due_ms: int | None) -> None:
        self.fence.check()
        self.index.set(due_ms)

    def promise(self, due_ms: int) -> None:
        self.fence.check()
        self.index.promise(due_ms)


class HookPort:
    """Calls the agent's hook, as the runtime does."""

    def __init__(self, agent: FiberVerbs) -> None:
        self._agent = agent

    async def fiber_recovered(self, fiber: InterruptedFiber) -> object:
        result = self._agent.on_fiber_recovered(fiber)
        return await result if isinstance(result, Awaitable) else result


async def no_result(path: str, fiber: InterruptedFiber) -> object:
    """The hook of an agent that only takes note."""
    return None


async def forever(fiber: FiberContext) -> None:
    """The work of a fiber that a crash interrupts."""
    await asyncio.get_running_loop().create_future()


class World:
    """One root below which other agents may be opened."""

    def __init__(self, folder: Path, *, options: AgentOptions | None = None) -> None:
        self.folder = folder
        self.options = options or AgentOptions()
        self.clock = ManualClock()
        self.ids = Ids.seeded(7)
        self.index = Index(on_set=self._watch)
        self.log = Log()
        self.alarm = Alarm(self.index)
        self.registered: set[AgentPath] = set()
        self.opened: dict[AgentPath, Opened] = {}
        self.told: list[tuple[str, InterruptedFiber]] = []
        self.hook: Hook = no_result
        self.handlers: tuple[FrameworkHandler, ...] = ()
        self.unreachable: dict[AgentPath, Exception] = {}
        self.dispatched: list[AgentPath] = []
        self.other_due: int | None = None
        """What another feature of the root waits for, such as a schedule."""
        self.others_run = 0
        self.lost: list[BaseException] = []
        self._firing: asyncio.Task[None] | None = None
        self._timer: Any = None

    async def open(self) -> Agent:
        """Open the root, as the host does on first use."""
        return (await self._opened(ROOT)).agent

    async def sub(self, *names: str) -> Agent:
        """Open an agent below the root, registered if it is new."""
        path = self.path(*names)
        for above in path.lineage():
            self.registered.add(above)
            await self._opened(above)
        return self.opened[path].agent

    @staticmethod
    def path(*names: str) -> AgentPath:
        path = ROOT
        for name in names:
            path = path.child("Sub", name)
        return path

    def rows(self, query: str, *values: SqlValue, path: AgentPath = ROOT) -> list[dict[str, Any]]:
        """Read a database from its file."""
        database = Database(self.file(path), fence=Fence("a test"))
        try:
            return [dict(row) for row in database.query(query, *values)]
        finally:
            database.close()

    def write(self, statement: str, *values: SqlValue, path: AgentPath = ROOT) -> None:
        """Change a database from outside, as a crash of another time may have left it."""
        database = Database(self.file(path), fence=Fence("a test"))
        try:
            migrate(database, SCHEMA)
            database.run(statement, *values)
        finally:
            database.close()

    def orphan(self, id: str, *, name: str = "work", snapshot: str | None = None) -> None:
        """Leave the row of a fiber whose process died."""
        self.write(
            "INSERT INTO cf_agents_runs VALUES (?, ?, ?, ?)",
            id,
            name,
            snapshot,
            self.clock.now_ms(),
        )

    def runs(self, *names: str) -> list[str]:
        """The ids of the run rows of an agent."""
        rows = self.rows("SELECT id FROM cf_agents_runs ORDER BY rowid", path=self.path(*names))
        return [row["id"] for row in rows]

    def due(self) -> int | None:
        """When the host wakes the root next."""
        return self.index.due_ms

    def leases(self) -> list[str]:
        return [row["run_id"] for row in self.rows("SELECT * FROM cf_agents_facet_runs")]

    def events(self, id: str | None = None) -> list[str]:
        """The types of the events about fibers, in order."""
        return [
            type for _, type, payload in self.log.events if id is None or payload["fiberId"] == id
        ]

    async def advance(self, seconds: float) -> None:
        """Move the clock, running what becomes due on the way."""
        end = self.clock.monotonic() + seconds
        await quiet()
        while (wait := self.clock.next_due()) is not None:
            if self.clock.monotonic() + wait > end:
                break
            self.clock.move(wait)
            await quiet()
        self.clock.move(max(0.0, end - self.clock.monotonic()))
        await quiet()

    async def fire(self) -> None:
        """Let the alarm come now."""
        await self._fire_root()
        await quiet()

    async def die(self, *names: str) -> None:
        """Stop one instance and those below it; the others live on."""
        gone = self.path(*names)
        for path in [path for path in self.opened if gone.contains(path)]:
            self._end(path)
        await quiet()

    async def crash(self) -> None:
        """Lose all memory and tasks; databases and the index stay."""
        await self.die()
        if self._firing is not None:
            self._firing.cancel()
        await quiet()
        self._firing = None

    async def close(self) -> None:
        """End everything and see that nothing was lost on the way."""
        await self.crash()
        assert self.lost == []

    def file(self, path: AgentPath) -> Path:
        return self.folder / ("-".join(step.name.encode().hex() for step in path.steps) + ".db")

    async def _opened(self, path: AgentPath) -> Opened:
        if path not in self.opened:
            if path.parent is not None:
                if path not in self.registered:
                    raise SubAgentNotFound(f"{path} does not exist")
                await self._opened(path.parent)
            await self._open(path)
        return self.opened[path]

    async def _open(self, path: AgentPath) -> None:
        fence = Fence(str(path))
        if path.is_root:
            self.alarm = Alarm(FencedIndex(self.index, fence))
        database = Database(self.file(path), fence=fence)
        migrate(database, SCHEMA)
        agent = Agent(self, path)
        told = OfOne(self.log, str(path))
        tasks = Tasks(self.lost)
        fibers = Fibers(
            FiberPorts(
                path=path,
                database=database,
                clock=self.clock,
                ids=self.ids,
                fence=fence,
                background=tasks,
                events=told,
                errors=told,
                options=self.options,
                hook=HookPort(agent),
                alarm=self.alarm if path.is_root else None,
                root=lambda: self.opened[ROOT].agent.fibers,
                dispatch=self._dispatch,
                handlers=self.handlers,
            )
        )
        agent._ramet_fibers = fibers
        if path.is_root:
            self.alarm.add(next_due=lambda: self.other_due, handle=self._other)
        self.opened[path] = Opened(agent, database, fence, tasks)
        await fibers.recover()
        self.log.events.append((str(path), "on_start", {"fiberId": ""}))

    async def _other(self) -> None:
        if self.other_due is not None and self.other_due <= self.clock.now_ms():
            self.other_due = None
            self.others_run += 1

    def _end(self, path: AgentPath) -> None:
        opened = self.opened.pop(path)
        opened.fence.drop("the test ended it")
        for task in list(opened.tasks.all):
            task.cancel()
        opened.database.close()

    async def _dispatch(
        self, path: AgentPath, handler: str, arguments: tuple[object, ...]
    ) -> object:
        self.dispatched.append(path)
        if path in self.unreachable:
            raise self.unreachable[path]
        opened = await self._opened(path)
        assert (handler, arguments) == (RECOVER_FIBERS, ())
        return await opened.agent.fibers.recover_for_root()

    def _watch(self) -> None:
        """Set the timer of the index, as the host does."""
        if self._timer is not None:
            self._timer.cancel()
        if self.index.due_ms is not None:
            wait = max(0, self.index.due_ms - self.clock.now_ms()) / 1000
            self._timer = self.clock.call_later(wait, self._fire)

    def _fire(self) -> None:
        if self._firing is None or self._firing.done():
            self._firing = asyncio.get_running_loop().create_task(self._fire_root())

    async def _fire_root(self) -> None:
        await self.open()
        await self.alarm.fire()
