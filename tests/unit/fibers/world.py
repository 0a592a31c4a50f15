"""A root agent with sub-agents around their fibers, in place of host and runtime."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from ramet.core.alarm import Alarm
from ramet.core.fence import Fence
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.errors import SubAgentNotFound
from ramet.fibers.feature import Fibers
from ramet.fibers.ports import RECOVER_FIBERS, FiberPorts, FrameworkHandler
from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.fibers.schema import FIBER_MIGRATIONS
from ramet.fibers.verbs import FiberVerbs
from ramet.storage import Database, SqlValue, combined, migrate
from ramet.testing.quiet import quiet
from tests.support.one_root import ROOT, Index, OfOne, OneRoot, Tasks

SCHEMA = combined(FIBER_MIGRATIONS)

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


class World(OneRoot):
    """One root below which other agents may be opened."""

    def __init__(self, folder: Path, *, options: AgentOptions | None = None) -> None:
        super().__init__(folder, options=options)
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

    async def fire(self) -> None:
        """Let the alarm come now."""
        await self._fire_root()
        await quiet()

    async def die(self, *names: str) -> None:
        """Stop one instance and those below it; the others live on."""
        self._end_below(self.path(*names))
        await quiet()

    async def open_root(self) -> None:
        await self._opened(ROOT)

    def end_all(self) -> None:
        self._end_below(ROOT)

    def _end_below(self, gone: AgentPath) -> None:
        for path in [path for path in self.opened if gone.contains(path)]:
            self._end(path)

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
