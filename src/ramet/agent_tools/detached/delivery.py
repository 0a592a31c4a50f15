"""Delivers to a parent what became of its detached runs: each delivery has one slot, claimed once.

A slot is marked as delivered after the hooks have returned. Killed before that, it is delivered
again once the claim is a lease old: **at least once** (kill tests at `detached.*_called`).
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from ramet.agent_tools.detached.backbone import Backbone
from ramet.agent_tools.detached.policy import (
    BROKEN_OFF,
    GAP_SECONDS,
    HELD_UP,
    LEASE_MS,
    LONGEST_DELIVERY,
)
from ramet.agent_tools.detached.ports import DetachedPorts
from ramet.agent_tools.detached_terms import NOTIFY_FINISH
from ramet.agent_tools.detachment import SlotName
from ramet.agent_tools.outputs import result_of
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import RunResult
from ramet.agent_tools.run_store import RunStore
from ramet.agent_tools.stored_run import StoredRun
from ramet.core.failpoints import failpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """The deliveries of one parent."""

    ports: AgentToolPorts
    detached: DetachedPorts
    runs: RunStore
    backbone: Backbone
    _under_way: dict[tuple[str, SlotName], float] = field(default_factory=dict)
    """The deliveries that this process is at, with when it began."""

    def busy(self) -> bool:
        """Whether a delivery is waiting or being made."""
        return bool(self._under_way)

    def soon(self, run: StoredRun, slot: SlotName) -> None:
        """Deliver a run as it stands, between two turns; what the callback raises is reported.

        While it is told that the run was given up its end waits for the next tick, though not for
        longer than a lease (AT-251).
        """
        key, now = (run.run_id, slot), self.ports.clock.monotonic()
        giving_up = self._under_way.get((run.run_id, "give-up"))
        follows = giving_up is None or now - giving_up >= GAP_SECONDS
        if key not in self._under_way and follows:
            self._under_way[key] = now
            work = self._between_turns(run, slot)
            self.ports.background.start(work, name=f"deliver {slot} of {run.run_id}")

    async def now(self, run: StoredRun, slot: SlotName) -> None:
        """Deliver a run as it stands, inside a turn too: who cancels it may be in one (AT-269).

        Raises:
            Exception: What the callback raised; it was reported, and is called again later.
        """
        key = (run.run_id, slot)
        if key not in self._under_way:
            self._under_way[key] = self.ports.clock.monotonic()
            try:
                await self._deliver(run, slot)
            finally:
                del self._under_way[key]

    async def _between_turns(self, run: StoredRun, slot: SlotName) -> None:
        try:
            async with self._gap(run):
                await self._deliver(run, slot)
        except Exception:  # noqa: BLE001 - a callback's fault was reported where it was raised
            self.ports.fence.check()
        finally:
            del self._under_way[run.run_id, slot]

    def _gap(self, run: StoredRun) -> AbstractAsyncContextManager[object]:
        """A place between two turns, for a while: what takes longer holds nobody up (AT-268)."""
        callback = run.detachment.on_finish if run.detachment else None
        what = "The delivery" if callback in {None, NOTIFY_FINISH} else callback
        late = TimeoutError(HELD_UP.format(what=what, run_id=run.run_id, seconds=GAP_SECONDS))
        return self.detached.between_turns(
            at_most=GAP_SECONDS, overdue=lambda: self.ports.errors.report(late)
        )

    async def _deliver(self, run: StoredRun, slot: SlotName) -> None:
        """Claim a slot, call the hooks, and mark it; nothing when it is claimed (AT-245)."""
        run_id, now = run.run_id, self.ports.clock.now_ms()
        if not self.runs.claim(run_id, slot, now=now, lease=LEASE_MS):
            return
        _claimed(slot)
        result = result_of(run)
        try:
            await self._call_hooks(run, result)
        except Exception as error:
            self.ports.fence.check()
            self._failed(run, slot, error)
            self.backbone.not_after(now + LEASE_MS)
            raise
        # Killed here or before, the slot is still open and is delivered again after the lease.
        _called(slot)
        self.runs.delivered(run_id, slot, self.ports.clock.now_ms())
        _delivered(slot)
        self.backbone.rest()

    async def _call_hooks(self, run: StoredRun, result: RunResult[object]) -> None:
        clock = self.ports.clock
        begun = clock.monotonic()
        try:
            async with clock.timeout(LONGEST_DELIVERY):
                await self._tell_everybody(run, result)
                await self._call_back(run, result)
        except TimeoutError as error:
            if clock.monotonic() - begun < LONGEST_DELIVERY:
                raise  # one of the method's own
            raise TimeoutError(BROKEN_OFF.format(seconds=LONGEST_DELIVERY)) from error

    async def _tell_everybody(self, run: StoredRun, result: RunResult[object]) -> None:
        """Run the hook for all runs; whatever it raises, the run's own callback follows."""
        try:
            await self.ports.hooks.agent_tool_finished(run.info(), result)
        except Exception as error:  # noqa: BLE001 - a hook's fault goes to on_error (AT-206)
            self.ports.fence.check()
            self.ports.errors.report(error)

    async def _call_back(self, run: StoredRun, result: RunResult[object]) -> None:
        name = run.detachment.on_finish if run.detachment else None
        if name == NOTIFY_FINISH:
            if self.detached.notices is not None:
                await self.detached.notices.finished(run.info(), result)
        elif name is not None:
            await self.detached.callbacks.run_finish_callback(name, run.info(), result)

    def _failed(self, run: StoredRun, slot: SlotName, error: Exception) -> None:
        callback = run.detachment.on_finish if run.detachment else None
        self.ports.events.emit(
            "agent_tool:detached:delivery_failed",
            {
                "runId": run.run_id,
                "kind": slot,
                "status": run.status,
                "callback": callback,
                "error": str(error) or type(error).__name__,
            },
        )
        self.ports.errors.report(error)


def _claimed(slot: SlotName) -> None:
    if slot == "finish":
        failpoint("detached.finish_claimed")
    else:
        failpoint("detached.give_up_claimed")


def _called(slot: SlotName) -> None:
    if slot == "finish":
        failpoint("detached.finish_called")
    else:
        failpoint("detached.give_up_called")


def _delivered(slot: SlotName) -> None:
    if slot == "finish":
        failpoint("detached.finish_delivered")
    else:
        failpoint("detached.give_up_delivered")
