"""Managed fibers: entered in a ledger, found again by id or key, never run twice (FB-024 …)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ramet.core.failpoints import failpoint
from ramet.core.json import dump_strict
from ramet.core.public_errors import public_text
from ramet.core.signals import AbortController
from ramet.fibers.policy import check_name, clamped, deletable, listed, the_one
from ramet.fibers.ports import FiberPorts
from ramet.fibers.records import (
    TERMINAL,
    FiberInspection,
    FiberResult,
    FiberStatus,
    StartedFiber,
)
from ramet.fibers.running import FiberFunction, FiberRunner, RunningFiber
from ramet.fibers.store import FiberStore, StoredRun

MOST_LISTED = 100
MOST_DELETED = 500


class ManagedFibers:
    """The ledger of one agent's managed fibers, and the tasks that work on them."""

    def __init__(
        self,
        ports: FiberPorts,
        store: FiberStore,
        runner: FiberRunner,
        *,
        recover: Callable[[], Awaitable[None]],
    ) -> None:
        self._ports = ports
        self._store = store
        self._runner = runner
        self._recover = recover
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._settled: dict[str, asyncio.Event] = {}

    async def start(
        self,
        name: str,
        function: FiberFunction[object],
        *,
        fiber_id: str | None,
        idempotency_key: str | None,
        metadata: object,
        wait: bool,
    ) -> StartedFiber:
        """Start a fiber, or find the one that is there already; see `FiberVerbs.start_fiber`."""
        check_name(fiber_id, what="fiber_id")
        check_name(idempotency_key, what="idempotency_key")
        stored = None if metadata is None else dump_strict(metadata)
        found = self._found(fiber_id, idempotency_key)
        if found is None:
            found = self._begin(name, function, fiber_id, key=idempotency_key, metadata=stored)
            accepted = True
        else:
            accepted = False
        if wait and found.status not in TERMINAL:
            found = await self._awaited(found.fiber_id)
        return _started(found, accepted=accepted)

    def inspect(self, fiber_id: str) -> FiberInspection | None:
        """A managed fiber by its id."""
        return self._store.fiber(fiber_id)

    def inspect_by_key(self, key: str) -> FiberInspection | None:
        """A managed fiber by its idempotency key."""
        return self._store.fiber_of_key(key)

    def list(self, status: str | Iterable[str] | None, limit: int) -> list[FiberInspection]:
        """Managed fibers, the newest first (FB-037)."""
        return self._store.listed(listed(status), clamped(limit, MOST_LISTED))

    def delete(
        self, status: str | Iterable[str] | None, *, settled_before: int | None, limit: int
    ) -> int:
        """Forget settled fibers, the longest settled first (FB-038)."""
        most = clamped(limit, MOST_DELETED)
        return self._store.delete(deletable(status), before=settled_before, limit=most)

    def cancel(self, fiber_id: str, reason: str | None) -> bool:
        """Abort a fiber that is not over; waiters are released at once (FB-035)."""
        if not self._settle(fiber_id, "aborted", reason):
            return False
        live = self._runner.live(fiber_id)
        if live is not None:
            live.controller.abort(reason)
        task = self._tasks.get(fiber_id)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        return True

    def resolve(self, fiber_id: str, result: FiberResult) -> bool:
        """Settle an interrupted fiber by hand (FB-039)."""
        resolved = self._store.resolve(fiber_id, result, self._ports.clock.now_ms())
        if resolved:
            self._tell(fiber_id)
        return resolved

    def interrupt(self, fiber_id: str) -> None:
        """Mark a fiber whose process died; it stays so unless the hook says otherwise."""
        self._store.settle(fiber_id, "interrupted", error=None, now=self._ports.clock.now_ms())

    def recovered(self, fiber_id: str) -> None:
        """Release those who waited for a fiber that was recovered."""
        self._tell(fiber_id)

    def _found(self, fiber_id: str | None, key: str | None) -> FiberInspection | None:
        by_id = None if fiber_id is None else self._store.fiber(fiber_id)
        by_key = None if key is None else self._store.fiber_of_key(key)
        return the_one(by_id, by_key, fiber_id=fiber_id)

    def _begin(
        self,
        name: str,
        function: FiberFunction[object],
        fiber_id: str | None,
        *,
        key: str | None,
        metadata: str | None,
    ) -> FiberInspection:
        run_id = fiber_id or self._ports.ids.url_safe(12)
        now = self._ports.clock.now_ms()
        self._runner.lease(run_id)
        with self._ports.database.transaction():
            self._store.add_fiber(run_id, name, key=key, metadata=metadata, now=now)
            self._store.add_run(StoredRun(id=run_id, name=name, snapshot=None, created_at=now))
        failpoint("fiber.accepted")
        found = self._store.fiber(run_id)
        assert found is not None
        fiber = RunningFiber(id=run_id, name=name, managed=True, controller=AbortController())
        work = self._work(fiber, function)
        self._tasks[run_id] = self._ports.background.start(work, name=f"fiber {name}")
        return found

    async def _work(self, fiber: RunningFiber, function: FiberFunction[object]) -> None:
        try:
            with self._runner.running(fiber):
                self._store.begin(fiber.id, self._ports.clock.now_ms())
                await self._runner.call(fiber, function)
                self._settle(fiber.id, "completed", None)
        except asyncio.CancelledError:
            if not self._ports.fence.down:
                self._settle(fiber.id, "aborted", None)
            raise
        except Exception as error:  # noqa: BLE001 - the error is the fiber's result, for its inspection
            self._ports.fence.check()
            self._settle(fiber.id, "error", public_text(error, self._ports.ids))
        finally:
            self._tasks.pop(fiber.id, None)

    def _settle(self, fiber_id: str, status: FiberStatus, error: str | None) -> bool:
        now = self._ports.clock.now_ms()
        settled = self._store.settle(fiber_id, status, error=error, now=now)
        failpoint("fiber.settled")
        self._runner.release(fiber_id)
        self._tell(fiber_id)
        return settled

    def _tell(self, fiber_id: str) -> None:
        event = self._settled.pop(fiber_id, None)
        if event is not None:
            event.set()

    async def _awaited(self, fiber_id: str) -> FiberInspection:
        """Wait until a fiber is over; one whose process died is recovered first (FB-034)."""
        event = self._settled.setdefault(fiber_id, asyncio.Event())
        if self._runner.live(fiber_id) is None and fiber_id not in self._tasks:
            await self._recover()
        found = self._store.fiber(fiber_id)
        while found is not None and found.status not in TERMINAL:
            await event.wait()
            found = self._store.fiber(fiber_id)
        assert found is not None, "a fiber that is waited for is not deleted: it is not over"
        return found


def _started(found: FiberInspection, *, accepted: bool) -> StartedFiber:
    return StartedFiber(
        accepted=accepted,
        fiber_id=found.fiber_id,
        name=found.name,
        status=found.status,
        created_at=found.created_at,
        idempotency_key=found.idempotency_key,
        snapshot=found.snapshot,
        error=found.error,
        metadata=found.metadata,
        started_at=found.started_at,
        settled_at=found.settled_at,
    )
