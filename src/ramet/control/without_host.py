"""The agents of a data directory that no host serves, so that none is in memory."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ramet.control.agent_reports import Presence
from ramet.control.answers import Answers, Process
from ramet.control.stored_agents import StoredAgents
from ramet.core.clock import Clock
from ramet.core.paths import AgentPath
from ramet.storage import Database, DataDirectory

HELD_SECONDS: Final = 0.2
"""Who only looks has the directory to itself for so long, and gives it up between two looks."""
GIVEN_UP_SECONDS: Final = 0.02
"""For so long that a host that waits for it gets it."""


class NoHost:
    """Nothing is in memory; see `OpenAgents` and `Presences`. The lock of the directory is ours."""

    def __init__(self, files: DataDirectory, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._held_since = clock.monotonic()
        self._index: Database | None = None

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

    async def breathe(self) -> None:
        """Let a host that wants to start do so; raises `DataDirectoryInUse` when one does."""
        if self._clock.monotonic() - self._held_since < HELD_SECONDS:
            return
        self.close()
        self._files.release()
        await self._clock.sleep(GIVEN_UP_SECONDS)
        self._files.acquire_to_read()
        self._held_since = self._clock.monotonic()

    def presence(self, path: AgentPath) -> Presence | None:
        """None."""
        del path
        return None

    def process(self) -> Process | None:
        """None."""

    def index(self) -> Database | None:
        """What the last host has left."""
        if self._index is None:
            self._index = self._files.look_at_host()
        return self._index

    def close(self) -> None:
        """Close what was opened."""
        if self._index is not None:
            self._index.close()
            self._index = None


@contextmanager
def answers_of(files: DataDirectory, clock: Clock) -> Iterator[Answers]:
    """Answers from a directory whose lock is ours.

    Where there is much to read it is given up now and then; a host that starts meanwhile ends it,
    with `DataDirectoryInUse`.
    """
    nobody = NoHost(files, clock)
    try:
        yield Answers(StoredAgents(files, nobody, clock), nobody, files=files, clock=clock)
    finally:
        nobody.close()
