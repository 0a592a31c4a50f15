"""Finds fibers whose process died and hands each to whoever knows what to do (FB-010 … FB-023)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ramet.core.callbacks import run_callback
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, JsonValue, NotJson, loads
from ramet.core.public_errors import public_text
from ramet.fibers.leases import Leases
from ramet.fibers.managed import ManagedFibers, in_recovery_hook, outcome_of
from ramet.fibers.policy import LONGEST_FOLLOW_UP_MS, follow_up_ms
from ramet.fibers.ports import FiberPorts
from ramet.fibers.records import TERMINAL, FiberInspection, InterruptedFiber
from ramet.fibers.running import FiberRunner
from ramet.fibers.store import FiberStore, Outcome, StoredRun

_log = logging.getLogger("ramet.fibers")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orphan:
    fiber: InterruptedFiber
    managed: bool


@dataclass(slots=True)
class _Tally:
    """What a scan has come to."""

    resolved: bool = False
    left: bool = False


class FiberRecovery:
    """Looks for interrupted fibers when the agent opens and on every alarm.

    A hook is called **at least once**: a fiber's run row is there until the hook has returned, so a
    crash in the hook, or right after it, calls it again (kill tests at `fiber.recovered`).
    """

    def __init__(
        self,
        ports: FiberPorts,
        store: FiberStore,
        *,
        runner: FiberRunner,
        managed: ManagedFibers,
        leases: Leases,
    ) -> None:
        self._ports = ports
        self._store = store
        self._runner = runner
        self._managed = managed
        self._leases = leases
        self._scanning = False
        self._sign_of_life: int | None = None
        """While a scan goes on: the alarm that finds it again after a crash."""
        self._attempts: Counter[str] = Counter()
        self._without_progress = 0
        self._next_scan: int | None = None

    def next_due(self) -> int | None:
        """When to look again; None when nothing is left to recover."""
        return self._sign_of_life if self._scanning else self._next_scan

    def busy(self) -> str | None:
        """Why the instance may not be evicted now (D14)."""
        pending = self._scanning or self._orphans() or self._leases.orphaned()
        return "interrupted fibers wait for recovery" if pending else None

    async def due(self) -> None:
        """On an alarm: look again, unless what is left waits for a later moment (FB-019)."""
        now = self._ports.clock.now_ms()
        if self._scanning:
            self._sign_of_life = now + self._interval_ms
        elif self._next_scan is None or not now < self._next_scan <= now + LONGEST_FOLLOW_UP_MS:
            # Beside the alarm, not in it: a long hook holds up no schedule.
            self._ports.background.start(self.scan(), name="fiber recovery")
            await self._ports.clock.sleep(0)  # the shortest have ended before the alarm is set

    async def start_up(self) -> None:
        """Recover the agent's own fibers, before `on_start`; those of sub-agents by an alarm.

        A sub-agent cannot be opened before its root is. What takes too long goes on beside
        `on_start`: a hook that hangs must not keep the agent from opening.
        """
        if not self._orphans():
            self._plan_for_leases()
            return
        work = self._ports.background.start(self._first_scan(), name="fiber recovery")
        try:
            async with self._ports.clock.timeout(self._ports.options.fiber_recovery_hook_timeout):
                await asyncio.wait([work])
        except TimeoutError:
            _log.warning("%s: its fibers are recovered beside on_start", self._ports.path)
        if work.done():
            work.result()

    async def scan(self) -> None:
        """Recover what can be recovered now; a second call meanwhile returns at once (FB-020)."""
        if self._scanning:
            return
        with self._scan():
            tally = await self._recover_own()
            await self._leases.recover(tally)
        self._plan(tally)
        if self._ports.alarm is not None:
            self._ports.alarm.rearm()

    def plan_at(self, due_ms: int) -> None:
        """Look at this moment or, as planned, before."""
        if self._next_scan is None or due_ms < self._next_scan:
            self._next_scan = due_ms
            self._promise(due_ms)

    def pending_ids(self) -> frozenset[str]:
        """The ids of the fibers that run or wait for recovery."""
        return frozenset(run.id for run in self._store.runs())

    async def _first_scan(self) -> None:
        with self._scan():
            tally = await self._recover_own()
        self._plan(tally)
        self._plan_for_leases()

    def _plan_for_leases(self) -> None:
        if self._leases.orphaned():
            self.plan_at(self._ports.clock.now_ms())

    @property
    def _interval_ms(self) -> int:
        return round(self._ports.options.keep_alive_interval * 1000)

    @contextmanager
    def _scan(self) -> Iterator[None]:
        self._scanning = True
        self._sign_of_life = self._ports.clock.now_ms() + self._interval_ms
        try:
            yield
        finally:
            self._scanning = False

    def _plan(self, tally: _Tally) -> None:
        self._next_scan = None
        if not tally.left:
            self._without_progress = 0
            return
        self._without_progress = 0 if tally.resolved else self._without_progress + 1
        wait = follow_up_ms(
            interval=self._ports.options.keep_alive_interval,
            scans_without_progress=self._without_progress,
        )
        self.plan_at(self._ports.clock.now_ms() + wait)

    def _promise(self, due_ms: int) -> None:
        if self._ports.alarm is not None:
            self._ports.alarm.promise(due_ms)

    async def _recover_own(self) -> _Tally:
        deadline = self._ports.clock.monotonic() + self._ports.options.fiber_recovery_scan_deadline
        tally = _Tally()
        # Those that have failed most come last, so that a slow one never keeps the others waiting.
        for orphan in sorted(self._orphans(), key=lambda one: self._attempts[one.fiber.id]):
            if self._ports.clock.monotonic() > deadline:
                self._emit(orphan, "skipped", reason="scan_deadline_exceeded")
                tally.left = True
                break
            if await self._recovered(orphan):
                tally.resolved = True
            else:
                tally.left = True
        return tally

    def _orphans(self) -> list[_Orphan]:
        """The fibers that have rows but do not run; rows that a crash has left over go."""
        unsettled = {fiber.fiber_id: fiber for fiber in self._store.unsettled()}
        orphans = []
        for run in self._store.runs():
            ledger = unsettled.pop(run.id, None) or self._store.fiber(run.id)
            if self._runner.live(run.id) is not None:
                continue
            if ledger is not None and ledger.status in TERMINAL - {"interrupted"}:
                self._store.remove_run(run.id)
            else:
                orphans.append(_orphan(run, ledger))
        rest = (ledger for ledger in unsettled.values() if not self._runner.live(ledger.fiber_id))
        return orphans + [_orphan(None, ledger) for ledger in rest]

    async def _recovered(self, orphan: _Orphan) -> bool:
        """Whether a fiber is done with; False when it is kept for later."""
        if not self._mark(orphan):
            return True
        failpoint("fiber.interrupted")
        self._emit(orphan, "detected")
        self._ports.events.emit("fiber:run:interrupted", _payload(orphan))
        self._emit(orphan, "attempt")
        try:
            handled = await self._handled_by_framework(orphan.fiber)
            result = None if handled else await self._asked(orphan.fiber)
            outcome = outcome_of(result) if orphan.managed else None
        except Exception as error:  # noqa: BLE001 - the hook's fault is the fiber's, others go on
            self._ports.fence.check()
            return self._failed(orphan, error)
        failpoint("fiber.recovered")
        self._forget(orphan, outcome)
        status = "internal" if handled else ("managed" if orphan.managed else "user")
        self._emit(orphan, "handled", status=status)
        return True

    def _mark(self, orphan: _Orphan) -> bool:
        """Note that recovery begins; False when the fiber has ended since it was found."""
        if not orphan.managed:
            return self._store.has_run(orphan.fiber.id)
        ledger = self._store.fiber(orphan.fiber.id)
        if ledger is None or ledger.status in TERMINAL - {"interrupted"}:
            return False
        if ledger.status == "interrupted" and not self._store.has_run(orphan.fiber.id):
            return False
        self._store.interrupt(orphan.fiber.id, self._ports.clock.now_ms())
        return True

    async def _handled_by_framework(self, fiber: InterruptedFiber) -> bool:
        async with self._ports.clock.timeout(self._ports.options.fiber_recovery_hook_timeout):
            for handler in self._ports.handlers:
                if await run_callback(handler, (fiber,)):
                    return True
        return False

    async def _asked(self, fiber: InterruptedFiber) -> object:
        token = in_recovery_hook.set(True)
        try:
            return await run_callback(self._ports.hook.fiber_recovered, (fiber,))
        finally:
            in_recovery_hook.reset(token)

    def _failed(self, orphan: _Orphan, error: Exception) -> bool:
        """End a managed fiber as an error; keep any other, unless it is too old (FB-014)."""
        if orphan.managed:
            text = public_text(error, self._ports.ids)
            self._forget(orphan, Outcome(status="error", error=text))
        else:
            self._attempts[orphan.fiber.id] += 1
        self._ports.errors.report(error)
        self._emit(orphan, "failed", reason="handler_error")
        if not orphan.managed and self._is_too_old(orphan):
            self._forget(orphan, None)
            self._emit(orphan, "skipped", reason="max_age_exceeded")
            return True
        return orphan.managed

    def _is_too_old(self, orphan: _Orphan) -> bool:
        most_ms = self._ports.options.fiber_recovery_max_age * 1000
        return 0 < most_ms < self._ports.clock.now_ms() - orphan.fiber.created_at

    def _forget(self, orphan: _Orphan, outcome: Outcome | None) -> None:
        """Settle a managed fiber, delete any other's row; then the root need not look after it."""
        if outcome is None:
            self._store.remove_run(orphan.fiber.id)
        else:
            self._managed.conclude(orphan.fiber.id, outcome)
        failpoint("fiber.forgotten")
        self._attempts.pop(orphan.fiber.id, None)
        self._runner.unlease(orphan.fiber.id)

    def _emit(self, orphan: _Orphan, step: str, **more: str) -> None:
        self._ports.events.emit(f"fiber:recovery:{step}", {**_payload(orphan), **more})


def _orphan(run: StoredRun | None, ledger: FiberInspection | None) -> _Orphan:
    if ledger is not None:
        snapshot = ledger.snapshot if run is None else _readable(run)
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
    assert run is not None, "an orphan has a row in one of the two tables"
    fiber = InterruptedFiber(
        id=run.id, name=run.name, snapshot=_readable(run), created_at=run.created_at
    )
    return _Orphan(fiber=fiber, managed=False)


def _readable(run: StoredRun) -> JsonValue:
    """The snapshot of a fiber; None, with a warning, for one that cannot be read (FB-016)."""
    try:
        return None if run.snapshot is None else loads(run.snapshot)
    except NotJson as error:
        _log.warning("The snapshot of the fiber %s cannot be read: %s", run.id, error)
        return None


def _payload(orphan: _Orphan) -> JsonObject:
    return {
        "fiberId": orphan.fiber.id,
        "fiberName": orphan.fiber.name,
        "managed": orphan.managed,
    }
