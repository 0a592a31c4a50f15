"""What stands in place of the host around one root: its index, its alarm, files, clock and tasks.

The databases are real, the clock is moved by the test, the index of wake-ups outlives a crash.
"""

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ramet.core.alarm import Alarm
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.json import JsonObject
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.storage import Database, SqlValue
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet

T = TypeVar("T")
ROOT = AgentPath.of(("Root", "r"))


@dataclass
class Index:
    """The host's durable index for one root: a moment, and every moment that was set."""

    due_ms: int | None = None
    history: list[int | None] = field(default_factory=list)
    on_set: Callable[[], object] = lambda: None

    def set(self, due_ms: int | None) -> None:
        self.due_ms = due_ms
        self.history.append(due_ms)
        self.on_set()

    def promise(self, due_ms: int) -> None:
        if self.due_ms is None or due_ms < self.due_ms:
            self.set(due_ms)


@dataclass
class Tasks:
    """The tasks of one instance, in its base context (D12)."""

    errors: list[BaseException]
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
            self.errors.append(error)


@dataclass
class Log:
    """Events and errors of all agents, with whose they are."""

    events: list[tuple[str, str, JsonObject]] = field(default_factory=list)
    errors: list[tuple[str, BaseException]] = field(default_factory=list)

    def named(self, type: str) -> list[JsonObject]:
        return [payload for _, found, payload in self.events if found == type]


@dataclass
class OfOne:
    """What one agent reports."""

    log: Log
    name: str

    def emit(self, type: str, payload: JsonObject | None = None) -> None:
        self.log.events.append((self.name, type, payload or {}))

    def report(self, error: BaseException) -> None:
        self.log.errors.append((self.name, error))


class OneRoot(ABC):
    """One root and the agents below it, without a host."""

    def __init__(
        self, folder: Path, *, options: AgentOptions | None, clock: ManualClock | None = None
    ) -> None:
        self.folder = folder
        self.options = options or AgentOptions()
        self.clock = clock or ManualClock()
        self.ids = Ids.seeded(7)
        self.index = Index(on_set=self._watch)
        self.log = Log()
        self.alarm = Alarm(self.index)
        self.lost: list[BaseException] = []
        self._firing: asyncio.Task[None] | None = None
        self._timer: Any = None

    @abstractmethod
    async def open_root(self) -> object:
        """Open the root if it is not open."""

    @abstractmethod
    def end_all(self) -> None:
        """End every instance, as the death of the process does."""

    def rows(self, query: str, *values: SqlValue, path: AgentPath = ROOT) -> list[dict[str, Any]]:
        """Read a database from its file."""
        database = Database(self.file(path), fence=Fence("a test"))
        try:
            return [dict(row) for row in database.query(query, *values)]
        finally:
            database.close()

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

    async def crash(self) -> None:
        """Lose all memory and tasks; databases and the index stay."""
        self.end_all()
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
        await self.open_root()
        await self.alarm.fire()
