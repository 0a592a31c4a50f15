"""The agents of a data directory, read one by one without opening any of them."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from ramet.control.addresses import means, steps_of
from ramet.core.clock import Clock
from ramet.core.json import NotJson, loads
from ramet.core.paths import AgentPath, PathStep
from ramet.errors import AgentNotFound, DatabaseUnusable, StorageError
from ramet.storage import Database, DataDirectory, KeyValue, combined, is_current
from ramet.storage.files import IDENTITY_KEY
from ramet.sub_agents.registry import SUB_AGENT_MIGRATIONS, SubAgentInfo, SubAgentRegistry

T = TypeVar("T")

BREATH_SECONDS = 0.005
"""Others get their turn after so much reading."""
_REGISTRY = combined(SUB_AGENT_MIGRATIONS)


class OpenAgents(Protocol):
    """The agents in memory, whose files only they may touch."""

    def files(self) -> Mapping[Path, AgentPath]:
        """Their database files."""
        ...

    def database(self, path: AgentPath) -> Database | None:
        """The database of one; None when it is not in memory."""
        ...

    def known_as(self, path: AgentPath) -> Iterable[AgentPath]:
        """The paths under which an agent may be stored, by what its classes are and were called."""
        ...

    async def breathe(self) -> None:
        """Let others have their turn; no file that was looked at is open."""
        ...


class StoredAgents:
    """Reads the databases of agents: through their own connections, or the files of closed ones.

    What is read of one agent is read at once: no file is open while others get their turn.
    """

    def __init__(self, files: DataDirectory, open_agents: OpenAgents, clock: Clock) -> None:
        self._files = files
        self._open = open_agents
        self._clock = clock
        self._breathed = clock.monotonic()

    def file_of(self, path: AgentPath) -> Path | None:
        """Where an agent is stored; None when it is not."""
        known_as = [path, *self._open.known_as(path)]
        found = next((each for each in known_as if self._files.exists(each)), None)
        return None if found is None else self._files.file_of(found)

    @contextmanager
    def reading(self, path: AgentPath) -> Iterator[Database | None]:
        """An agent's database for the length of a block that does not wait; None without one."""
        live = self._open.database(path)
        if live is not None:
            yield live
            return
        file = self.file_of(path)
        if file is None:
            yield None
            return
        stored = self._files.look_at(file)
        try:
            yield stored
        finally:
            stored.close()

    async def find(self, address: str) -> AgentPath:
        """The stored agent that an address names.

        Raises:
            InvalidArguments: It is no address.
            AgentNotFound: There is no such agent.
        """
        first, *others = steps_of(address)
        path = await self._root(first)
        for step in others:
            path = None if path is None else self._below(path, step)
        if path is None or self.file_of(path) is None:
            raise AgentNotFound(
                f"There is no agent {address!r} in {self._files.path.absolute()}; "
                "`ramet inspect --all` lists those there are"
            )
        return path

    async def each(
        self, read: Callable[[AgentPath, Database], T], *, unreadable: list[str]
    ) -> AsyncIterator[T]:
        """What `read` finds in each agent, a parent before those below it.

        Why an agent could not be looked at is added to `unreadable`.
        """
        known = self._open.files()
        for file in self._files.roots():
            pending: list[AgentPath | Path] = [known.get(file) or file]
            while pending:
                try:
                    with self._looking_at(pending.pop()) as looked:
                        if looked is None:
                            continue
                        path, database = looked
                        below = self.sub_agents(database)
                        pending.extend(path.child(it.class_name, it.name) for it in below[::-1])
                        found = read(path, database)
                except StorageError as error:
                    unreadable.append(str(error))
                    continue
                yield found
                if await self.breathe():
                    known = self._open.files()

    def sub_agents(self, database: Database) -> list[SubAgentInfo]:
        """The agents right below the one whose database this is."""
        if not is_current(database, _REGISTRY):
            return []
        return self.registry(database).list()

    def registry(self, database: Database) -> SubAgentRegistry:
        """Which agents are right below the one whose database this is."""
        return SubAgentRegistry(database, self._clock)

    async def counts(self) -> tuple[int, int]:
        """How many root agents and how many sub-agents are on disk."""
        counted = [0, 0]
        for index, files in enumerate((self._files.roots(), self._files.sub_agents())):
            for _ in files:
                counted[index] += 1
                await self.breathe()
        return counted[0], counted[1]

    async def breathe(self) -> bool:
        """Let others have their turn now and then; whether they had it."""
        if self._clock.monotonic() - self._breathed < BREATH_SECONDS:
            return False
        await self._open.breathe()
        self._breathed = self._clock.monotonic()
        return True

    @contextmanager
    def _looking_at(self, where: AgentPath | Path) -> Iterator[tuple[AgentPath, Database] | None]:
        """An agent with its database, by its path or by its file; None when it is gone."""
        if isinstance(where, AgentPath):
            with self.reading(where) as database:
                yield None if database is None else (where, database)
        elif where.exists():
            stored = self._files.look_at(where)
            try:
                yield _owner(stored), stored
            finally:
                stored.close()
        else:
            yield None

    async def _root(self, step: PathStep) -> AgentPath | None:
        named = AgentPath((step,))
        for path in (named, *self._open.known_as(named)):
            if self._files.exists(path):
                return path
        known = self._open.files()
        for file in self._files.roots():
            with suppress(StorageError), self._looking_at(known.get(file) or file) as looked:
                if looked is not None and _is(step, looked[0]):
                    return looked[0]
            if await self.breathe():
                known = self._open.files()
        return None

    def _below(self, path: AgentPath, step: PathStep) -> AgentPath | None:
        with self.reading(path) as database:
            below = [] if database is None else self.sub_agents(database)
        for each in below:
            if means(step, class_name=each.class_name, name=each.name):
                return path.child(each.class_name, each.name)
        return None


def _is(step: PathStep, root: AgentPath) -> bool:
    return means(step, class_name=root.leaf.class_name, name=root.leaf.name)


def _owner(database: Database) -> AgentPath:
    """Whose a database is."""
    if not database.has_table("cf_agents_state"):
        raise DatabaseUnusable(f"The database {database.path} is not one of an agent")
    try:
        return AgentPath.from_json(loads(KeyValue(database).get(IDENTITY_KEY) or ""))
    except (NotJson, ValueError) as error:
        raise DatabaseUnusable(f"The database {database.path} does not say whose it is") from error
