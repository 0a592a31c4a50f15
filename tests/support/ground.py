"""A root agent with sub-agents around schedules and queues, in place of host and runtime."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ramet.core.alarm import Alarm
from ramet.core.fence import Fence
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.core.retry import Retrier
from ramet.errors import SubAgentNotFound
from ramet.queue.feature import Queue
from ramet.queue.ports import RESUME_QUEUE, QueuePorts
from ramet.queue.schema import QUEUE_MIGRATIONS
from ramet.queue.verbs import QueueVerbs
from ramet.schedules.feature import Schedules
from ramet.schedules.ports import EXECUTE_SCHEDULE, RootSide, SchedulePorts
from ramet.schedules.retries import Retries, RetryVerbs
from ramet.schedules.schema import SCHEDULE_MIGRATIONS
from ramet.schedules.verbs import ScheduleVerbs
from ramet.storage import Database, combined, migrate
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet
from tests.support.one_root import ROOT, Index, OfOne, OneRoot, Tasks

SCHEMA = combined(SCHEDULE_MIGRATIONS, QUEUE_MIGRATIONS)


class Verbs(ScheduleVerbs, QueueVerbs, RetryVerbs):
    """What users subclass here."""

    path: AgentPath
    ground: "Ground[Any]"

    async def on_start(self) -> None:
        """Run when the agent was opened."""


V = TypeVar("V", bound=Verbs)


@dataclass
class Opened(Generic[V]):
    """One live instance."""

    agent: V
    database: Database
    fence: Fence
    tasks: Tasks
    schedules: Schedules
    queue: Queue
    internal: dict[str, Callable[..., Any]]


class Ground(OneRoot, Generic[V]):
    """One root below which agents of other classes may be opened."""

    def __init__(
        self,
        folder: Path,
        cls: type[V],
        *,
        options: AgentOptions | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        super().__init__(folder, options=options, clock=clock)
        self.cls = cls
        self.registered: dict[AgentPath, type[Verbs]] = {}
        self.open_agents: dict[AgentPath, Opened[Any]] = {}
        self.unreachable: Exception | None = None
        self.more_internal: dict[str, Callable[..., Any]] = {}

    async def open(self) -> V:
        """Open the root, as the host does on first use."""
        await self._opened(ROOT)
        await quiet()
        agent: V = self.open_agents[ROOT].agent
        return agent

    async def sub(self, cls: type[Verbs], *names: str) -> Any:
        """Open an agent below the root, registered if it is new."""
        path = ROOT
        for name in names:
            path = path.child("Sub", name)
            self.registered.setdefault(path, cls)
            await self._opened(path)
        return self.open_agents[path].agent

    def delete(self, *names: str) -> None:
        """Delete a sub-agent, as the root does."""
        gone = ROOT
        for name in names:
            gone = gone.child("Sub", name)
        for path in [path for path in self.registered if gone.contains(path)]:
            del self.registered[path]
            self._end(path)
        self.root.schedules.forget(gone)

    @property
    def root(self) -> Opened[V]:
        return self.open_agents[ROOT]

    def keep(self, index: Index) -> None:
        """Use another index of wake-ups; before the root is opened."""
        index.on_set = self._watch
        self.index = index

    def due_ms(self) -> int | None:
        """The wake-up that the index holds."""
        return self.index.due_ms

    def lose_alarm(self) -> None:
        """Lose the wake-up, as a lost or restored index does."""
        self.index.due_ms = None

    def schedule_rows(self) -> list[dict[str, Any]]:
        """The schedules that users made, as stored."""
        return self.rows(
            "SELECT * FROM cf_agents_schedules WHERE id NOT LIKE 'cf:%' ORDER BY rowid"
        )

    def queue_rows(self, path: AgentPath = ROOT) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM cf_agents_queues ORDER BY rowid", path=path)

    async def open_root(self) -> None:
        await self._opened(ROOT)

    def end_all(self) -> None:
        for path in list(self.open_agents):
            self._end(path)

    async def _opened(self, path: AgentPath) -> Opened[Any]:
        if path not in self.open_agents:
            cls = self.cls if path.is_root else self.registered.get(path)
            if cls is None:
                raise SubAgentNotFound(f"{path} does not exist")
            if path.is_root:
                self.alarm = Alarm(self.index)
            await self._open(path, cls)
            self._watch()
        return self.open_agents[path]

    async def _open(self, path: AgentPath, cls: type[Any]) -> None:
        fence = Fence(str(path))
        database = Database(self.file(path), fence=fence)
        migrate(database, SCHEMA)
        agent = cls()
        agent.path, agent.ground = path, self
        told = OfOne(self.log, str(path))
        tasks = Tasks(self.lost)
        internal = dict(self.more_internal)
        schedules = Schedules(
            SchedulePorts(
                path=path,
                database=database,
                clock=self.clock,
                ids=self.ids,
                fence=fence,
                background=tasks,
                events=told,
                errors=told,
                options=self.options,
                agent=agent,
                alarm=self.alarm if path.is_root else None,
                root=self._root_side,
                dispatch=self._dispatch,
                internal=internal,
            )
        )
        queue = Queue(
            QueuePorts(
                path=path,
                database=database,
                clock=self.clock,
                ids=self.ids,
                fence=fence,
                background=tasks,
                events=told,
                errors=told,
                options=self.options,
                agent=agent,
                wake=schedules.wake,
            )
        )
        internal[RESUME_QUEUE] = queue.woken
        internal[EXECUTE_SCHEDULE] = schedules.execute
        agent._ramet_schedules, agent._ramet_queue = schedules, queue
        retrier = Retrier(clock=self.clock, ids=self.ids)
        agent._ramet_retries = Retries(retrier=retrier, defaults=self.options.retry)
        self.open_agents[path] = Opened(agent, database, fence, tasks, schedules, queue, internal)
        schedules.start_up()
        queue.start_up()
        await agent.on_start()
        await schedules.resume()
        await queue.resume()

    def _end(self, path: AgentPath) -> None:
        opened = self.open_agents.pop(path, None)
        if opened is not None:
            opened.fence.drop("the test ended it")
            for task in list(opened.tasks.all):
                task.cancel()
            opened.database.close()

    def _root_side(self) -> RootSide:
        side = self.root.schedules.root_side
        assert side is not None
        return side

    async def _dispatch(
        self, path: AgentPath, handler: str, arguments: tuple[object, ...]
    ) -> object:
        if self.unreachable is not None:
            raise self.unreachable
        opened = await self._opened(path)
        return await opened.internal[handler](*arguments)


__all__ = ["ROOT", "Ground", "Index", "Opened", "Verbs"]
