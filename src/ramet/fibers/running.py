"""Runs the functions of fibers: a row before the first line, none after the last."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ramet.core.callbacks import exits_as_errors
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, dumps, loads
from ramet.core.payloads import dump_payload
from ramet.core.signals import AbortController
from ramet.errors import NoCurrentFiber
from ramet.fibers.policy import check_work, wrapped
from ramet.fibers.ports import FiberPorts, RootSide
from ramet.fibers.records import FiberContext, FrameworkSnapshot
from ramet.fibers.store import FiberStore, StoredRun

T = TypeVar("T")

FiberFunction: TypeAlias = Callable[[FiberContext], Awaitable[T]]

ID_LENGTH = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningFiber:
    """A fiber of this process."""

    id: str
    name: str
    managed: bool
    begun: float
    """On the monotonic clock."""
    controller: AbortController
    frame: FrameworkSnapshot | None = None

    @property
    def aborted(self) -> bool:
        """Whether it was cancelled; what it does after that no longer counts."""
        return self.controller.signal.aborted


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
        self._root: RootSide | None = None
        """The root that this instance has given leases to."""
        ports.fence.on_down(self._died)

    def live(self, run_id: str) -> RunningFiber | None:
        """The fiber of an id, if it runs in this process (FB-012)."""
        return self._live.get(run_id)

    def current(self) -> RunningFiber | None:
        """The fiber of this agent that the running code belongs to."""
        fiber = _current.get()
        return fiber if fiber is not None and self._live.get(fiber.id) is fiber else None

    def busy(self) -> str | None:
        """Why the instance may not be evicted now."""
        return "a fiber is running" if self._live else None

    def new(
        self, run_id: str, name: str, *, managed: bool, frame: FrameworkSnapshot | None = None
    ) -> RunningFiber:
        """A fiber that is about to run."""
        return RunningFiber(
            id=run_id,
            name=name,
            managed=managed,
            begun=self._ports.clock.monotonic(),
            controller=AbortController(),
            frame=frame,
        )

    def stash(self, data: object) -> None:
        """Replace the snapshot of the fiber that the running code belongs to (FB-006).

        Raises:
            NoCurrentFiber: The running code belongs to no fiber.
            NotJson: JSON cannot carry the data; the snapshot before stays.
        """
        fiber = self.current()
        if fiber is None:
            raise NoCurrentFiber("stash() was called outside a fiber: there is nothing to keep it")
        self._stash(fiber, data)

    async def run(
        self, name: str, function: FiberFunction[T], *, frame: FrameworkSnapshot | None = None
    ) -> T:
        """Run a function as a fiber and return what it returns; its row is there meanwhile.

        With a `frame` the fiber is the framework's own: what it keeps is stored before the function
        starts, and beside whatever is stashed (FB-008).
        """
        check_work(name, function)
        run_id = self._ports.ids.url_safe(ID_LENGTH)
        snapshot = None if frame is None else dumps(wrapped(frame, None))
        fiber = self.new(run_id, name, managed=False, frame=frame)
        now = self._ports.clock.now_ms()
        leave = self.enter(fiber)
        try:
            run = StoredRun(id=run_id, name=name, snapshot=snapshot, created_at=now)
            self._store.add_run(run)
            failpoint("fiber.added")
            self.tell(fiber, "started")
            try:
                result = await self.call(fiber, function)
            except BaseException as error:
                if not self._ports.fence.down:
                    self._store.remove_run(run_id)
                    self.tell_failed(fiber, str(error) or type(error).__name__)
                raise
            failpoint("fiber.returned")
            self._store.remove_run(run_id)
            failpoint("fiber.removed")
            self.tell_completed(fiber)
            return result
        finally:
            leave()

    def enter(self, fiber: RunningFiber) -> Callable[[], None]:
        """Count a fiber as running in this process, until the returned function is called.

        What wakes the agent is written here, before the fiber's own row is (D6).
        """
        release = self._hold()
        try:
            self._lease(fiber.id)
        except BaseException:
            release()
            raise
        self._live[fiber.id] = fiber
        failpoint("fiber.promised")

        def leave() -> None:
            if self._live.get(fiber.id) is fiber:
                del self._live[fiber.id]
                if not self._ports.fence.down:
                    self.unlease(fiber.id)
            release()

        return leave

    async def call(self, fiber: RunningFiber, function: FiberFunction[T]) -> T:
        """Call a fiber's function as its code."""
        context = FiberContext(
            id=fiber.id,
            signal=fiber.controller.signal,
            stash=lambda data: self._stash(fiber, data),
        )
        token = _current.set(fiber)
        try:
            with exits_as_errors():
                return await function(context)
        finally:
            _current.reset(token)

    def unlease(self, run_id: str) -> None:
        """Have the root forget a fiber of a sub-agent."""
        if not self._ports.path.is_root:
            self._ports.root().release(self._ports.path, run_id)

    def tell_completed(self, fiber: RunningFiber) -> None:
        """Tell observers that a fiber has returned."""
        self.tell(fiber, "completed", elapsedMs=self._elapsed(fiber))

    def tell_failed(self, fiber: RunningFiber, error: str) -> None:
        """Tell observers that a fiber has raised, or was cancelled."""
        self.tell(fiber, "failed", error=error, elapsedMs=self._elapsed(fiber))

    def tell(self, fiber: RunningFiber, step: str, **more: str | int) -> None:
        """Tell observers of a fiber (FB-009)."""
        payload: JsonObject = {
            "fiberId": fiber.id,
            "fiberName": fiber.name,
            "managed": fiber.managed,
            **more,
        }
        self._ports.events.emit(f"fiber:run:{step}", payload)

    def _lease(self, run_id: str) -> None:
        if not self._ports.path.is_root:
            self._root = self._ports.root()
            self._root.lease(self._ports.path, run_id)

    def _died(self) -> None:
        if self._root is not None and self._live:
            self._root.lost(self._ports.path)

    def _stash(self, fiber: RunningFiber, data: object) -> None:
        text = dump_payload(data, what=f"The stash of the fiber {fiber.name!r}")
        if fiber.frame is not None:
            text = dumps(wrapped(fiber.frame, loads(text)))
        if fiber.aborted or not self._store.stash(fiber.id, text, managed=fiber.managed):
            raise NoCurrentFiber(f"The fiber {fiber.name!r} is over: nothing keeps its stash")
        failpoint("fiber.stashed")

    def _elapsed(self, fiber: RunningFiber) -> int:
        return round((self._ports.clock.monotonic() - fiber.begun) * 1000)
