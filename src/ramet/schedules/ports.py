"""What schedules need of their surroundings, as narrow ports."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ramet.core.alarm import Alarm
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Background, ErrorHook, Events
from ramet.schedules.store import NewSchedule, StoredSchedule
from ramet.storage import Database

Dispatch: TypeAlias = Callable[[AgentPath, str, tuple[object, ...]], Awaitable[object]]
"""Opens a sub-agent and runs one of its internal handlers; raises `SubAgentNotFound` when its
parent does not know it any more, and whatever else keeps the handler from running to its end."""

EXECUTE_SCHEDULE = "_cf_executeSchedule"
"""The internal handler of a sub-agent that carries out one of its rows."""


class RootSide(Protocol):
    """The schedules of a whole root agent, where all its sub-agents' rows are."""

    def add(self, new: NewSchedule) -> tuple[StoredSchedule, bool]:
        """Store a schedule, or find one that is alike; says whether it was stored."""
        ...

    def of_owner(self, owner: AgentPath | None, id: str | None) -> list[StoredSchedule]:
        """The schedules of an owner, the earliest first, or only the one of an id."""
        ...

    def remove(self, id: str, owner: AgentPath | None) -> StoredSchedule | None:
        """Remove one of an owner's schedules and return what it was."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePorts:
    """The surroundings of the schedules of one agent."""

    path: AgentPath
    database: Database
    clock: Clock
    ids: Ids
    fence: Fence
    background: Background
    events: Events
    errors: ErrorHook
    options: AgentOptions
    agent: object
    """The object whose methods are called."""
    alarm: Alarm | None
    """The root's alarm; None below a root."""
    root: Callable[[], RootSide]
    """The root's side; asked only below a root, where the root is open whenever this agent is."""
    dispatch: Dispatch
    """Used only by a root."""
    internal: Mapping[str, Callable[..., Awaitable[object]]]
    """Handlers by stored name that users cannot name (D16)."""
