"""What a queue needs of its surroundings, as narrow ports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Background, ErrorHook, Events
from ramet.storage import Database

Wake: TypeAlias = Callable[[str, int | None], None]
"""Has an internal handler called at a moment, in place of the one before; None for never."""

RESUME_QUEUE = "_cf_resumeQueue"
"""The internal handler that goes on with a queue, should a crash have left something in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePorts:
    """The surroundings of the queue of one agent."""

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
    wake: Wake
    """Kept by the root of the agent; see `Schedules.wake`."""
