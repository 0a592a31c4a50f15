"""Managed fibers: entered in a ledger, found again by id or key, never run twice (FB-024 …)."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextvars import ContextVar
from datetime import datetime

from ramet.core.failpoints import failpoint
from ramet.core.listing import bound_ms, check_text, clamped
from ramet.core.payloads import dump_payload
from ramet.core.public_errors import public_text
from ramet.errors import InvalidArguments
from ramet.fibers.policy import check_id, check_work, deletable, listed, the_one
from ramet.fibers.ports import FiberPorts
from ramet.fibers.records import (
    TERMINAL,
    FiberInspection,
    FiberResult,
    SettledStatus,
    StartedFiber,
)
from ramet.fibers.running import ID_LENGTH, FiberFunction, FiberRunner, RunningFiber
from ramet.fibers.store import FiberStore, Outcome, StoredRun

MOST_LISTED = 100
MOST_DELETED = 500

in_recovery_hook: ContextVar[bool] = ContextVar("ramet_in_recovery_hook", default=False)
"""Whether the running code is a recovery hook, for which the other interrupted fibers wait."""


class ManagedFibers:
    """The ledger of one agent's managed fibers, and the tasks that work on them."""

    def __init__(
        self,
        ports: FiberPorts,
        store: FiberStore,
        runner: FiberRunner,
        *,
        recover: Callable[[], Coroutine[object, object, None]],
    ) -> None:
        self._ports = ports
        self._store = store
        self._runner = runner
        self._recover = recover
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiters: dict[str, list[asyncio.Future[FiberInspection]]] = {}

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
        check_work(name, function)
        check_id(fiber_id, what="fiber_id")
        check_id(idempotency_key, what="idempotency_key")
        what = f"The metadata of the fiber {name!r}"
        stored = None if metadata is None else dump_payload(metadata, what=what)
        there = self._found(fiber_id, idempotency_key)
        found = there or self._begin(name, function, fiber_id, key=idempotency_key, metadata=stored)
        if wait and not self._is_over(found):
            found = await self._awaited(found)
        return _started(found, accepted=there is None)

    def inspect(self, fiber_id: str) -> FiberInspection | None:
        """A managed fiber by its id."""
        check_text(fiber_id, what="fiber_id")
        return self._store.fiber(fiber_id)

    def inspect_by_key(self, key: str) -> FiberInspection | None:
        """A managed fiber by its idempotency key."""
        check_text(key, what="idempotency_key")
        return self._store.fiber_of_key(key)

    def list(self, status: str | Iterable[str] | None, limit: int) -> list[FiberInspection]:
        """Managed fibers, the newest first (FB-037)."""
        return self._store.listed(listed(status), clamped(limit, MOST_LISTED))

    def delete(
        self, status: str | Iterable[str] | None, *, settled_before: datetime | None, limit: int
    ) -> int:
        """Forget settled fibers, the longest settled first (FB-038)."""
        before, most = bound_ms(settled_before, what="settled_before"), clamped(limit, MOST_DELETED)
        return self._store.delete(deletable(status), before=before, limit=most)

    def cancel(self, fiber_id: str, reason: str | None) -> bool:
        """Abort a fiber that is not over; waiters are released at once (FB-035)."""
        check_text(fiber_id, what="fiber_id")
        if not self._settle(fiber_id, "aborted", reason):
            return False
        live = self._runner.live(fiber_id)
        if live is None:
            self._runner.unlease(fiber_id)
            return True
        task = self._tasks.get(fiber_id)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        live.controller.abort(reason)
        return True

    def resolve(self, fiber_id: str, result: FiberResult) -> bool:
        """Settle an interrupted fiber by hand (FB-039)."""
        check_text(fiber_id, what="fiber_id")
        return self.conclude(fiber_id, outcome_of(result))

    def conclude(self, fiber_id: str, outcome: Outcome) -> bool:
        """Apply an outcome to an interrupted fiber and release those who waited for it."""
        resolved = self._store.resolve(fiber_id, outcome, self._ports.clock.now_ms())
        if resolved:
            failpoint("fiber.resolved")
            self.release_waiters(fiber_id)
        return resolved

    def release_waiters(self, fiber_id: str) -> None:
        """Tell those who wait for a fiber how it is now."""
        waiters = self._waiters.pop(fiber_id, [])
        found = self._store.fiber(fiber_id) if waiters else None
        for waiter in waiters:
            if found is not None and not waiter.done():
                waiter.set_result(found)

    def _found(self, fiber_id: str | None, key: str | None) -> FiberInspection | None:
        by_id = None if fiber_id is None else self._store.fiber(fiber_id)
        by_key = None if key is None else self._store.fiber_of_key(key)
        return the_one(by_id, by_key, fiber_id=fiber_id, key=key)

    def _is_over(self, fiber: FiberInspection) -> bool:
        """Whether the status is the last one; of an interrupted fiber the hook has returned."""
        if fiber.status == "interrupted":
            return not self._store.has_run(fiber.fiber_id)
        return fiber.status in TERMINAL

    def _begin(
        self,
        name: str,
        function: FiberFunction[object],
        fiber_id: str | None,
        *,
        key: str | None,
        metadata: str | None,
    ) -> FiberInspection:
        run_id = fiber_id or self._ports.ids.url_safe(ID_LENGTH)
        now = self._ports.clock.now_ms()
        if self._store.has_run(run_id):
            with self._ports.database.transaction():
                self._store.add_fiber(run_id, name, key=key, metadata=metadata, now=now)
                self._store.fail(run_id, f"Another fiber has the id {run_id!r}", now)
            return self._there(run_id)
        fiber = self._runner.new(run_id, name, managed=True)
        leave = self._runner.enter(fiber)
        try:
            with self._ports.database.transaction():
                self._store.add_fiber(run_id, name, key=key, metadata=metadata, now=now)
                self._store.add_run(StoredRun(id=run_id, name=name, snapshot=None, created_at=now))
            failpoint("fiber.accepted")
            found = self._there(run_id)
        except BaseException:
            leave()
            raise
        work = self._work(fiber, function, leave)
        task = self._ports.background.start(work, name=f"fiber {name}")
        self._tasks[run_id] = task

        def ended(_: object) -> None:
            if self._tasks.get(run_id) is task:
                del self._tasks[run_id]
            leave()  # a task that was cancelled before its first step has not done so itself

        task.add_done_callback(ended)
        return found

    def _there(self, fiber_id: str) -> FiberInspection:
        found = self._store.fiber(fiber_id)
        assert found is not None, "it was written just before"
        return found

    async def _work(
        self, fiber: RunningFiber, function: FiberFunction[object], leave: Callable[[], None]
    ) -> None:
        try:
            self._store.begin(fiber.id, self._ports.clock.now_ms())
            failpoint("fiber.begun")
            self._runner.tell(fiber, "started")
            await self._outcome(fiber, function)
        finally:
            leave()

    async def _outcome(self, fiber: RunningFiber, function: FiberFunction[object]) -> None:
        try:
            await self._runner.call(fiber, function)
        except asyncio.CancelledError:
            if not self._ports.fence.down:
                self._failed(fiber, "aborted", None)
            raise
        except Exception as error:  # noqa: BLE001 - the error is the fiber's result, for its inspection
            self._ports.fence.check()
            self._failed(fiber, "error", public_text(error, self._ports.ids))
            self._ports.errors.report(error)
        else:
            failpoint("fiber.returned")
            if fiber.aborted:
                self._runner.tell_failed(fiber, fiber.controller.signal.reason_text())
            else:
                self._settle(fiber.id, "completed", None)
                self._runner.tell_completed(fiber)

    def _failed(self, fiber: RunningFiber, status: SettledStatus, error: str | None) -> None:
        """Settle a fiber that has raised, unless it was cancelled before (FB-035)."""
        if not fiber.aborted:
            self._settle(fiber.id, status, error)
        self._runner.tell_failed(fiber, error or fiber.controller.signal.reason_text())

    def _settle(self, fiber_id: str, status: SettledStatus, error: str | None) -> bool:
        now = self._ports.clock.now_ms()
        settled = self._store.settle(fiber_id, status, error=error, now=now)
        if settled:
            failpoint("fiber.settled")
            self.release_waiters(fiber_id)
        return settled

    async def _awaited(self, fiber: FiberInspection) -> FiberInspection:
        """Wait until a fiber is over; one whose process died is recovered first (FB-034)."""
        current = self._runner.current()
        if current is not None and current.id == fiber.fiber_id:
            raise InvalidArguments(f"The fiber {fiber.name!r} would wait for itself")
        orphaned = self._runner.live(fiber.fiber_id) is None
        if orphaned and in_recovery_hook.get():
            raise InvalidArguments(
                f"The fiber {fiber.name!r} cannot be waited for in a recovery hook: "
                "it is recovered after the hook"
            )
        waiter: asyncio.Future[FiberInspection] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(fiber.fiber_id, []).append(waiter)
        if orphaned:
            self._ports.background.start(self._recover(), name="fiber recovery")
        return await waiter


def outcome_of(result: object) -> Outcome:
    """A result as it is stored; None leaves a fiber interrupted (FB-042).

    Raises:
        InvalidArguments: It is no result.
        NotJson: JSON cannot carry its snapshot or metadata.
    """
    if result is None:
        return Outcome(status="interrupted")
    if not isinstance(result, FiberResult):
        raise InvalidArguments(f"A fiber is settled by a FiberResult or None, not {result!r}")
    completed = result.status == "completed"
    return Outcome(
        status=result.status,
        error=None if completed else result.error,
        snapshot=_stored(result.snapshot, "snapshot"),
        metadata=_stored(result.metadata, "metadata") if completed else None,
    )


def _stored(value: object, what: str) -> str | None:
    return None if value is None else dump_payload(value, what=f"The {what} of a fiber's result")


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
