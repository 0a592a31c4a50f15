"""The tasks of detached runs: start the child, follow it while the parent is in memory (AT-241).

What cannot be followed to its end here is left to the tick, which looks at every outstanding run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ramet.agent_tools.carry_out import RunTasks
from ramet.agent_tools.children import CHILD_PATIENCE
from ramet.agent_tools.detached.delivery import Deliveries
from ramet.agent_tools.detached.notices import MilestoneNotices
from ramet.agent_tools.detached_observers import DetachedObservers
from ramet.agent_tools.feed import Feed
from ramet.agent_tools.live_run import CancelPosted, LiveRun
from ramet.agent_tools.policy import Ending, ending_of, failure
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.agent_tools.signals import milestone_of
from ramet.agent_tools.stored_run import StoredRun
from ramet.core.public_errors import public_text
from ramet.errors import AgentNotRegistered
from ramet.protocol.run_events import ABSENT, HARD_TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedTasks:
    """Carries detached runs out and brings them to their end."""

    ports: AgentToolPorts
    tasks: RunTasks
    deliveries: Deliveries
    notices: MilestoneNotices
    observers: DetachedObservers
    live_again: Callable[[StoredRun], LiveRun]
    """Makes a live run for a row."""
    stopping: set[str] = field(default_factory=set)
    """The runs whose children are being stopped: who does that says how they have ended."""
    _feeds: dict[str, Feed] = field(default_factory=dict)
    """Those of open runs that nobody follows at the moment: what was sent is not sent again."""

    async def begin(self, live: LiveRun, input: object) -> StoredRun:
        """Start a run that was registered just now, and return once its child has begun.

        Cancelling this wait changes nothing of the run.

        Raises:
            Exception: What `on_agent_tool_start` or starting the child raised.
        """
        begun: asyncio.Future[StoredRun] = asyncio.get_running_loop().create_future()
        self._feeds.pop(live.run_id, None)
        self._own(live, lambda: self._new(live, input, begun))
        forget = self.ports.fence.on_down(lambda: _lost(begun, self.ports.fence.error()))
        try:
            return await begun
        finally:
            forget()

    def attach(self, run: StoredRun, *, input: object = ABSENT) -> None:
        """Follow a run again unless somebody does; with the input its child can be started too."""
        followed = self.tasks.in_flight.get(run.run_id)
        live = followed or self._live_again(run)
        if live.input is ABSENT:
            live.input = input
        if followed is None:
            self._own(live, lambda: self._attached(live))

    def conclude(
        self, live: LiveRun, ending: Ending, *, counted: bool = True, deliver: bool = True
    ) -> StoredRun | None:
        """Seal a run by the word of its child, tell who waits for it, and deliver it soon.

        None when the run was cleared meanwhile. Whatever the child was, its process has ended: that
        it was killed is an error here, for nothing more can come of it.
        """
        if ending.status == "interrupted" and ending.reason is None:
            ending = replace(ending, status="error")
        self.tasks.finish(live, ending, counted=counted)
        self.tasks.in_flight.forget(live)
        run = self.tasks.runs.get(live.run_id)
        if run is None:
            self.observers.tell(replace(live.feed.run, status=ending.status, error=ending.error))
            return None
        self.observers.tell(run)
        if deliver and run.status in HARD_TERMINAL:
            self.deliveries.soon(run, "finish")
        return run

    def _own(self, live: LiveRun, work: Callable[[], Awaitable[None]]) -> None:
        live.feed.on_signal = _Signals(self, live.run_id)
        self.tasks.in_flight.add(live)
        self.ports.background.start(self._owned(live, work), name=f"run {live.run_id}")

    async def _owned(self, live: LiveRun, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._forget(live)

    async def _new(self, live: LiveRun, input: object, begun: "asyncio.Future[StoredRun]") -> None:
        try:
            first = await self.tasks.started(live, input)
        except CancelPosted:
            await self._cancelled(live)
            _settle(begun, self.tasks.runs.get(live.run_id) or live.feed.run)
        except Exception as error:  # noqa: BLE001 - raised in the caller; the row must not stay open
            self.ports.fence.check()
            await self._refuse(live, error, begun)
        else:
            _settle(begun, live.feed.run)
            await self._follow(live, first)

    async def _refuse(
        self, live: LiveRun, error: Exception, begun: "asyncio.Future[StoredRun]"
    ) -> None:
        """End a run whose dispatch raised: the caller gets the exception (QK-005).

        It needs no other word then; a caller that has gone is told as of any other end.
        """
        told = not begun.done()
        ending = failure(public_text(error, self.ports.ids))
        with self.ports.database.transaction():
            run = self.conclude(live, ending, deliver=not told)
            if run is not None and told:
                now = self.ports.clock.now_ms()
                self.tasks.runs.delivered(run.run_id, "finish", now)
        self.deliveries.backbone.rest()
        if not told:
            self.ports.errors.report(error)
            return
        if run is not None and live.child_started:
            await self.tasks.finalizer.tell(run)
        begun.set_exception(error)

    async def _follow(self, live: LiveRun, first: Inspection | None) -> None:
        """Pass on what the child gives, and deliver its end; what is lost is left to the tick."""
        try:
            ending = await self.tasks.observer.watch(live, first)
        except CancelPosted:
            await self._cancelled(live)
            return
        except Exception as error:  # noqa: BLE001 - a child that cannot be followed is still at work
            self.ports.fence.check()
            if live.cancel_reason is not None:
                await self._cancelled(live)
            else:
                self.ports.errors.report(error)
            return
        if ending.status != "interrupted" or ending.reason is None:
            self._ended(live, ending)

    def _ended(self, live: LiveRun, ending: Ending, *, counted: bool = True) -> None:
        """Bring a run to its end, unless somebody is stopping its child or has given it up.

        That a child was stopped for a run that was given up comes with the next tick (AT-263).
        """
        run = self.tasks.runs.get(live.run_id)
        given_up = run is not None and run.status == "interrupted"
        if live.run_id not in self.stopping and not (given_up and ending.status == "aborted"):
            self.conclude(live, ending, counted=counted)

    async def _cancelled(self, live: LiveRun) -> None:
        """Stop the child and seal the row; who posted the cancel delivers, if anybody does."""
        ending = await self.tasks.cancel_child(live)
        self.conclude(live, ending, counted=await self.counted(live), deliver=False)

    async def _attached(self, live: LiveRun) -> None:
        try:
            first = await self._asked(live)
        except CancelPosted:
            await self._cancelled(live)
            return
        except TimeoutError:
            return
        except Exception as error:  # noqa: BLE001 - a child that cannot be reached is still at work (AT-243)
            self.ports.fence.check()
            self.ports.errors.report(error)
            return
        ending = ending_of(first)
        if ending is not None:
            self._ended(live, ending, counted=await self.collected(live))
        elif first is not None and live.child.tailable:
            await self._follow(live, first)

    async def _asked(self, live: LiveRun) -> Inspection | None:
        """How the child is; one that a crash has kept from being started is started now."""
        with live.interruptible(CHILD_PATIENCE):
            async with self.ports.clock.timeout(CHILD_PATIENCE):
                first = await live.child.inspect()
            if first is None and live.input is not ABSENT:
                first = await live.child.start(live.input)
            if first is not None:
                self.tasks.runs.mark_running(live.run_id)
            return first

    @contextmanager
    def stopped_by(self, live: LiveRun) -> Iterator[None]:
        """Keep everybody else from ending a run while its child is being stopped."""
        self.stopping.add(live.run_id)
        try:
            yield
        finally:
            self.stopping.discard(live.run_id)

    async def stop(self, live: LiveRun, reason: str) -> bool:
        """Stop the child; whether it could be told to (AT-188, AT-254)."""
        try:
            async with self.ports.clock.timeout(CHILD_PATIENCE):
                await live.child.cancel(reason)
        except AgentNotRegistered:
            return False  # the log has it: the child's class is gone
        except Exception as error:  # noqa: BLE001 - the run is over whatever the child raised
            self.ports.fence.check()
            self.ports.errors.report(error)
            return False
        return True

    @contextmanager
    def held(self, run: StoredRun) -> Iterator[LiveRun]:
        """The live run, so that one feed numbers all frames; a passing one if nobody follows."""
        in_flight = self.tasks.in_flight
        live = in_flight.get(run.run_id)
        if live is not None:
            yield live
            return
        live = self._live_again(run)
        live.feed.on_signal = _Signals(self, live.run_id)
        in_flight.add(live)
        try:
            yield live
        finally:
            self._forget(live)

    def _live_again(self, run: StoredRun) -> LiveRun:
        live = self.live_again(run)
        live.child_started = True
        live.feed = self._feeds.pop(run.run_id, live.feed)
        live.feed.run = run
        return live

    def _forget(self, live: LiveRun) -> None:
        """Let a live run go; what its feed knows is kept while the run is open."""
        if not live.sealed.is_set():
            self._feeds[live.run_id] = live.feed
        self.tasks.in_flight.forget(live)
        live.sealed.set()

    async def counted(self, live: LiveRun) -> bool:
        """Whether all chunks have their numbers that were sent by earlier instances too (D2)."""
        return not live.feed.resumed or await self.collected(live)

    async def collected(self, live: LiveRun) -> bool:
        """Pass on what the child has stored; False when that cannot be had in time."""
        try:
            async with self.ports.clock.timeout(CHILD_PATIENCE):
                return await self.tasks.observer.collect_what_can_be(live)
        except TimeoutError:
            return False


class _Signals:
    """Takes note of the signs of life of one run (AT-282), and tells the chat of milestones."""

    def __init__(self, tasks: DetachedTasks, run_id: str) -> None:
        self._tasks = tasks
        self._run_id = run_id

    def __call__(self, item: StoredChunk) -> None:
        """Take a progress or a milestone that was passed on just now."""
        tasks = self._tasks
        now = tasks.ports.clock.now_ms()
        tasks.tasks.runs.signalled(self._run_id, now)
        milestone = milestone_of(item.body, at=now) if item.kind == "milestone" else None
        if milestone is not None:
            tasks.notices.offer(self._run_id, [milestone])


def _settle(begun: "asyncio.Future[StoredRun]", run: StoredRun) -> None:
    if not begun.done():
        begun.set_result(run)


def _lost(begun: "asyncio.Future[StoredRun]", error: Exception) -> None:
    if not begun.done():
        begun.set_exception(error)
