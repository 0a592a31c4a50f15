"""Options of agents and of the host: small frozen values, checked when they are built."""

import math
from dataclasses import dataclass, field, fields
from typing import Literal, Self

from ramet.errors import InvalidOptions

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often and how fast something that failed is tried again."""

    max_attempts: int = 3
    """Attempts in all, the first one included."""
    base_delay: float = 0.1
    """Seconds; the bound of the first random delay is twice this."""
    max_delay: float = 3.0
    """Seconds that no delay exceeds."""

    given: frozenset[str] = field(init=False, repr=False, compare=False)
    """The keys that were written out, and so win over those of the class."""

    def __new__(cls, **given: object) -> Self:
        """Note which keys are written out, for `over`."""
        made = object.__new__(cls)
        object.__setattr__(made, "given", frozenset(given))
        return made

    def __post_init__(self) -> None:
        if not _is_whole(self.max_attempts) or self.max_attempts < 1:
            raise InvalidOptions(
                f"max_attempts must be a whole number, 1 or more, not {self.max_attempts!r}"
            )
        for name in ("base_delay", "max_delay"):
            value = getattr(self, name)
            if not (_is_finite(value) and value > 0):
                raise InvalidOptions(f"{name} must be a positive number of seconds, not {value!r}")
        if self.base_delay > self.max_delay:
            raise InvalidOptions(
                f"base_delay {self.base_delay!r} is above max_delay {self.max_delay!r}"
            )

    def over(self, defaults: "RetryOptions") -> "RetryOptions":
        """These options with every key that was left out taken from `defaults`.

        Raises:
            InvalidOptions: They do not fit together.
        """
        return RetryOptions(
            max_attempts=self._chosen("max_attempts", defaults).max_attempts,
            base_delay=self._chosen("base_delay", defaults).base_delay,
            max_delay=self._chosen("max_delay", defaults).max_delay,
        )

    def _chosen(self, key: str, defaults: "RetryOptions") -> "RetryOptions":
        return self if key in self.given else defaults


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_NOT_INHERITED = frozenset({"name", "former_names"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Options of one agent class; keys left out come from the classes it derives from (AT-022)."""

    name: str | None = None
    """The name the class is addressed and stored under; its own name by default. Not inherited."""
    former_names: tuple[str, ...] = ()
    """Names the class had before, so that stored agents are still found (D16). Not inherited."""
    send_identity_on_connect: bool = True
    """Whether a new connection is told who it talks to."""
    keep_alive_interval: float = 30.0
    """Seconds between two signs of life while something is kept alive."""
    hung_schedule_timeout: float = 30.0
    """Seconds after which an interval callback counts as hung."""
    retry: RetryOptions = field(default_factory=RetryOptions)
    """How schedules and queue items are retried."""
    fiber_recovery_hook_timeout: float = 10.0
    """Seconds that a framework handler of an interrupted fiber may take, and that opening waits."""
    fiber_recovery_scan_deadline: float = 10.0
    """Seconds that one scan for interrupted fibers may take."""
    fiber_recovery_max_age: float = 86_400.0
    """Seconds after which an interrupted fiber that cannot be recovered is given up."""
    max_concurrent_agent_tools: float = math.inf
    """How many runs may be starting or running at once; a further one is refused."""
    agent_tool_reattach_no_progress_timeout: float = 120.0
    """Seconds without a chunk after which a re-attached run is given up."""
    agent_tool_reattach_max_window: float = math.inf
    """Seconds that re-attaching to one run may take in all."""
    detached_max_budget: float = 86_400.0
    """Seconds after which a detached run is given up."""
    detached_no_progress_budget: float = 3_600.0
    """Seconds of silence after which a detached run that has reported is given up."""
    clear_runs_with_chat: bool = False
    """Whether clearing the chat also clears its runs."""
    drill_in: Literal["refuse", "queue"] = "refuse"
    """What happens to a message that a person sends into a child while its run is under way."""

    given: frozenset[str] = field(init=False, repr=False, compare=False)
    """The keys that were written out, and so win over inherited ones."""

    def __new__(cls, **given: object) -> Self:
        """Note which keys are written out, for `over`."""
        made = object.__new__(cls)
        object.__setattr__(made, "given", frozenset(given))
        return made

    def __post_init__(self) -> None:
        if not isinstance(self.former_names, tuple):
            raise InvalidOptions(f"former_names is a tuple of names, not {self.former_names!r}")
        if not self.max_concurrent_agent_tools >= 1:
            raise InvalidOptions(
                "max_concurrent_agent_tools must be 1 or more, "
                f"not {self.max_concurrent_agent_tools!r}"
            )
        if not (_is_finite(self.keep_alive_interval) and self.keep_alive_interval > 0):
            raise InvalidOptions(
                "keep_alive_interval must be a positive number of seconds, "
                f"not {self.keep_alive_interval!r}"
            )
        for option in fields(self):
            value = getattr(self, option.name, None)
            if isinstance(value, int | float) and (math.isnan(value) or value < 0):
                raise InvalidOptions(f"{option.name} must be zero or more, not {value!r}")

    def over(self, inherited: "AgentOptions") -> "AgentOptions":
        """These options with every key that was left out taken from `inherited`."""
        chosen = {name: getattr(inherited, name) for name in inherited.given - _NOT_INHERITED}
        chosen.update({name: getattr(self, name) for name in self.given})
        return AgentOptions(**chosen)


def resolve_options(cls: type) -> AgentOptions:
    """The options of an agent class: its own over those of the classes it derives from."""
    resolved = AgentOptions()
    for base in reversed(cls.__mro__):
        own = vars(base).get("options")
        if isinstance(own, dict):
            raise InvalidOptions(
                f"options of {base.__name__} is a dict: write options = AgentOptions(…)"
            )
        if isinstance(own, AgentOptions):
            resolved = own.over(resolved)
    own = vars(cls).get("options")
    if isinstance(own, AgentOptions):
        return resolved
    return AgentOptions().over(resolved)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """Options of one host: limits that hold for all its agents together."""

    idle_timeout: float = 120.0
    """Seconds without work after which an agent may leave memory."""
    max_frame_bytes: int = 12 * MEBIBYTE
    """The largest frame a client may send; a larger one gets an error, the connection stays."""
    max_chunk_bytes: int = 4 * MEBIBYTE
    """The largest chunk a turn may stream; a larger one fails the turn."""
    outbox_bytes: int = 4 * MEBIBYTE
    """What may wait for one slow client before it is dropped, to come back and be replayed."""
    max_open_agents: int = 2_000
    """How many agents may be in memory at once before idle ones are put away."""
    replay_chunks: int = 100_000
    """How many chunks of finished runs a new connection is sent at most."""
    replay_runs: int = 1_000
    """How many finished runs a new connection is sent at most."""
    grace_period: float = 10.0
    """Seconds that running turns get on SIGTERM before they are left to recovery."""
    durability: Literal["process", "power"] = "process"
    """What a commit outlives: the death of the process, or a power cut too (slower)."""
    locking: Literal["normal", "exclusive"] = "normal"
    """Whether other processes may read the database files meanwhile."""

    def __post_init__(self) -> None:
        positive = (
            "max_frame_bytes",
            "max_chunk_bytes",
            "outbox_bytes",
            "max_open_agents",
        )
        for name in positive:
            if getattr(self, name) < 1:
                raise InvalidOptions(f"{name} must be 1 or more, not {getattr(self, name)!r}")
        for name in ("idle_timeout", "grace_period", "replay_chunks", "replay_runs"):
            if not getattr(self, name) >= 0:
                raise InvalidOptions(f"{name} must be zero or more, not {getattr(self, name)!r}")
        if self.durability not in {"process", "power"}:
            raise InvalidOptions(f"durability is 'process' or 'power', not {self.durability!r}")
        if self.locking not in {"normal", "exclusive"}:
            raise InvalidOptions(f"locking is 'normal' or 'exclusive', not {self.locking!r}")
