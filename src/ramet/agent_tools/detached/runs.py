"""Runs that a parent lets go of: dispatched, cancelled, and reported back (section 14)."""

import logging

from ramet.agent_tools.arguments import check_signal
from ramet.agent_tools.detached.backbone import TICK, Backbone
from ramet.agent_tools.detached.delivery import Deliveries
from ramet.agent_tools.detached.notices import MilestoneNotices
from ramet.agent_tools.detached.policy import MANY_RUNS
from ramet.agent_tools.detached.ports import DetachedPorts
from ramet.agent_tools.detached.reconcile import Reconciler
from ramet.agent_tools.detached.watch import DetachedTasks
from ramet.agent_tools.detached_terms import checked_terms
from ramet.agent_tools.dispatch import Dispatcher, RunOrder
from ramet.agent_tools.live_run import LiveRun
from ramet.agent_tools.policy import cancellation
from ramet.agent_tools.records import DetachedRun
from ramet.agent_tools.stored_run import StoredRun
from ramet.core.signals import AbortSignal
from ramet.errors import InvalidArguments, RunBelongsToAnother
from ramet.protocol.run_events import ABSENT, HARD_TERMINAL

__all__ = ["TICK", "DetachedPorts", "DetachedRuns"]

BY_PARENT = "cancelled by parent"

_log = logging.getLogger("ramet.agent_tools")


class DetachedRuns:
    """The detached runs of one parent."""

    def __init__(self, dispatcher: Dispatcher, detached: DetachedPorts) -> None:
        ports, runs = dispatcher.ports, dispatcher.runs
        self._dispatcher = dispatcher
        self._ports = ports
        self._detached = detached
        self._backbone = Backbone(waking=detached.waking, runs=runs, clock=ports.clock)
        self._deliveries = Deliveries(
            ports=ports, detached=detached, runs=runs, backbone=self._backbone
        )
        self._notices = MilestoneNotices(ports=ports, detached=detached, runs=runs)
        self._tasks = DetachedTasks(
            ports=ports,
            tasks=dispatcher.tasks,
            deliveries=self._deliveries,
            notices=self._notices,
            observers=dispatcher.observers,
            live_again=dispatcher.live_again,
        )
        self._reconciler = Reconciler(
            ports=ports, dispatcher=dispatcher, tasks=self._tasks, backbone=self._backbone
        )
        self.tick = self._reconciler.tick
        """The handler `TICK`."""
        self.take_up = self._reconciler.take_up
        """Goes on with what an earlier instance has left; after `on_start`."""
        self._warned_of_many = False

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        parts = (self._deliveries, self._notices, self._reconciler)
        working = any(part.busy() for part in parts)
        return "a detached run is reporting back" if working else None

    async def dispatch(
        self, order: RunOrder, asked: object, signal: AbortSignal | None
    ) -> DetachedRun:
        """Start a run and return as soon as its child has begun; see `run_agent_tool`.

        Raises:
            MethodNotFound, InvalidArguments, ValueError: What is asked of the run cannot be.
            AgentNotRegistered, NotAnAgentTool: The class cannot be run.
            RunBelongsToAnother: The run id is taken by another class or question, or is awaited.
            Exception: What `on_agent_tool_start` or the child's start raised.
        """
        check_signal(signal)
        if order.output is not None:
            raise InvalidArguments(
                f"A detached run gives its output as it comes: leave out output={order.output!r}"
            )
        terms = checked_terms(
            asked,
            self._ports.options,
            callback=self._detached.callbacks.finish_callback,
            in_chat=self._detached.notices is not None,
        )
        checked = self._dispatcher.check(order)
        if signal is not None:
            _log.warning("The signal of a detached run is ignored: cancel_agent_tool cancels it")
        known = self._dispatcher.known(checked)
        if known is not None:
            return self._again(known, _input_of(order))
        found = self._dispatcher.register(checked, terms=terms, arm=self._backbone.hasten)
        if isinstance(found, LiveRun):
            self._warn_of_many()
            found = await self._tasks.begin(found, _input_of(order))
        return _handle(found)

    async def cancel(self, run: StoredRun, reason: str | None) -> None:
        """Stop a run that is open or given up, and deliver that at once (AT-185 … AT-188)."""
        text = reason or BY_PARENT
        live = self._dispatcher.in_flight.get(run.run_id)
        if live is not None:
            live.cancel(text)
            await live.sealed.wait()
        now = self._dispatcher.runs.get(run.run_id)
        if now is not None and now.status not in HARD_TERMINAL:
            with self._tasks.held(now) as live, self._tasks.stopped_by(live):
                await self._tasks.stop(live, text)
                counted = await self._tasks.counted(live)
                now = self._tasks.conclude(live, cancellation(text), counted=counted, deliver=False)
        if now is not None:
            await self._deliveries.now(now, "finish")

    def _again(self, run: StoredRun, input: object) -> DetachedRun:
        """A known id: nothing is started twice, but somebody looks after it (AT-265, QK-012)."""
        if run.status not in HARD_TERMINAL:
            if not run.detached:
                raise RunBelongsToAnother(
                    f"The run {run.run_id!r} is awaited: give a detached run an id of its own"
                )
            self._backbone.keep()
            # Should a crash have kept its child from being started, its input is known again now.
            self._tasks.attach(run, input=input)
        return _handle(run)

    def _warn_of_many(self) -> None:
        """Report once that very many detached runs are under way (AT-266)."""
        count = self._dispatcher.runs.count_let_go()
        if count < MANY_RUNS:
            self._warned_of_many = False
        elif not self._warned_of_many:
            self._warned_of_many = True
            self._ports.events.emit(
                "agent_tool:detached:live_count_warning",
                {"liveCount": count, "threshold": MANY_RUNS},
            )


def _input_of(order: RunOrder) -> object:
    return None if order.input is ABSENT else order.input


def _handle(run: StoredRun) -> DetachedRun:
    """The run as its dispatcher is told of it."""
    status = run.status
    if status == "starting" or status == "running" or status == "interrupted":
        return DetachedRun(run_id=run.run_id, agent_type=run.agent_type, status="running")
    return DetachedRun(run_id=run.run_id, agent_type=run.agent_type, status=status, error=run.error)
