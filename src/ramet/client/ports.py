"""What the client asks of a socket, and of whoever opens one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How a connection ended."""

    code: int
    """The WebSocket close code; 1006 when the other side just went."""
    reason: str = ""
    ours: bool = False
    """Whether this side closed it, over a frame that it could not take."""


class SocketClosed(Exception):
    """The socket is closed: nothing more comes, nothing more can be sent."""

    def __init__(self, closing: Closing) -> None:
        super().__init__(closing.code, closing.reason)
        self.closing = closing


class Unreachable(Exception):
    """No socket could be opened; it may go better later."""


class Rejected(Exception):
    """The server does not want this connection, or is none of agents; it will not change."""


class Socket(Protocol):
    """An open WebSocket."""

    async def send(self, text: str) -> None:
        """Send a text frame; frames keep the order of the calls. Raises SocketClosed."""
        ...

    async def receive(self) -> str | bytes:
        """The next frame; raises SocketClosed."""
        ...

    async def close(self) -> None:
        """Close normally; harmless when it is closed."""
        ...


class Opener(Protocol):
    """Opens sockets."""

    async def open(self, url: str, headers: Mapping[str, str]) -> Socket:
        """Open one; raises Unreachable or Rejected."""
        ...
