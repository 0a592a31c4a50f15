"""Answers what only has to be read, whether a host runs or not."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from ramet.control.addresses import address_of
from ramet.control.agent_lists import AgentLists
from ramet.control.agent_reports import AgentReports, Presence
from ramet.control.reports import AgentReport, HostReport, Report, RunDetail
from ramet.control.requests import (
    CountClearable,
    InspectAgent,
    InspectHost,
    ListAgents,
    ListRuns,
    Reading,
    ShowRun,
)
from ramet.control.run_reports import FoundRun, RunReports, plain
from ramet.control.stored_agents import StoredAgents
from ramet.core.clock import Clock
from ramet.core.paths import AgentPath
from ramet.host.schema import SCHEMA
from ramet.host.wakeups import StoredWakeups
from ramet.storage import Database, DataDirectory, is_current


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The host that answers."""

    pid: int
    started_at: int
    agents_open: int
    agents_busy: int


class Presences(Protocol):
    """Which agents are in memory, and in which process."""

    def presence(self, path: AgentPath) -> Presence | None:
        """An agent in memory; None for one that is not."""
        ...

    def process(self) -> Process | None:
        """The host; None when none runs."""
        ...

    def index(self) -> Database | None:
        """The host's own database; None when there is none."""
        ...


class Answers:
    """Answers what is asked about a data directory; opens and changes nothing."""

    def __init__(
        self, agents: StoredAgents, presences: Presences, *, files: DataDirectory, clock: Clock
    ) -> None:
        self.runs = RunReports(agents)
        self._agents = agents
        self._presences = presences
        self._files = files
        self._clock = clock
        self._reports = AgentReports(agents)
        self._lists = AgentLists(agents, presences.presence)

    async def answer(self, request: Reading) -> Report:
        """Answer a request.

        Raises:
            RametError: It asks for what is not there, or cannot be read.
        """
        match request:
            case ListRuns():
                return await self.runs.listed(request, server_running=self._served)
            case ShowRun():
                return self.detail(await self.runs.find(request.run_id, request.agent))
            case CountClearable():
                return await self.runs.clearable(request)
            case ListAgents():
                return await self._lists.listed(request, server_running=self._served)
            case InspectAgent():
                return await self._agent(request)
            case InspectHost():
                return await self._host()

    def detail(self, found: FoundRun) -> RunDetail:
        """Where a run is, as far as it is stored."""
        presence, child = self._presences.presence(found.child), self.runs.child(found)
        return RunDetail(
            run=found.report(None if child is None else child.progress),
            output=plain(found.run.output),
            child_agent=address_of(found.child),
            child_open=presence is not None,
            child_busy=None if presence is None else presence.busy,
            child=child,
            child_error=None,
            server_running=self._served,
        )

    @property
    def _served(self) -> bool:
        return self._presences.process() is not None

    async def _agent(self, request: InspectAgent) -> AgentReport:
        path = await self._agents.find(request.agent)
        index = self._wakeups()
        return self._reports.of(
            path,
            self._presences.presence(path),
            next_wakeup=None if index is None else index.of(path.root),
        )

    async def _host(self) -> HostReport:
        process, index = self._presences.process(), self._wakeups()
        due = 0 if index is None else index.count_due(self._clock.now_ms())
        earliest = None if index is None else index.earliest()
        roots, sub_agents = await self._agents.counts()
        return HostReport(
            running=process is not None,
            data=str(self._files.path.absolute()),
            version=own_version(),
            pid=None if process is None else process.pid,
            started_at=None if process is None else process.started_at,
            agents_open=0 if process is None else process.agents_open,
            agents_busy=0 if process is None else process.agents_busy,
            root_agents=roots,
            sub_agents=sub_agents,
            wakeups_due=due,
            next_wakeup=earliest,
        )

    def _wakeups(self) -> StoredWakeups | None:
        index = self._presences.index()
        known = index is not None and is_current(index, SCHEMA)
        return StoredWakeups(index) if index is not None and known else None


def own_version() -> str:
    """The version of this ramet."""
    try:
        return version("ramet")
    except PackageNotFoundError:
        return "unknown"
