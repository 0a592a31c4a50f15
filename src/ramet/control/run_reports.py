"""Lists and shows the runs of agents from what they and their children have stored."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from ramet.agent_tools.records import Inspection, Progress
from ramet.agent_tools.run_store import RunStore
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.agent_tools.stored_run import StoredRun
from ramet.chat.child_runs import ChildRunStore
from ramet.chat.schema import CHAT_MIGRATIONS
from ramet.control.addresses import address_of
from ramet.control.reports import ChildReport, Clearable, RunList, RunReport
from ramet.control.requests import FINISHED, UNDER_WAY, CountClearable, ListRuns
from ramet.control.stored_agents import StoredAgents
from ramet.core.json import JsonValue
from ramet.core.paths import AgentPath
from ramet.errors import DatabaseUnusable, RunNotFound, StorageError
from ramet.protocol.run_events import Absent
from ramet.storage import Database, combined, is_current

_RUNS = combined(AGENT_TOOL_MIGRATIONS)
_CHAT = combined(CHAT_MIGRATIONS)
_SEE = "`ramet runs list` shows those there are"
_OUTDATED = "The database {file} of {agent} is of an older ramet: open the agent once to update it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run and whose it is."""

    agent: AgentPath
    run: StoredRun

    @property
    def child(self) -> AgentPath:
        """The agent that works for it."""
        return self.agent.child(self.run.agent_type, self.run.run_id)

    @property
    def under_way(self) -> bool:
        """Whether it has not ended."""
        return self.run.status in UNDER_WAY

    def report(self, progress: Progress | None) -> RunReport:
        """What is told of it; `progress` as far as its child has stored any."""
        run = self.run
        return RunReport(
            agent=address_of(self.agent),
            run_id=run.run_id,
            agent_type=run.agent_type,
            display=run.display,
            status=run.status,
            detached=run.detached,
            started_at=run.started_at,
            completed_at=run.completed_at,
            parent_tool_call_id=run.parent_tool_call_id,
            input_preview=plain(run.input_preview),
            summary=run.summary,
            error=run.error,
            reason=run.reason,
            child_still_running=run.child_still_running,
            progress=progress if self.under_way else None,
        )


class RunReports:
    """Answers what runs there are and where one is; opens no agent."""

    def __init__(self, agents: StoredAgents) -> None:
        self._agents = agents

    async def listed(self, request: ListRuns, *, server_running: bool) -> RunList:
        """A page of the runs, the newest first."""
        enough = request.skip + request.limit + 1
        read = partial(_newest, limit=enough, statuses=request.statuses)
        unreadable: list[str] = []
        newest: list[FoundRun] = []
        if request.agent is not None:
            path = await self._agents.find(request.agent)
            with self._agents.reading(path) as database:
                newest = [] if database is None else read(path, database)
        else:
            async for page in self._agents.each(read, unreadable=unreadable):
                merged = heapq.merge(newest, page, key=lambda found: found.run.age, reverse=True)
                newest = list(islice(merged, enough))
        reports = []
        for found in newest[request.skip : enough - 1]:
            reports.append(found.report(self._progress(found, unreadable)))
            await self._agents.breathe()
        return RunList(
            runs=reports,
            more=len(newest) == enough,
            server_running=server_running,
            unreadable=unreadable,
        )

    async def clearable(self, request: CountClearable) -> Clearable:
        """How many runs would be cleared."""
        path = await self._agents.find(request.agent)
        statuses = FINISHED if request.statuses is None else request.statuses
        with self._agents.reading(path) as database:
            runs = (
                []
                if database is None
                else _runs_of(path, database).matching(
                    statuses=statuses, started_before=request.started_before
                )
            )
        return Clearable(agent=address_of(path), would_remove=len(runs))

    async def find(
        self,
        run_id: str,
        agent: str | None,
        *,
        rather: Callable[[FoundRun], bool] = lambda _: False,
    ) -> FoundRun:
        """The run of an id, of one agent or of whichever has it.

        Where several agents have one, it is the only one that `rather` is true of.

        Raises:
            RunNotFound: There is none, or several agents have one.
            AgentNotFound: There is no such agent.
        """
        if agent is not None:
            path = await self._agents.find(agent)
            with self._agents.reading(path) as database:
                found = None if database is None else _run(path, database, run_id=run_id)
            if found is None:
                raise RunNotFound(f"{address_of(path)} has no run {run_id!r}; {_SEE}")
            return found
        unreadable: list[str] = []
        looks = self._agents.each(partial(_run, run_id=run_id), unreadable=unreadable)
        several = [found async for found in looks if found is not None]
        several = [found for found in several if rather(found)] or several
        if len(several) == 1:
            return several[0]
        if several:
            owners = ", ".join(sorted(address_of(found.agent) for found in several))
            raise RunNotFound(
                f"Several agents have a run {run_id!r}: say with --agent which of {owners}"
            )
        missed = f"; {len(unreadable)} cannot be read: {unreadable[0]}" if unreadable else ""
        raise RunNotFound(f"No agent has a run {run_id!r}; {_SEE}{missed}")

    def only_child_tells(self, found: FoundRun) -> bool:
        """Whether a child is stored that keeps what it knows of its run in a way of its own."""
        with self._agents.reading(found.child) as database:
            return database is not None and not is_current(database, _CHAT)

    def child(self, found: FoundRun) -> ChildReport | None:
        """What a chat agent has stored of the run it works for; None for children of other kinds.

        None, too, when it has not begun.
        """
        with self._agents.reading(found.child) as database:
            if database is None or not is_current(database, _CHAT):
                return None
            store, run_id = ChildRunStore(database), found.run.run_id
            stored = store.get(run_id)
            if stored is None:
                return None
            return ChildReport(
                status=stored.status,
                started_at=stored.started_at,
                completed_at=stored.completed_at,
                progress=stored.progress,
                milestones=[placed.milestone for placed in store.milestones(run_id)],
                summary=stored.summary,
                error=stored.error,
            )

    def _progress(self, found: FoundRun, unreadable: list[str]) -> Progress | None:
        """How far a run under way is; what cannot be read is added to `unreadable`."""
        if not found.under_way:
            return None
        try:
            with self._agents.reading(found.child) as database:
                if database is None or not is_current(database, _CHAT):
                    return None
                stored = ChildRunStore(database).get(found.run.run_id)
                return None if stored is None else stored.progress
        except StorageError as error:
            if str(error) not in unreadable:
                unreadable.append(str(error))
            return None


def as_child_report(inspection: Inspection) -> ChildReport:
    """What is told of what a child says."""
    return ChildReport(
        status=inspection.status,
        started_at=inspection.started_at,
        completed_at=inspection.completed_at,
        progress=inspection.progress,
        milestones=inspection.milestones,
        summary=inspection.summary,
        error=inspection.error,
    )


def plain(value: JsonValue | Absent) -> JsonValue:
    """A stored value as JSON, where nothing and null are one."""
    return None if isinstance(value, Absent) else value


def _newest(
    path: AgentPath, database: Database, *, limit: int, statuses: Sequence[str] | None
) -> list[FoundRun]:
    runs = _runs_of(path, database).newest(limit, statuses)
    return [FoundRun(agent=path, run=run) for run in runs]


def _run(path: AgentPath, database: Database, *, run_id: str) -> FoundRun | None:
    run = _runs_of(path, database).get(run_id)
    return None if run is None else FoundRun(agent=path, run=run)


def _runs_of(path: AgentPath, database: Database) -> RunStore:
    if not is_current(database, _RUNS):
        raise DatabaseUnusable(_OUTDATED.format(file=database.path, agent=address_of(path)))
    return RunStore(database)
