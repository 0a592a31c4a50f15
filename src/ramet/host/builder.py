"""Puts one instance together: database, fence, tasks, exit, ports and the user's object."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from ramet.agent.build import build_agent, check_agent_class
from ramet.agent.context import AgentContext, RootFeatures
from ramet.core.alarm import Wakeups
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Caller, Lifecycles
from ramet.host.classes import ClassTable
from ramet.host.instance import DirectExit, Instance
from ramet.host.tasks import InstanceTasks
from ramet.observability.channels import AgentEvents
from ramet.storage import Database, DataDirectory, Schema


class Neighbours(Protocol):
    """Makes the ports through which an instance reaches others."""

    def caller_for(self, path: AgentPath, fence: Fence) -> Caller:
        """Calls in the name of the instance at `path`."""
        ...

    def lifecycles_for(self, path: AgentPath, fence: Fence) -> Lifecycles:
        """Opens and stops others in the name of the instance at `path`."""
        ...

    def root_features(self, path: AgentPath) -> RootFeatures:
        """What the live root of an agent keeps for those below it."""
        ...

    async def dispatch(
        self, target: AgentPath, handler: str, arguments: tuple[object, ...]
    ) -> object:
        """Open a registered sub-agent and run one of its internal handlers."""
        ...

    def wakeups_for(self, path: AgentPath, fence: Fence) -> Wakeups:
        """The host's index of wake-ups for the root agent at `path`."""
        ...

    def live_database(self, path: AgentPath) -> Database | None:
        """The database of the agent at `path`, if it is in memory."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceBuilder:
    """What all instances of one host share."""

    classes: ClassTable
    files: DataDirectory
    clock: Clock
    ids: Ids
    options: HostOptions

    def build(self, path: AgentPath, neighbours: Neighbours) -> Instance:
        """Build an instance; it is not started.

        Raises:
            DatabaseUnusable: Its file cannot be used.
            Exception: Whatever the class's `__init__` raised.
        """
        cls = self.classes.class_of(path.leaf.class_name)
        fence = Fence(str(path))
        tasks = InstanceTasks(path, fence)
        leave = DirectExit(fence)
        database = self._open_database(path, check_agent_class(cls).ramet_schema(), fence)
        context = AgentContext(
            path=path,
            cls=cls,
            options=self.classes.options_of(cls),
            host_options=self.options,
            database=database,
            files=self.files,
            live_database=neighbours.live_database,
            root=lambda: neighbours.root_features(path),
            dispatch=neighbours.dispatch,
            wakeups=neighbours.wakeups_for(path, fence) if path.is_root else None,
            clock=self.clock,
            ids=self.ids,
            fence=fence,
            background=tasks,
            exit=leave,
            caller=neighbours.caller_for(path, fence),
            lifecycles=neighbours.lifecycles_for(path, fence),
            classes=self.classes,
            renamed=self.classes.renamed,
            events=AgentEvents(agent=path.leaf.class_name, name=path.leaf.name, clock=self.clock),
        )
        try:
            built = build_agent(context, before_init=tasks.serve)
        except BaseException:
            fence.drop("it could not be built")
            database.close()
            raise
        return Instance(
            path=path,
            fence=fence,
            database=database,
            tasks=tasks,
            exit=leave,
            built=built,
            started=asyncio.get_running_loop().create_future(),
            used_at=self.clock.monotonic(),
        )

    def _open_database(self, path: AgentPath, schema: Schema, fence: Fence) -> Database:
        for known_as in self.classes.known_as(path):
            if self.files.exists(known_as):
                return self.files.open(known_as, schema, fence=fence)
        return self.files.open(path, schema, fence=fence)
