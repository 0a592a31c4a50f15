"""What agent-tool runs need of their surroundings, as narrow ports."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ramet.agent_tools.records import Progress, RunInfo, RunResult, StoredChunk
from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.ids import Ids
from ramet.core.options import AgentOptions, HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Background, Caller, ClassNames, ErrorHook, Events, Lifecycles
from ramet.storage import Database


class RunHooks(Protocol):
    """The parent's own code around runs."""

    @property
    def filters_views(self) -> bool:
        """Whether `can_view` must be asked at all."""
        ...

    async def agent_tool_started(self, run: RunInfo) -> None:
        """Run `on_agent_tool_start`; what it raises ends the run."""
        ...

    async def agent_tool_finished(self, run: RunInfo, result: RunResult[object]) -> None:
        """Run `on_agent_tool_finish`; what it raises changes nothing of the run (QK-011)."""
        ...

    def agent_tool_progress(self, run: RunInfo, progress: Progress) -> None:
        """Start `on_progress` and return at once; never raises (AT-209)."""
        ...

    def can_view(self, connection: Connection, run: RunInfo) -> bool:
        """Whether a client may see the frames of a run."""
        ...


class ChildRegistry(Protocol):
    """The sub-agents that exist below this agent."""

    def add(self, class_name: str, name: str) -> object:
        """Register a child; part of the transaction under way; harmless when it is there."""
        ...

    def remove(self, class_name: str, name: str) -> object:
        """Forget a child."""
        ...

    def has(self, class_name: str, name: str) -> bool:
        """Whether a child is registered."""
        ...


class ChunkReader(Protocol):
    """Reads what a child has stored of a run at once, without waiting for the child."""

    def read(
        self, path: AgentPath, run_id: str, *, after: int, limit: int
    ) -> Sequence[StoredChunk] | None:
        """The next chunks after an index, in order: at most `limit`, some tens of KiB.

        None when the child cannot be read so: it is then opened and asked, which takes a moment.
        """
        ...


def _outside_a_turn() -> str | None:
    return None


def _no_calls() -> Collection[str]:
    return ()


def _not_counted() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolPorts:
    """The surroundings of the runs of one parent."""

    path: AgentPath
    database: Database
    clock: Clock
    ids: Ids
    fence: Fence
    background: Background
    clients: ClientSet
    caller: Caller
    lifecycles: Lifecycles
    classes: ClassNames
    registry: ChildRegistry
    hooks: RunHooks
    errors: ErrorHook
    events: Events
    options: AgentOptions
    host_options: HostOptions
    chunks: ChunkReader
    turn_root: Callable[[], str | None] = _outside_a_turn
    """The recovery root of the turn that the running code belongs to (D5)."""
    transcript_calls: Callable[[], Collection[str]] = _no_calls
    """The ids of the tool calls in the transcript; their runs are replayed first (D22)."""
    forwarded: Callable[[], object] = _not_counted
    """Told of each item that a child gave: the parent's own turn moves then (AT-228)."""
