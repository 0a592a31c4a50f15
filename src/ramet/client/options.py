"""What can be set about a client: time-outs, reconnecting, limits."""

import math
from dataclasses import dataclass, field

from ramet.core.clock import Clock, SystemClock
from ramet.core.ids import Ids
from ramet.errors import InvalidOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How a client connects, waits and gives up."""

    prefix: str = "agents"
    """What the server puts before the agents in its URLs."""
    connect_timeout: float = 10.0
    """Seconds for opening a socket, and for the server to say who was reached."""
    wait_for_identity: bool = True
    """Whether `connect` waits for the server to say who was reached. Agents that send no protocol
    frames to this client (`should_send_protocol_messages`) never say it."""
    call_timeout: float = 30.0
    """Seconds that a call waits for its answer; infinity for ever."""
    first_delay: float = 0.5
    """Seconds before the first attempt to reconnect; each next one waits 1.5 times as long."""
    max_delay: float = 10.0
    """Seconds that an attempt waits at most."""
    max_retries: float = 10
    """Attempts in a row that may fail before the client gives up; infinity for never."""
    min_uptime: float = 5.0
    """Seconds after which a connection counts as good, and attempts are counted anew."""
    max_frame_bytes: int = 64 * 2**20
    """The largest frame that is taken from the server."""
    max_buffered_bytes: int = 16 * 2**20
    """How much of one answer or stream is kept for a reader that is slower than the server."""
    clock: Clock = field(default_factory=SystemClock)
    """Time; tests give one that they move."""
    ids: Ids = field(default_factory=Ids)
    """Makes ids and jitter; tests give seeded ones."""

    def __post_init__(self) -> None:
        """Refuse what cannot be waited for.

        Raises:
            InvalidOptions: A time or a number is negative, zero where it cannot be, or NaN.
        """
        for name in ("connect_timeout", "call_timeout", "max_frame_bytes", "max_buffered_bytes"):
            if not getattr(self, name) > 0:
                raise InvalidOptions(f"{name} must be positive, not {getattr(self, name)!r}")
        for name in ("first_delay", "max_delay", "max_retries", "min_uptime"):
            if not getattr(self, name) >= 0:
                raise InvalidOptions(f"{name} must not be negative, not {getattr(self, name)!r}")

    def seconds(self, timeout: float | None) -> float | None:
        """How long a call waits: what it says, else the default; None is for ever."""
        chosen = self.call_timeout if timeout is None else timeout
        return None if math.isinf(chosen) else chosen
