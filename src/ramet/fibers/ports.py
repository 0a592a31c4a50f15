"""What fibers need of their surroundings, as narrow ports."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ramet.core.alarm import Alarm
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Background, ErrorHook, Events
from ramet.fibers.records import InterruptedFiber
from ramet.storage import Database

RECOVER_FIBERS = "_cf_recoverFibers"
"""The internal handler by which a root has a sub-agent recover its fibers."""

Dispatch: TypeAlias = Callable[[AgentPath, str, tuple[object, ...]], Awaitable[object]]
"""Opens a sub-agent and runs one of its internal handlers; raises `SubAgentNotFound` when its
parent does not know it any more."""

FrameworkHandler: TypeAlias = Callable[[InterruptedFiber], Awaitable[bool]]
"""Takes care of a fiber of the framework itself; False when it is none of its own (FB-021)."""


class RecoveryHook(Protocol):
    """What the agent has to say of a fiber that was interrupted."""

    async def fiber_recovered(self, fiber: InterruptedFiber) -> object:
        """Run `on_fiber_recovered`; gives a `FiberResult`, None, or what is refused."""
        ...


class RootSide(Protocol):
    """What the root keeps for the fibers of all agents below it."""

    def hold(self, holder: Fence) -> Callable[[], None]:
        """Keep the root's alarm armed until the returned function is called (KA-009)."""
        ...

    def lease(self, owner: AgentPath, run_id: str) -> None:
        """Look after a sub-agent's fiber until `release` (FB-046)."""
        ...

    def release(self, owner: AgentPath, run_id: str) -> None:
        """Forget a sub-agent's fiber."""
        ...

    def lost(self, owner: AgentPath) -> None:
        """An instance is gone while its fibers ran: have them recovered before long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberPorts:
    """The surroundings of the fibers of one agent."""

    path: AgentPath
    database: Database
    clock: Clock
    ids: Ids
    fence: Fence
    background: Background
    events: Events
    errors: ErrorHook
    options: AgentOptions
    hook: RecoveryHook
    alarm: Alarm | None
    """The root's alarm; None below a root."""
    root: Callable[[], RootSide]
    """The root's side; asked only below a root, where the root is open whenever this agent is."""
    dispatch: Dispatch
    """Used only by a root."""
    handlers: tuple[FrameworkHandler, ...] = ()
