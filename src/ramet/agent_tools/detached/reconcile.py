"""Looks at the runs that have still to report back: the tick that finds what nobody follows."""

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ramet.agent_tools.children import CHILD_PATIENCE
from ramet.agent_tools.detached.backbone import Backbone
from ramet.agent_tools.detached.policy import (
    CLASS_GONE_MS,
    GiveUp,
    claimable,
    class_stays_away,
    is_ahead,
    only_sign_is_to_come,
    over_budget,
    was_never_begun,
)
from ramet.agent_tools.detached.watch import DetachedTasks
from ramet.agent_tools.detachment import Slot
from ramet.agent_tools.dispatch import Dispatcher
from ramet.agent_tools.policy import (
    CHILD_GONE,
    Ending,
    ending_of,
    failure,
    interruption,
)
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Inspection
from ramet.agent_tools.stored_run import StoredRun
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonValue
from ramet.protocol.run_events import ABSENT, HARD_TERMINAL, Absent

_log = logging.getLogger("ramet.agent_tools")

_MISSING = (
    "%s waits for runs of the class %r, which is not registered: "
    "they end after %d minutes unless it comes back"
)

_Answer: TypeAlias = Inspection | Absent | None
"""What a child says of its run: None when it knows nothing of it, absent when it did not answer."""

CLASS_GONE = "The agent class {!r} of this run's child is not registered any more."
NEVER_BEGUN = "The process ended before the child of this run was started."


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """Brings the outstanding runs of one parent on."""

    ports: AgentToolPorts
    dispatcher: Dispatcher
    tasks: DetachedTasks
    backbone: Backbone
    _ticking: int = field(default=0)
    _missing: set[str] = field(default_factory=set)
    """The classes of children that are not registered, of which the log has told."""

    def busy(self) -> bool:
        """Whether runs are being looked at."""
        return self._ticking > 0

    def take_up(self) -> None:
        """Arm the tick when an earlier instance has left something, and follow what is at work.

        No row is changed here: to lose its observer is normal for a detached run (AT-280, AT-281).
        """
        outstanding = self._outstanding()
        if outstanding:
            self.backbone.keep()
        for run in outstanding:
            if self._has_class(run) and run.status in {"starting", "running"}:
                named = (self.ports.path, run.run_id, run.agent_type)
                _log.info("%s: the run %s of %s is taken up", *named)
                self.tasks.attach(run)

    async def tick(self, payload: JsonValue) -> None:
        """Look at every outstanding run, the oldest first; the handler `TICK` (AT-239, AT-242).

        The next tick is armed before anything else: whatever happens here, it comes.
        """
        self.backbone.go_on(payload)
        self._ticking += 1
        try:
            asked = [(run, self._ask(run)) for run in self._outstanding()]
            for run, answer in asked:
                await self._look_at(run, await answer if isinstance(answer, Awaitable) else answer)
        finally:
            self._ticking -= 1
        self.backbone.rest()

    def _outstanding(self) -> list[StoredRun]:
        """The runs that have still to report back, with no moment later than now.

        One that is tells of a wall clock that was set back: nothing waits until it has caught up.
        """
        runs, now = self.dispatcher.runs, self.ports.clock.now_ms()
        found = runs.outstanding()
        if not any(is_ahead(run, now=now) for run in found):
            return found
        runs.bring_nearer(now)
        return runs.outstanding()

    async def _look_at(self, asked: StoredRun, answer: _Answer) -> None:
        run = self.dispatcher.runs.get(asked.run_id)
        if run is None or self._being_stopped(run):
            return  # whoever stops it delivers that
        if run.status in HARD_TERMINAL:
            self.tasks.deliveries.soon(run, "finish")
            return
        self._give_up_again(run)
        inspection = None if isinstance(answer, Absent) else answer
        if inspection is not None:
            self.tasks.notices.offer(run.run_id, inspection.milestones)
        ending = self._ending(run, answer)
        if ending is not None:
            await self._conclude(run, ending)
            return
        now = self.ports.clock.now_ms()
        if only_sign_is_to_come(run, inspection, now=now):
            self.dispatcher.runs.signalled(run.run_id, now)
        reason = over_budget(run, inspection, now=now)
        if reason is not None:
            await self._give_up(run, reason)
        elif inspection is not None and self.dispatcher.child_of(run).tailable:
            self.tasks.attach(run)

    def _ending(self, run: StoredRun, answer: _Answer) -> Ending | None:
        """How a run has ended, by its child, or because there is none (AT-243, AT-262)."""
        if not self.ports.registry.has(run.agent_type, run.run_id):
            return failure(CHILD_GONE)
        if class_stays_away(run, now=self.ports.clock.now_ms()):
            return failure(CLASS_GONE.format(run.agent_type))
        if isinstance(answer, Absent):
            return None
        live = self.dispatcher.in_flight.get(run.run_id)
        if live is None and was_never_begun(run, answer, now=self.ports.clock.now_ms()):
            return failure(NEVER_BEGUN)
        return ending_of(answer)

    def _being_stopped(self, run: StoredRun) -> bool:
        live = self.dispatcher.in_flight.get(run.run_id)
        cancelled = live is not None and live.cancel_reason is not None
        return cancelled or run.run_id in self.tasks.stopping

    def _ask(self, run: StoredRun) -> Awaitable[_Answer] | _Answer:
        """Ask a child; all are asked at once, so that those that do not answer cost little."""
        known = self.ports.registry.has(run.agent_type, run.run_id)
        if run.status in HARD_TERMINAL or not known:
            return None
        if not self._has_class(run):
            return ABSENT
        return self.ports.background.start(self._asked(run), name=f"ask {run.run_id}")

    def _has_class(self, run: StoredRun) -> bool:
        """Whether the child's class is registered; since when it is not is noted, and logged once.

        The next deployment may have it again, so the run waits for a while.
        """
        gone_since = run.detachment.class_gone_since if run.detachment else None
        try:
            self.ports.classes.class_of(run.agent_type)
        except LookupError:
            if gone_since is None:
                self.dispatcher.runs.class_gone(run.run_id, self.ports.clock.now_ms())
            if run.agent_type not in self._missing:
                self._missing.add(run.agent_type)
                _log.warning(_MISSING, self.ports.path, run.agent_type, CLASS_GONE_MS // 60_000)
            return False
        self._missing.discard(run.agent_type)
        if gone_since is not None:
            self.dispatcher.runs.class_gone(run.run_id, None)
        return True

    async def _asked(self, run: StoredRun) -> _Answer:
        try:
            async with self.ports.clock.timeout(CHILD_PATIENCE):
                return await self.dispatcher.child_of(run).inspect()
        except TimeoutError:
            return ABSENT
        except Exception as error:  # noqa: BLE001 - whatever the child raised, it may answer later
            self.ports.fence.check()
            self.ports.errors.report(error)
            return ABSENT

    async def _conclude(self, run: StoredRun, ending: Ending) -> None:
        with self.tasks.held(run) as live:
            counted = ending.error != CHILD_GONE and await self.tasks.collected(live)
            self.tasks.conclude(live, ending, counted=counted)

    async def _give_up(self, run: StoredRun, reason: GiveUp) -> None:
        """Stop waiting for a run: its child is cancelled, and the parent is told (AT-254).

        A run that was given up before is told of again only while that was not delivered (AT-253).
        """
        if run.status == "interrupted":
            return
        ending = interruption(reason)
        with self.tasks.held(run) as live, self.tasks.stopped_by(live):
            stopped = await self.tasks.stop(live, ending.error or reason)
            failpoint("detached.child_stopped")
            ending = replace(ending, child_still_running=not stopped)
            counted = await self.tasks.counted(live)
            sealed = self.tasks.tasks.finalizer.seal(live.feed, ending, counted=counted)
        if sealed is not None:
            self.tasks.observers.tell(sealed)
            self.tasks.deliveries.soon(sealed, "give-up")

    def _give_up_again(self, run: StoredRun) -> None:
        """Deliver that a run was given up, if that was cut off or has failed."""
        slot = run.detachment.give_up if run.detachment else Slot()
        open_slot = claimable(slot, now=self.ports.clock.now_ms())
        if run.status == "interrupted" and open_slot:
            self.tasks.deliveries.soon(run, "give-up")
