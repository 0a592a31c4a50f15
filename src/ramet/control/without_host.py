"""The agents of a data directory that no host serves, so that none is in memory."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ramet.control.agent_reports import Presence
from ramet.control.answers import Answers, Process
from ramet.control.stored_agents import StoredAgents
from ramet.core.clock import Clock
from ramet.core.paths import AgentPath
from ramet.storage import Database, DataDirectory


class NoHost:
    """Nothing is in memory; see `OpenAgents` and `Presences`."""

    def __init__(self, index: Database | None) -> None:
        self._index = index

    def files(self) -> Mapping[Path, AgentPath]:
        """None."""
        return {}

    def database(self, path: AgentPath) -> Database | None:
        """None."""
        del path
        return None

    def known_as(self, path: AgentPath) -> Iterable[AgentPath]:
        """Only as what it was stored: without the program nobody knows what its classes were."""
        return (path,)

    def presence(self, path: AgentPath) -> Presence | None:
        """None."""
        del path
        return None

    def process(self) -> Process | None:
        """None."""

    def index(self) -> Database | None:
        """What the last host has left."""
        return self._index


@contextmanager
def answers_of(files: DataDirectory, clock: Clock) -> Iterator[Answers]:
    """Answers from a directory whose lock is ours for the length of the block."""
    index = files.look_at_host()
    try:
        nobody = NoHost(index)
        agents = StoredAgents(files, nobody, clock)
        yield Answers(agents, nobody, files=files, clock=clock)
    finally:
        if index is not None:
            index.close()
