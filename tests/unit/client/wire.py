"""A server of sockets in memory: a test says what each of them is told and how it ends."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from ramet.client import AgentClient, ClientOptions
from ramet.client.ports import Closing, SocketClosed
from ramet.core.ids import Ids
from ramet.core.json import JsonObject, dumps, loads_object
from ramet.protocol import frames
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet


class ScriptedSocket:
    """One socket: what the client sent on it, and what the test lets it receive."""

    def __init__(self) -> None:
        self.sent: list[JsonObject] = []
        self.closed: Closing | None = None
        self._incoming: asyncio.Queue[str | bytes | Closing] = asyncio.Queue()

    async def send(self, text: str) -> None:
        if self.closed is not None:
            raise SocketClosed(self.closed)
        frame = loads_object(text)
        self.sent.append(frame if frame is not None else {"text": text})

    async def receive(self) -> str | bytes:
        got = await self._incoming.get()
        if isinstance(got, Closing):
            self.closed = got
            raise SocketClosed(got)
        return got

    async def close(self) -> None:
        self.closed = self.closed or Closing(code=1000)

    async def say(self, *told: str | bytes | Mapping[str, object]) -> None:
        """Send frames to the client, and let it take them."""
        for frame in told:
            self._incoming.put_nowait(frame if isinstance(frame, str | bytes) else dumps(frame))
        await quiet()

    async def hang_up(self, code: int = 1006, reason: str = "", *, ours: bool = False) -> None:
        """End the connection, and let the client notice."""
        self._incoming.put_nowait(Closing(code=code, reason=reason, ours=ours))
        await quiet()

    def of_type(self, frame_type: str) -> list[JsonObject]:
        """What the client has sent of one type."""
        return [frame for frame in self.sent if frame.get("type") == frame_type]


class ScriptedServer:
    """Opens a new socket at each attempt, greets as an agent does, or fails as it is told."""

    def __init__(self, *greeting: str) -> None:
        self.clock = ManualClock()
        self.greeting = list(greeting) or [frames.identity("x", "some-agent", state_follows=False)]
        self.sockets: list[ScriptedSocket] = []
        self.attempts: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.fails_with: Exception | None = None
        self.stalls = False

    async def open(self, url: str, headers: Mapping[str, str]) -> ScriptedSocket:
        self.attempts.append(url)
        self.headers.append(headers)
        if self.stalls:
            await asyncio.Event().wait()
        if self.fails_with is not None:
            raise self.fails_with
        socket = ScriptedSocket()
        for frame in self.greeting:
            socket._incoming.put_nowait(frame)
        self.sockets.append(socket)
        return socket

    @property
    def socket(self) -> ScriptedSocket:
        """The one that was opened last."""
        return self.sockets[-1]

    def options(self, **changed: object) -> ClientOptions:
        """Options with the clock of this server and the same ids each time."""
        given: dict[str, object] = {"clock": self.clock, "ids": Ids.seeded(3), **changed}
        return ClientOptions(**given)  # type: ignore[arg-type] # a test names options by key

    def client(self, **changed: object) -> AgentClient:
        """A client of this server that is not connected."""
        return AgentClient(
            "http://there",
            agent="SomeAgent",
            name="x",
            options=self.options(**changed),
            opener=self,
        )

    @asynccontextmanager
    async def connected(self, **changed: object) -> AsyncIterator[AgentClient]:
        """A client that is connected."""
        async with self.client(**changed) as client:
            yield client

    async def advance(self, seconds: float) -> None:
        """Move the clock, and let the client do what is due."""
        await quiet()
        while (wait := self.clock.next_due()) is not None and wait <= seconds:
            self.clock.move(wait)
            seconds -= wait
            await quiet()
        self.clock.move(seconds)
        await quiet()

    def path(self) -> str:
        """The path that the client connected to last."""
        return urlsplit(self.attempts[-1]).path
