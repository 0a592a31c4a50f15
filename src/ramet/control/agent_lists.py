"""Lists the agents of a data directory, with what each of them is at."""

from bisect import insort
from collections.abc import Callable
from operator import itemgetter
from typing import TypeAlias

from ramet.agent_tools.run_store import RunStore
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.control.addresses import address_of
from ramet.control.agent_reports import Presence, size_of
from ramet.control.reports import AgentLine, AgentList
from ramet.control.requests import ListAgents
from ramet.control.stored_agents import StoredAgents
from ramet.core.paths import AgentPath
from ramet.storage import Database, combined, is_current

_RUNS = combined(AGENT_TOOL_MIGRATIONS)
_Placed: TypeAlias = tuple[tuple[tuple[str, str], ...], AgentLine]


class AgentLists:
    """Answers what agents there are; opens none."""

    def __init__(
        self, agents: StoredAgents, presence: Callable[[AgentPath], Presence | None]
    ) -> None:
        self._agents = agents
        self._presence = presence

    async def listed(self, request: ListAgents, *, server_running: bool) -> AgentList:
        """A page of the agents, by their addresses."""
        enough = request.skip + request.limit + 1
        unreadable: list[str] = []
        first: list[_Placed] = []
        async for placed in self._agents.each(self._placed, unreadable=unreadable):
            insort(first, placed, key=itemgetter(0))
            del first[enough:]
        return AgentList(
            agents=[line for _, line in first[request.skip : enough - 1]],
            more=len(first) == enough,
            server_running=server_running,
            unreadable=unreadable,
        )

    def _placed(self, path: AgentPath, database: Database) -> _Placed:
        presence, file = self._presence(path), self._agents.file_of(path)
        line = AgentLine(
            agent=address_of(path),
            open=presence is not None,
            busy=None if presence is None else presence.busy,
            clients=0 if presence is None else presence.clients,
            bytes=0 if file is None else size_of(file),
            runs_under_way=_under_way(database),
        )
        return tuple((step.class_name, step.name) for step in path.steps), line


def _under_way(database: Database) -> int | None:
    return RunStore(database).count_unfinished() if is_current(database, _RUNS) else None
