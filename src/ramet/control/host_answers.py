"""Answers an operator inside the host: reads without opening agents, cancels and clears runs."""

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from ramet.agent_tools.feature import AgentTools
from ramet.control.addresses import address_of
from ramet.control.agent_reports import Presence
from ramet.control.answers import Answers, Process
from ramet.control.reports import Cancelled, Cleared, Report, RunDetail
from ramet.control.requests import FINISHED, CancelRun, ClearRuns, Request, ShowRun
from ramet.control.run_reports import FoundRun, as_child_report
from ramet.control.stored_agents import StoredAgents
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.core.public_errors import own_words
from ramet.errors import AgentNotRegistered
from ramet.host import Host
from ramet.protocol.run_events import HARD_TERMINAL
from ramet.storage import Database

T = TypeVar("T")

CANCEL_SECONDS: Final = 2.0
"""A cancelled run gets so long to end before it is told that it has not."""
CHILD_SECONDS: Final = 5.0
"""A child that is asked for its run gets so long."""
ASLEEP: Final = "Only the child itself can tell, and it is not in memory: a look wakes nobody"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HostAgents:
    """The agents in a host's memory; see `OpenAgents` and `Presences`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._started_at = host.clock.now_ms()

    def files(self) -> Mapping[Path, AgentPath]:
        """The database files of all that are open."""
        return {
            instance.database.path: instance.path
            for instance in self._host.instances
            if isinstance(instance.database.path, Path)
        }

    def database(self, path: AgentPath) -> Database | None:
        """The database of one; None when it is not in memory."""
        return self._host.live_database(self._today(path))

    def known_as(self, path: AgentPath) -> Iterable[AgentPath]:
        """The path under today's class names and former ones; a class may be in its URL form."""
        classes = self._host.classes
        steps = ((classes.by_segment(s.class_name) or s.class_name, s.name) for s in path.steps)
        return classes.known_as(AgentPath.of(*steps))

    async def breathe(self) -> None:
        """Let the agents have their turn."""
        await self._host.clock.sleep(0)

    def presence(self, path: AgentPath) -> Presence | None:
        """An agent in memory; None for one that is not."""
        instance = self._host.instances.live(self._today(path))
        if instance is None:
            return None
        return Presence(busy=self._host.instances.busy(instance), clients=len(instance.links))

    def awake(self, path: AgentPath) -> bool:
        """Whether an agent is in memory and has started."""
        instance = self._host.instances.live(self._today(path))
        return instance is not None and instance.ready

    def process(self) -> Process:
        """This process."""
        instances = self._host.instances
        return Process(
            pid=os.getpid(),
            started_at=self._started_at,
            agents_open=len(instances),
            agents_busy=sum(instances.busy(each) is not None for each in instances),
        )

    def index(self) -> Database:
        """The host's own database."""
        return self._host.database

    def _today(self, path: AgentPath) -> AgentPath:
        return path.renamed(self._host.classes.renamed)


class HostAnswers:
    """Answers every request about the data directory of a running host."""

    def __init__(self, host: Host) -> None:
        agents = HostAgents(host)
        stored = StoredAgents(host.files, agents, host.clock)
        self._host = host
        self._agents = agents
        self._stored = stored
        self._answers = Answers(stored, agents, files=host.files, clock=host.clock)
        self._fence = Fence("the control socket")

    async def answer(self, request: Request) -> Report:
        """Answer a request.

        Raises:
            RametError: It asks for what is not there, or cannot be done.
            Exception: What an agent raised that had to be opened for it.
        """
        match request:
            case ShowRun():
                return await self._show(request)
            case CancelRun():
                return await self._cancel(request)
            case ClearRuns():
                return await self._clear(request)
            case _:
                return await self._answers.answer(request)

    async def _show(self, request: ShowRun) -> RunDetail:
        """Where a run is; a child with a store of its own is asked if that wakes nobody."""
        found = await self._answers.runs.find(request.run_id, request.agent)
        detail = self._answers.detail(found)
        if detail.child is not None:
            return detail
        if not (self._agents.awake(found.agent) and self._agents.awake(found.child)):
            return replace(detail, child_error=self._why_not(found))
        try:
            async with self._host.clock.timeout(CHILD_SECONDS):
                asked = await self._with_runs(
                    found.agent, lambda runs: runs.inspect(request.run_id)
                )
        except TimeoutError:
            return replace(detail, child_error=f"It gave no answer within {CHILD_SECONDS:g} s")
        if asked is None:
            return detail
        child = None if asked.child is None else as_child_report(asked.child)
        return replace(detail, child=child, child_error=asked.child_error)

    def _why_not(self, found: FoundRun) -> str | None:
        """Why a child is not asked of whose run nothing is stored; None when it is not there."""
        try:
            for step in found.child.steps:
                self._host.classes.name_of(step.class_name)
        except AgentNotRegistered as error:
            return own_words(error)
        return ASLEEP if self._answers.runs.only_child_tells(found) else None

    async def _cancel(self, request: CancelRun) -> Cancelled:
        found = await self._answers.runs.find(request.run_id, request.agent, rather=_can_end)
        if not _can_end(found):
            return Cancelled(run=found.report(None), asked=False)
        reason = request.reason or "cancelled by an operator"
        await self._with_runs(found.agent, lambda runs: self._ended(runs, found.run.run_id, reason))
        now = await self._answers.runs.find(request.run_id, address_of(found.agent))
        return Cancelled(run=now.report(None), asked=True)

    async def _ended(self, runs: AgentTools, run_id: str, reason: str) -> None:
        """Cancel a run and wait a little for its end, which its own task brings about."""
        await runs.cancel(run_id, reason)
        with suppress(TimeoutError):
            async with self._host.clock.timeout(CANCEL_SECONDS):
                await runs.ended(run_id)

    async def _clear(self, request: ClearRuns) -> Cleared:
        path = await self._stored.find(request.agent)
        statuses = FINISHED if request.statuses is None else request.statuses
        before = request.started_before
        older_than = None if before is None else _EPOCH + timedelta(milliseconds=before)
        removed = await self._with_runs(
            path, lambda runs: runs.clear(older_than=older_than, status=statuses)
        )
        return Cleared(agent=address_of(path), removed=removed)

    async def _with_runs(
        self, path: AgentPath, act: Callable[[AgentTools], Coroutine[object, object, T]]
    ) -> T:
        """Open an agent if need be, and do something with its runs as a task of its own."""
        instances = self._host.instances
        instance = await instances.opened(path)
        work = act(instance.runtime.agent_tools)
        return await instances.run(instance, work, name="an operator's wish", fence=self._fence)


def _can_end(found: FoundRun) -> bool:
    return found.run.status not in HARD_TERMINAL
