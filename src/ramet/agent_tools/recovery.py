"""Ends what an earlier instance left unfinished: by the child's word, else as `interrupted`.

First every child is asked, in order and within seconds; then those that are still at work are
followed, all at once, as long as something comes of them (AT-290 … AT-303).
"""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ramet.agent_tools.carry_out import RunTasks
from ramet.agent_tools.dispatch import Dispatcher
from ramet.agent_tools.live_run import LiveRun
from ramet.agent_tools.policy import Ending, ending_of, interruption, silence
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Inspection
from ramet.agent_tools.run_store import StoredRun
from ramet.core.clock import Clock
from ramet.protocol.run_events import ABSENT, HARD_TERMINAL, InterruptedReason

INSPECT_TIMEOUT = 2.0
"""Seconds that one child may take to say how its run is."""
CLASSIFY_TIMEOUT = 5.0
"""Seconds that all those may take together that do not answer."""

_log = logging.getLogger("ramet.agent_tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    ending: Ending
    counted: bool
    """Whether all chunks of the run have their numbers."""


@dataclass(slots=True)
class _Waiting:
    """What is left of the time for children that do not answer; those that do cost none of it."""

    clock: Clock
    left: float = CLASSIFY_TIMEOUT

    @contextmanager
    def in_vain(self) -> Iterator[None]:
        """Count the time of the block unless it ends well."""
        begun = self.clock.monotonic()
        try:
            yield
        except Exception:
            self.left -= self.clock.monotonic() - begun
            raise


@dataclass(slots=True, kw_only=True)
class Recovery:
    """Brings the awaited runs of an earlier instance to an end, in the background."""

    ports: AgentToolPorts
    dispatcher: Dispatcher
    tasks: RunTasks
    _noted: list[StoredRun] = field(default_factory=list)

    def note(self) -> None:
        """Remember what is unfinished now: runs that `on_start` begins are not meant (AT-283)."""
        self._noted = self.dispatcher.runs.unfinished_awaited()

    def begin(self) -> None:
        """Start to recover what was noted; who asks for one of those runs joins it (AT-287)."""
        noted, self._noted = self._noted, []
        lives = [live for run in noted if (live := self._claimed(run.run_id)) is not None]
        if lives:
            self.ports.background.start(self._recover(lives), name="recover runs")

    def _claimed(self, run_id: str) -> LiveRun | None:
        run = self.dispatcher.runs.get(run_id)
        in_flight = self.dispatcher.in_flight
        if run is None or run.status in HARD_TERMINAL or in_flight.get(run_id) is not None:
            return None
        live = self.dispatcher.live_again(run)
        live.child_started = True
        in_flight.add(live)
        _log.info("%s: the run %s of %s is taken up", self.ports.path, run_id, run.agent_type)
        return live

    async def _recover(self, lives: list[LiveRun]) -> None:
        begun = self.ports.clock.monotonic()
        total = int(CLASSIFY_TIMEOUT * 1000)
        self._emit("begin", runCount=len(lives), totalTimeoutMs=total)
        try:
            followed, ended = await self._sorted(lives, begun)
        except Exception as error:
            self.ports.fence.check()
            self._emit("failed", error=type(error).__name__)
            for live in lives:
                self.tasks.in_flight.forget(live)
                live.sealed.set()
                live.fail(error)
            raise
        for live in followed:
            self._follow(live)
        for live, ending, sealed in ended:
            if sealed is not None:
                await self.tasks.finalizer.tell(sealed)
            self.tasks.settle(live, ending)
        for live in followed:
            await live.sealed.wait()
            self._tell_row(live, begun)
        self._emit("complete", runCount=len(lives), elapsedMs=self._elapsed_ms(begun))

    async def _sorted(
        self, lives: list[LiveRun], begun: float
    ) -> tuple[list[LiveRun], list[tuple[LiveRun, Ending, StoredRun | None]]]:
        """Ask every child: those that are to be followed, and those whose runs are sealed now."""
        waiting = _Waiting(self.ports.clock)
        followed: list[LiveRun] = []
        ended: list[tuple[LiveRun, Ending, StoredRun | None]] = []
        for live in lives:
            verdict = await self._classified(live, waiting)
            if verdict is None:
                followed.append(live)
            else:
                ended.append((live, *await self._seal(live, verdict, begun)))
        return followed, ended

    def _follow(self, live: LiveRun) -> None:
        """Follow a child that is still at work; who asks for its run meanwhile waits with us."""
        budget = self.ports.options.agent_tool_reattach_no_progress_timeout
        self._emit(
            "reattach",
            runId=live.run_id,
            agentType=live.feed.run.agent_type,
            budgetMs=None if math.isinf(budget) else round(budget * 1000),
        )
        self.tasks.attach(live)

    async def _seal(
        self, live: LiveRun, verdict: _Ended, begun: float
    ) -> tuple[Ending, StoredRun | None]:
        ending = verdict.ending
        if ending.status == "interrupted" and live.cancel_reason is not None:
            ending = await self.tasks.cancel_child(live)
        sealed = self.tasks.finish(live, ending, counted=verdict.counted)
        self._tell_row(live, begun)
        return ending, sealed

    def _tell_row(self, live: LiveRun, begun: float) -> None:
        run = self.dispatcher.runs.get(live.run_id) or live.feed.run
        self._emit(
            "row",
            runId=run.run_id,
            agentType=run.agent_type,
            status=run.status,
            reason=run.error,
            elapsedMs=self._elapsed_ms(begun),
        )

    async def _classified(self, live: LiveRun, waiting: _Waiting) -> _Ended | None:
        """What became of a run, by its child, within the time that is left (AT-290 … AT-298).

        None when the child is at work and can be followed, or can be started now.
        """
        if waiting.left <= 0:
            self._emit("deadline", runId=live.run_id)
            return _lost("recovery-deadline")
        try:
            with waiting.in_vain():
                async with self.ports.clock.timeout(min(INSPECT_TIMEOUT, waiting.left)):
                    inspection = await live.child.inspect()
        except TimeoutError:
            return _lost("inspect-timeout")
        except Exception as error:  # noqa: BLE001 - whatever the child raised, the row must not stay open
            self.ports.fence.check()
            self.ports.errors.report(error)
            return _lost("inspect-failed")
        counted = await self._collected(live, waiting)
        ending = ending_of(inspection)
        budget = self.ports.options.agent_tool_reattach_no_progress_timeout
        if ending is None and live.child.tailable and budget > 0:
            return None
        if inspection is None and live.input is not ABSENT:
            return None
        return _Ended(ending=ending or _still_running(live, inspection), counted=counted)

    async def _collected(self, live: LiveRun, waiting: _Waiting) -> bool:
        try:
            with waiting.in_vain():
                async with self.ports.clock.timeout(min(INSPECT_TIMEOUT, waiting.left)):
                    return await self.tasks.observer.collect_what_can_be(live)
        except TimeoutError:
            return False

    def _emit(self, step: str, **payload: str | int | None) -> None:
        self.ports.events.emit(f"agent_tool:recovery:{step}", dict(payload))

    def _elapsed_ms(self, begun: float) -> int:
        return round((self.ports.clock.monotonic() - begun) * 1000)


def _lost(reason: InterruptedReason) -> _Ended:
    return _Ended(ending=interruption(reason), counted=False)


def _still_running(live: LiveRun, inspection: Inspection | None) -> Ending:
    lost = silence(tailable=live.child.tailable)
    return interruption(lost, child_still_running=None if inspection is None else True)
