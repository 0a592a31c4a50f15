"""The task of one run: starts the child, watches it, and brings the run to its end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ramet.agent_tools.children import CHILD_PATIENCE
from ramet.agent_tools.finalize import Finalizer
from ramet.agent_tools.in_flight import RunsInFlight
from ramet.agent_tools.live_run import CancelPosted, LiveRun
from ramet.agent_tools.observe import Observer
from ramet.agent_tools.outputs import checked_ending
from ramet.agent_tools.patience import Patience
from ramet.agent_tools.policy import (
    CANCELLED,
    STILL_RUNNING,
    Ending,
    cancellation,
    ending_of,
    failure,
    interruption,
    silence,
)
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Inspection
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.core.failpoints import failpoint
from ramet.core.public_errors import public_text
from ramet.protocol.run_events import ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTasks:
    """Carries runs out, each as one task of the parent's instance (D12).

    When the instance dies nothing is sealed: the fence stops every step, and the next instance
    finds the row as it was (D11).
    """

    ports: AgentToolPorts
    runs: RunStore
    in_flight: RunsInFlight
    observer: Observer
    finalizer: Finalizer

    def begin(self, live: LiveRun, input: object) -> None:
        """Carry out a run that was registered just now."""
        self._own(live, lambda: self._new(live, input))

    def attach(self, live: LiveRun) -> None:
        """Follow again a run that was lost sight of (AT-054, AT-055)."""
        self._own(live, lambda: self._attached(live))

    def finish(self, live: LiveRun, ending: Ending, *, counted: bool = True) -> StoredRun | None:
        """Seal the row and send the last frame; None when the row was sealed or cleared before."""
        sealed = self.finalizer.seal(live.feed, ending, counted=counted)
        live.sealed.set()
        return sealed

    def settle(self, live: LiveRun, ending: Ending) -> None:
        """Give the callers the row as it stands; for a cleared run what it would have become."""
        self.in_flight.forget(live)
        stored = self.runs.get(live.run_id)
        live.settle(stored or replace(live.feed.run, status=ending.status, error=ending.error))

    async def cancel_child(self, live: LiveRun) -> Ending:
        """Stop the child, as far as it lets itself be stopped in a few seconds."""
        reason = live.cancel_reason or CANCELLED
        if live.child_started:
            try:
                async with self.ports.clock.timeout(CHILD_PATIENCE):
                    await live.child.cancel(reason)
            except Exception as error:  # noqa: BLE001 - the run is cancelled whatever the child raised
                self.ports.fence.check()
                self.ports.errors.report(error)
        return cancellation(reason)

    def _own(self, live: LiveRun, work: Callable[[], Awaitable[None]]) -> None:
        self.in_flight.add(live)
        self.ports.background.start(self._owned(live, work), name=f"run {live.run_id}")

    async def _owned(self, live: LiveRun, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            live.fail(error)
            raise
        finally:
            self.in_flight.forget(live)
            live.sealed.set()

    async def _new(self, live: LiveRun, input: object) -> None:
        try:
            first = await self.started(live, input)
        except CancelPosted:
            await self._end(live, await self.cancel_child(live))
        except Exception as error:  # noqa: BLE001 - raised in the callers; the row must not stay open
            self.ports.fence.check()
            await self._refuse(live, error)
        else:
            await self._end(live, await self._watched(live, first))

    async def started(self, live: LiveRun, input: object) -> Inspection:
        """Tell the parent's hook and the clients, then start the child (AT-037)."""
        with live.interruptible(CHILD_PATIENCE):
            await self.ports.hooks.agent_tool_started(live.feed.run.info())
            live.feed.start()
            failpoint("run.announced")
            live.child_started = True
            first = await live.child.start(input)
        self.runs.mark_running(live.run_id)
        live.feed.run = replace(live.feed.run, status="running")
        failpoint("run.started")
        return first

    async def _refuse(self, live: LiveRun, error: Exception) -> None:
        """End a run whose dispatch raised: callers get the exception, the row its text (QK-005)."""
        sealed = self.finish(live, failure(public_text(error, self.ports.ids)))
        if sealed is not None and live.child_started:
            await self.finalizer.tell(sealed)
        self.in_flight.forget(live)
        if not live.fail(error):
            self.ports.errors.report(error)

    async def _watched(self, live: LiveRun, first: Inspection | None) -> Ending:
        try:
            if live.early_cancel is not None:
                await live.child.cancel(live.early_cancel)
            ending = await self.observer.watch(live, first)
        except CancelPosted:
            return await self.cancel_child(live)
        except Exception as error:  # noqa: BLE001 - a child's fault is the run's result (AT-047)
            self.ports.fence.check()
            if live.cancel_reason is not None:
                return await self.cancel_child(live)
            return failure(public_text(error, self.ports.ids))
        return checked_ending(ending, live.wanted)

    async def _attached(self, live: LiveRun) -> None:
        live.child_started = True
        try:
            ending = await self._watched_again(live)
        except CancelPosted:
            ending = await self.cancel_child(live)
        except Exception as error:  # noqa: BLE001 - the child cannot be reached now; it may later (AT-057)
            self.ports.fence.check()
            self.ports.errors.report(error)
            lost = interruption(None, child_still_running=True)
            ending = replace(lost, error=STILL_RUNNING)
        await self._end(live, checked_ending(ending, live.wanted))

    async def _watched_again(self, live: LiveRun) -> Ending:
        """Take the result of a child that has ended; else follow it while it is not silent.

        A child that a crash has kept from being started is started, if its input is known: now, or
        once somebody has come who knows it.
        """
        first, ending = await self._looked_at(live)
        if first is None and ending.status == "interrupted" and live.input is not ABSENT:
            _, ending = await self._looked_at(live)
        return ending

    async def _looked_at(self, live: LiveRun) -> tuple[Inspection | None, Ending]:
        with live.interruptible(CHILD_PATIENCE):
            try:
                async with self.ports.clock.timeout(CHILD_PATIENCE):
                    first = await live.child.inspect()
            except TimeoutError:
                return None, interruption("inspect-timeout")
            if first is None and live.input is not ABSENT:
                first = await live.child.start(live.input)
                self.runs.mark_running(live.run_id)
        ending = ending_of(first)
        if ending is None:
            return first, await self._followed(live, first)
        await self.observer.collect_what_can_be(live)
        return first, ending

    async def _followed(self, live: LiveRun, first: Inspection | None) -> Ending:
        """Follow a child within the limits of its parent, if it can be followed."""
        options = self.ports.options
        idle = options.agent_tool_reattach_no_progress_timeout
        if live.child.tailable and idle > 0:
            window = options.agent_tool_reattach_max_window
            patience = Patience(self.ports.clock, idle=idle, window=window)
            return await self.observer.watch(live, first, patience=patience)
        await self.observer.collect_what_can_be(live)
        lost = silence(tailable=live.child.tailable)
        return interruption(lost, child_still_running=None if first is None else True)

    async def _end(self, live: LiveRun, ending: Ending) -> None:
        sealed = self.finish(live, ending)
        if sealed is not None:
            await self.finalizer.tell(sealed)
        self.settle(live, ending)
