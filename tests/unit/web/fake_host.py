"""A host for tests of the edge alone: it keeps what it is handed and answers as it is told to."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ramet.connections.link import ClientLink
from ramet.core.clock import Clock, SystemClock
from ramet.core.http import Request, Response
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.errors import AgentNotRegistered
from ramet.protocol.names import kebab


class ChatAgent:
    """A root."""


class Researcher:
    """A class for sub-agents."""


class Planner:
    """Another class for sub-agents."""


@dataclass(frozen=True)
class FakeClasses:
    """The registered classes of the tests."""

    roots: tuple[type, ...] = (ChatAgent,)
    subs: tuple[type, ...] = (Researcher, Planner)

    def name_of(self, cls: type | str) -> str:
        return self.class_of(cls if isinstance(cls, str) else cls.__name__).__name__

    def class_of(self, name: str) -> type:
        for cls in (*self.roots, *self.subs):
            if cls.__name__ == name:
                return cls
        raise AgentNotRegistered(f"The agent class {name!r} is not registered")

    def by_segment(self, segment: str) -> str | None:
        names = [cls.__name__ for cls in (*self.roots, *self.subs)]
        return next((name for name in names if kebab(name) == segment), None)

    def is_root(self, name: str) -> bool:
        return name in {cls.__name__ for cls in self.roots}


async def describe(path: AgentPath, request: Request) -> Response:
    """Answer with who was asked for what."""
    body = (await request.body()).decode()
    return Response(f"{path} {request.method} {request.path} {body}".rstrip())


async def let_pass(path: AgentPath, request: Request) -> Response | Request:
    """Admit everybody."""
    return request


async def greet(path: AgentPath, link: ClientLink) -> None:
    """Tell the client who it has reached."""
    link.outbox.push(f"hello from {path}")


@dataclass(eq=False)
class FakeHost:
    """Keeps the links, frames and departures that it is handed."""

    responding: Callable[[AgentPath, Request], Awaitable[Response]] = describe
    admitting: Callable[[AgentPath, Request], Awaitable[Response | Request]] = let_pass
    greeting: Callable[[AgentPath, ClientLink], Awaitable[None]] = greet
    receiving: Callable[[ClientLink, str | bytes], object] = lambda link, message: None
    classes: FakeClasses = FakeClasses()
    options: HostOptions = field(default_factory=HostOptions)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=Ids)
    links: list[ClientLink] = field(default_factory=list)
    received: list[str | bytes] = field(default_factory=list)
    gone: list[tuple[int, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, path: AgentPath, request: Request) -> Response:
        return await self.responding(path, request)

    async def admit(self, path: AgentPath, request: Request) -> Response | Request:
        return await self.admitting(path, request)

    async def connect(self, path: AgentPath, link: ClientLink) -> None:
        self.links.append(link)
        await self.greeting(path, link)

    def receive(self, link: ClientLink, message: str | bytes) -> None:
        self.received.append(message)
        self.receiving(link, message)
        self.changed.set()

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        self.gone.append((code, reason))
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what the host was handed fulfils a condition."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()
