"""Finds fibers whose process died and hands each to whoever knows what to do (FB-010 … FB-023)."""

from collections.abc import Iterator
from dataclasses import dataclass

from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.core.public_errors import public_text
from ramet.errors import SubAgentNotFound
from ramet.fibers.managed import ManagedFibers
from ramet.fibers.policy import follow_up_ms
from ramet.fibers.ports import RECOVER_FIBERS, FiberPorts
from ramet.fibers.records import TERMINAL, FiberInspection, FiberResult, InterruptedFiber
from ramet.fibers.running import FiberRunner
from ramet.fibers.store import FiberStore, StoredRun, readable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orphan:
    fiber: InterruptedFiber
    managed: bool


class FiberRecovery:
    """Looks for interrupted fibers when the agent opens and on every alarm."""

    def __init__(
        self,
        ports: FiberPorts,
        store: FiberStore,
        *,
        runner: FiberRunner,
        managed: ManagedFibers,
    ) -> None:
        self._ports = ports
        self._store = store
        self._runner = runner
        self._managed = managed
        self._scanning = False
        self._without_progress = 0
        self._next_scan: int | None = None

    def next_due(self) -> int | None:
        """When to look again; None when nothing is left to recover."""
        return self._next_scan

    async def due(self) -> None:
        """Look again if it is time, at this agent's fibers and those the root looks after."""
        if self._next_scan is None or self._next_scan <= self._ports.clock.now_ms():
            await self.scan()

    async def scan(self) -> None:
        """Recover what can be recovered now; a second call meanwhile returns at once (FB-020)."""
        if self._scanning:
            return
        self._scanning = True
        try:
            resolved, left = await self._recover_own()
            if self._ports.path.is_root:
                resolved_below, left_below = await self._recover_below()
                resolved, left = resolved or resolved_below, left or left_below
            self._plan(resolved=resolved, left=left)
        finally:
            self._scanning = False

    def _plan(self, *, resolved: bool, left: bool) -> None:
        if not left:
            self._without_progress, self._next_scan = 0, None
            return
        self._without_progress = 0 if resolved else self._without_progress + 1
        interval = self._ports.options.keep_alive_interval
        wait = follow_up_ms(
            interval=interval, scans_without_progress=max(0, self._without_progress - 1)
        )
        self._next_scan = self._ports.clock.now_ms() + wait
        if self._ports.alarm is not None:
            self._ports.alarm.promise(self._next_scan)

    async def _recover_own(self) -> tuple[bool, bool]:
        """Whether a fiber was resolved, and whether one is left."""
        deadline = self._ports.clock.monotonic() + self._ports.options.fiber_recovery_scan_deadline
        resolved = left = False
        for orphan in self._orphans():
            if self._ports.clock.monotonic() > deadline:
                self._emit(orphan, "skipped", reason="scan_deadline_exceeded")
                return resolved, True
            done = await self._recovered(orphan)
            resolved, left = resolved or done, left or not done
        return resolved, left

    def _orphans(self) -> Iterator[_Orphan]:
        unsettled = {fiber.fiber_id: fiber for fiber in self._store.unsettled()}
        for run in self._store.runs():
            if self._runner.live(run.id) is not None:
                unsettled.pop(run.id, None)
                continue
            ledger = unsettled.pop(run.id, None) or self._store.fiber(run.id)
            if ledger is not None and ledger.status in TERMINAL:
                self._store.remove_run(run.id)
            else:
                yield _orphan(run, ledger)
        for ledger in unsettled.values():
            if self._runner.live(ledger.fiber_id) is None:
                yield _orphan(None, ledger)

    async def _recovered(self, orphan: _Orphan) -> bool:
        self._emit(orphan, "detected")
        if orphan.managed:
            self._managed.interrupt(orphan.fiber.id)
        self._ports.events.emit("fiber:run:interrupted", _payload(orphan))
        self._emit(orphan, "attempt")
        failpoint("fiber.recovering")
        try:
            handled = await self._handled_by_framework(orphan.fiber)
            result = None if handled else await self._ports.hook.fiber_recovered(orphan.fiber)
        except Exception as error:  # noqa: BLE001 - the hook's fault is the fiber's, others go on
            self._ports.fence.check()
            self._ports.errors.report(error)
            self._emit(orphan, "failed", reason="handler_error")
            return self._failed(orphan, error)
        status = "internal" if handled else ("managed" if orphan.managed else "user")
        if orphan.managed and result is not None:
            self._managed.resolve(orphan.fiber.id, result)
        self._forget(orphan)
        self._emit(orphan, "handled", status=status)
        return True

    async def _handled_by_framework(self, fiber: InterruptedFiber) -> bool:
        for handler in self._ports.handlers:
            timeout = self._ports.options.fiber_recovery_hook_timeout
            async with self._ports.clock.timeout(timeout):
                if await handler(fiber):
                    return True
        return False

    def _failed(self, orphan: _Orphan, error: Exception) -> bool:
        """End a managed fiber as an error; keep any other, unless it is too old (FB-014)."""
        if orphan.managed:
            text = public_text(error, self._ports.ids)
            self._managed.resolve(orphan.fiber.id, FiberResult(status="error", error=text))
            self._forget(orphan)
            return True
        most = self._ports.options.fiber_recovery_max_age
        age = (self._ports.clock.now_ms() - orphan.fiber.created_at) / 1000
        if most > 0 and age > most:
            self._forget(orphan)
            self._emit(orphan, "skipped", reason="max_age_exceeded")
            return True
        return False

    def _forget(self, orphan: _Orphan) -> None:
        self._store.remove_run(orphan.fiber.id)
        self._runner.release(orphan.fiber.id)
        self._managed.recovered(orphan.fiber.id)

    async def _recover_below(self) -> tuple[bool, bool]:
        """Have sub-agents recover what this root holds leases for (FB-047, FB-048)."""
        resolved = left = False
        for owner in self._store.lease_owners():
            try:
                remaining = await self._ports.dispatch(owner, RECOVER_FIBERS, ())
            except SubAgentNotFound:
                self._store.release_owner(owner)
                resolved = True
                continue
            except Exception as error:  # noqa: BLE001 - one sub-agent's trouble must not stop the others
                self._ports.fence.check()
                self._ports.errors.report(error)
                left = True
                continue
            if remaining:
                left = True
            else:
                self._store.release_owner(owner)
                resolved = True
        return resolved, left

    def _emit(self, orphan: _Orphan, step: str, **more: str) -> None:
        self._ports.events.emit(f"fiber:recovery:{step}", {**_payload(orphan), **more})


def _orphan(run: StoredRun | None, ledger: FiberInspection | None) -> _Orphan:
    if ledger is None:
        assert run is not None, "an orphan has a row in one of the two tables"
        fiber = InterruptedFiber(
            id=run.id,
            name=run.name,
            snapshot=readable(run.snapshot),
            created_at=run.created_at,
        )
        return _Orphan(fiber=fiber, managed=False)
    snapshot = readable(run.snapshot) if run is not None else ledger.snapshot
    fiber = InterruptedFiber(
        id=ledger.fiber_id,
        name=ledger.name,
        snapshot=snapshot,
        created_at=ledger.created_at,
        status="interrupted",
        idempotency_key=ledger.idempotency_key,
        metadata=ledger.metadata,
    )
    return _Orphan(fiber=fiber, managed=True)


def _payload(orphan: _Orphan) -> JsonObject:
    return {
        "fiberId": orphan.fiber.id,
        "fiberName": orphan.fiber.name,
        "managed": orphan.managed,
    }
