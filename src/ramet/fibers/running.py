"""Runs the functions of fibers: a row before the first line, none after the last."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, dump_strict
from ramet.core.signals import AbortController
from ramet.errors import NoCurrentFiber
from ramet.fibers.ports import FiberPorts
from ramet.fibers.records import FiberContext
from ramet.fibers.store import FiberStore, StoredRun

T = TypeVar("T")

FiberFunction: TypeAlias = Callable[[FiberContext], Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningFiber:
    """A fiber of this process."""

    id: str
    name: str
    managed: bool
    controller: AbortController


_current: ContextVar[RunningFiber | None] = ContextVar("ramet_fiber", default=None)


class FiberRunner:
    """The fibers that run in this process, of one agent."""

    def __init__(
        self, ports: FiberPorts, store: FiberStore, *, hold: Callable[[], Callable[[], None]]
    ) -> None:
        self._ports = ports
        self._store = store
        self._hold = hold
        self._live: dict[str, RunningFiber] = {}

    def live(self, run_id: str) -> RunningFiber | None:
        """The fiber of an id, if it runs in this process (FB-012)."""
        return self._live.get(run_id)

    def busy(self) -> str | None:
        """Why the instance may not be evicted now."""
        return "a fiber is running" if self._live else None

    def stash(self, data: object) -> None:
        """Replace the snapshot of the fiber that the running code belongs to (FB-006).

        Raises:
            NoCurrentFiber: The running code belongs to no fiber.
            NotJson: JSON cannot carry the data; the snapshot before stays.
        """
        fiber = _current.get()
        if fiber is None or self._live.get(fiber.id) is not fiber:
            raise NoCurrentFiber("stash() was called outside a fiber: there is nothing to keep it")
        self._stash(fiber, data)

    async def run(self, name: str, function: FiberFunction[T]) -> T:
        """Run a function as a fiber and return what it returns; its row is there meanwhile."""
        run_id = self._ports.ids.url_safe(12)
        self._lease(run_id)
        run = StoredRun(id=run_id, name=name, snapshot=None, created_at=self._ports.clock.now_ms())
        self._store.add_run(run)
        failpoint("fiber.added")
        fiber = RunningFiber(id=run_id, name=name, managed=False, controller=AbortController())
        with self.running(fiber):
            try:
                result = await self.call(fiber, function)
            except BaseException:
                if not self._ports.fence.down:
                    self._store.remove_run(run_id)
                    self.release(run_id)
                raise
            failpoint("fiber.returned")
            self._store.remove_run(run_id)
            self.release(run_id)
        return result

    @contextmanager
    def running(self, fiber: RunningFiber) -> Iterator[None]:
        """Count a fiber as running in this process, with the agent kept alive."""
        self._live[fiber.id] = fiber
        release = self._hold()
        try:
            yield
        finally:
            self._live.pop(fiber.id, None)
            if not self._ports.fence.down:
                release()

    async def call(self, fiber: RunningFiber, function: FiberFunction[T]) -> T:
        """Call a fiber's function as its code, and tell observers how it went."""
        begun = self._ports.clock.monotonic()
        self._emit(fiber, "started")
        context = FiberContext(
            id=fiber.id,
            signal=fiber.controller.signal,
            stash=lambda data: self._stash(fiber, data),
        )
        token = _current.set(fiber)
        try:
            result = await function(context)
        except BaseException as error:
            if not self._ports.fence.down:
                self._emit(fiber, "failed", error=str(error), elapsedMs=self._elapsed(begun))
            raise
        finally:
            _current.reset(token)
        self._emit(fiber, "completed", elapsedMs=self._elapsed(begun))
        return result

    def lease(self, run_id: str) -> None:
        """Have the root look after a fiber of a sub-agent; before its row is written (D6)."""
        self._lease(run_id)

    def release(self, run_id: str) -> None:
        """Have the root forget a fiber of a sub-agent."""
        if not self._ports.path.is_root:
            self._ports.root().release(self._ports.path, run_id)

    def _lease(self, run_id: str) -> None:
        if not self._ports.path.is_root:
            self._ports.root().lease(self._ports.path, run_id)

    def _stash(self, fiber: RunningFiber, data: object) -> None:
        self._store.stash(fiber.id, dump_strict(data), managed=fiber.managed)
        failpoint("fiber.stashed")

    def _emit(self, fiber: RunningFiber, step: str, **more: str | int) -> None:
        payload: JsonObject = {
            "fiberId": fiber.id,
            "fiberName": fiber.name,
            "managed": fiber.managed,
            **more,
        }
        self._ports.events.emit(f"fiber:run:{step}", payload)

    def _elapsed(self, begun: float) -> int:
        return round((self._ports.clock.monotonic() - begun) * 1000)
