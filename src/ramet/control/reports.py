"""What an operator is told, as records that travel as JSON; all moments are epoch milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ramet.agent_tools.records import Milestone, Progress
from ramet.core.json import JsonValue
from ramet.protocol.run_events import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run as its parent keeps it."""

    agent: str
    """The address of the parent."""
    run_id: str
    agent_type: str
    display: JsonValue
    """What clients show it by; its `name` is the name of the run."""
    status: RunStatus
    detached: bool
    started_at: int
    completed_at: int | None
    parent_tool_call_id: str | None
    input_preview: JsonValue
    summary: str | None
    error: str | None
    reason: str | None
    """Why it was interrupted."""
    child_still_running: bool | None
    progress: Progress | None
    """How far it is, when it is under way and a chat agent works for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """Runs, the newest first."""

    runs: Sequence[RunReport]
    more: bool
    """Whether there are older ones."""
    server_running: bool
    """Whether anybody works for those that are under way."""
    unreadable: Sequence[str] = ()
    """Why some agents could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """What the child of a run knows of it."""

    status: str
    started_at: int
    completed_at: int | None
    progress: Progress | None
    milestones: Sequence[Milestone]
    summary: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """Where one run is."""

    run: RunReport
    output: JsonValue
    child_agent: str
    """The address of the child."""
    child_open: bool
    """Whether it is in memory."""
    child_busy: str | None
    """With what."""
    child: ChildReport | None
    """None when it knows nothing of the run, or could not be asked."""
    child_error: str | None
    """Why it could not be asked."""
    server_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """What became of a wish to end a run."""

    run: RunReport
    asked: bool
    """Whether its child was told to stop; False when it had ended before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many runs were removed."""

    agent: str
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearable:
    """How many runs would be removed."""

    agent: str
    would_remove: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Some:
    """How many there are of a kind, and the first of them."""

    count: int
    first: Sequence[Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What one agent is, has and waits for."""

    agent: str
    """Its address."""
    class_name: str
    name: str
    open: bool
    """Whether it is in memory."""
    busy: str | None
    """With what: an agent that is busy stays in memory."""
    clients: int
    file: str
    bytes: int
    """Of its database, the write-ahead log included; not of the agents below it."""
    schema: Mapping[str, int]
    """The version of each part of the database."""
    next_wakeup: int | None
    """When it is to be opened at the latest; of a sub-agent, when its next schedule is due."""
    schedules: Some | None
    """None where the tables are of an older version of ramet, as in the ones below."""
    queue: Some | None
    fibers: Some | None
    submissions: Some | None
    """None, too, for agents that take none."""
    runs: Mapping[str, int] | None
    """How many of each status."""
    sub_agents: Some | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLine:
    """One agent among all."""

    agent: str
    """Its address."""
    open: bool
    """Whether it is in memory."""
    busy: str | None
    clients: int
    bytes: int
    """Of its database, as in `AgentReport`."""
    runs_under_way: int | None
    """None where the tables are of an older version of ramet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """Agents by their addresses."""

    agents: Sequence[AgentLine]
    more: bool
    """Whether others follow."""
    server_running: bool
    unreadable: Sequence[str] = ()
    """Why some agents could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """The process that serves a data directory, and how much is in it."""

    running: bool
    data: str
    version: str
    """Of the host that answers; of the command where none does."""
    pid: int | None
    started_at: int | None
    agents_open: int
    agents_busy: int
    root_agents: int
    """On disk."""
    sub_agents: int
    """On disk."""
    wakeups_due: int
    next_wakeup: int | None


Report = (
    RunList | RunDetail | Cancelled | Cleared | Clearable | AgentReport | AgentList | HostReport
)
