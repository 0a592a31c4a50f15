"""What the edge asks of the host that keeps the agents."""

from typing import Protocol

from ramet.connections.link import ClientLink
from ramet.core.clock import Clock
from ramet.core.http import Request, Response
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import ClassNames


class RootNames(ClassNames, Protocol):
    """Knows the registered classes, and which of them are roots."""

    def is_root(self, name: str) -> bool:
        """Whether the class of that registered name can be addressed without a parent."""
        ...


class AgentRequests(Protocol):
    """Answers HTTP requests to agents."""

    async def admit(self, path: AgentPath, request: Request) -> Response | Request:
        """Ask every parent on the path: a Response refuses, a Request goes on, maybe changed."""
        ...

    async def respond(self, path: AgentPath, request: Request) -> Response:
        """Open the agent and let it answer; raises `AddressError` when it cannot be reached."""
        ...


class AgentSockets(Protocol):
    """Takes in what comes over WebSockets."""

    async def connect(self, path: AgentPath, link: ClientLink) -> None:
        """Open the agent and greet the client; raises `AddressError` when it cannot be reached."""
        ...

    def receive(self, link: ClientLink, message: str | bytes) -> None:
        """Take a client's frame; never waits, and keeps what comes before the agent is open."""
        ...

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        """Note that the client is gone."""
        ...


class AgentHost(AgentRequests, AgentSockets, Protocol):
    """The host as the edge sees it."""

    @property
    def classes(self) -> RootNames:
        """The registered classes."""
        ...

    @property
    def options(self) -> HostOptions:
        """The limits of this host."""
        ...

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def ids(self) -> Ids:
        """Its source of ids."""
        ...
