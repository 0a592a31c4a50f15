"""What an instance is given by whoever hosts it: one record of narrow ports."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ramet.core.alarm import Wakeups
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions, HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Background, Caller, ClassNames, Exit, Lifecycles
from ramet.fibers.ports import RootSide as FiberRootSide
from ramet.observability.channels import AgentEvents
from ramet.schedules.ports import RootSide as ScheduleRootSide
from ramet.storage import Database, DataDirectory


class RootFeatures(Protocol):
    """What a root keeps for all agents below it."""

    @property
    def schedule_side(self) -> ScheduleRootSide:
        """Their schedules."""
        ...

    @property
    def fiber_side(self) -> FiberRootSide:
        """Their fibers and keep-alives."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """The surroundings of one instance."""

    path: AgentPath
    cls: type
    """The user's class."""
    options: AgentOptions
    host_options: HostOptions
    database: Database
    files: DataDirectory
    live_database: Callable[[AgentPath], Database | None]
    """The database of an agent of the same root that is in memory, to read what it has stored."""
    clock: Clock
    ids: Ids
    fence: Fence
    """Down once the instance is gone; the database, the exit and outgoing calls check it."""
    background: Background
    exit: Exit
    caller: Caller
    lifecycles: Lifecycles
    classes: ClassNames
    renamed: Mapping[str, str]
    """The names that registered classes had before, each with the name of today."""
    root: Callable[[], RootFeatures]
    """The root of this agent, which is open whenever this agent is; for a root itself."""
    dispatch: Callable[[AgentPath, str, tuple[object, ...]], Awaitable[object]]
    """Runs an internal handler of an agent of the same root; see `schedules.ports.Dispatch`."""
    wakeups: Wakeups | None
    """The host's index of wake-ups; None for a sub-agent, whose root has the one alarm."""
    events: AgentEvents
