"""`App`: the agents of one program as an ASGI application, and the program's own way to them."""

import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, overload

from starlette.types import Receive, Scope, Send

from ramet.control.host_file import with_holder
from ramet.control.server import ControlSocket
from ramet.core.clock import SystemClock
from ramet.core.http import BeforeHook
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.errors import ConfigurationError, DataDirectoryInUse, NotRunning
from ramet.host import ClassTable, Host
from ramet.web.edge import Edge, EdgeOptions, refuse
from ramet.web.origins import parse_origins
from ramet.web.refusals import refusal_for

A = TypeVar("A")

DATA_VARIABLE = "RAMET_DATA"
DEFAULT_DATA = ".ramet"
_NOT_RUNNING = (
    "The app is not running: serve it with its lifespan "
    "(pass lifespan=app.lifespan where it is mounted), or use it inside `async with app:`"
)


class App:
    """Serves agents over HTTP and WebSockets, at `/agents/{class}/{name}` unless told otherwise.

    An ASGI application: `ramet serve module:app` and `uvicorn module:app` run it. Mounted in
    another application it needs `lifespan=app.lifespan` there. `async with app:` runs the agents
    without a web server.
    """

    def __init__(
        self,
        *,
        agents: Iterable[type],
        sub_agents: Iterable[type] = (),
        data_dir: str | os.PathLike[str] | None = None,
        prefix: str = "agents",
        allowed_origins: Sequence[str] | None = None,
        on_before_connect: BeforeHook | None = None,
        on_before_request: BeforeHook | None = None,
        options: HostOptions | None = None,
    ) -> None:
        """Check the set-up; nothing is opened before the app is started.

        Args:
            agents: The classes that clients address directly.
            sub_agents: The classes that are reachable only below a parent.
            data_dir: Where the agents are stored; `$RAMET_DATA` or `./.ramet` by default.
            prefix: What the path of every agent URL begins with.
            allowed_origins: Other origins whose pages may talk to the agents; `["*"]` is all.
            on_before_connect: Asked before a WebSocket reaches its agent.
            on_before_request: Asked before an HTTP request reaches its agent.
            options: Limits of the whole host.

        Raises:
            ConfigurationError: A class or an option is not right.
        """
        self.options = options or HostOptions()
        self.data_dir = Path(data_dir or os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)
        """Where the agents are stored; may be changed until the app is started."""
        self._classes = ClassTable(roots=agents, sub_agents=sub_agents)
        self._edge_options = EdgeOptions(
            prefix=prefix,
            origins=parse_origins(allowed_origins),
            on_before_connect=on_before_connect,
            on_before_request=on_before_request,
        )
        self._clock = SystemClock()
        self._ids = Ids()
        self._host: Host | None = None
        self._control: ControlSocket | None = None
        self._edge: Edge | None = None

    @property
    def host(self) -> Host:
        """The running host; raises `NotRunning` before the start and after the stop."""
        if self._host is None:
            raise NotRunning(_NOT_RUNNING)
        return self._host

    @overload
    def get_agent(self, cls: type[A], name: str) -> A: ...

    @overload
    def get_agent(self, cls: type, name: str, *, sub: Sequence[tuple[type[A], str]]) -> A: ...

    def get_agent(self, cls: type, name: str, *, sub: Sequence[tuple[type, str]] = ()) -> object:
        """A stub of an agent: its async methods run there, and open the agent when need be.

        `sub` leads from the root agent down to a sub-agent, as (class, name) pairs.

        Raises:
            NotRunning: The app is not running.
            AddressError: A class is not registered, or no agent can have such a name.
        """
        steps = [(cls, name), *sub]
        path = AgentPath.of(*((self._classes.name_of(each), called) for each, called in steps))
        return self.host.stub(path, steps[-1][0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif self._edge is not None:
            await self._edge(scope, receive, send)
        else:
            refusal = refusal_for(NotRunning(_NOT_RUNNING), self._ids)
            origins = self._edge_options.origins
            await refuse(refusal, asgi=(scope, receive, send), origins=origins, clock=self._clock)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Run the agents as long as the application `app` that this one is mounted in."""
        async with self:
            yield

    async def __aenter__(self) -> Self:
        """Lock the data directory and start; raises `DataDirectoryError`."""
        if self._host is not None:
            raise ConfigurationError("The app is running already")
        host = Host(
            self._classes, self.data_dir, options=self.options, clock=self._clock, ids=self._ids
        )
        try:
            await host.start()
        except DataDirectoryInUse as error:
            raise with_holder(error, self.data_dir) from None
        self._control = ControlSocket(host)
        await self._control.start()
        self._host = host
        self._edge = Edge(host, self._edge_options)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give running turns the grace period, then stop; at once when something went wrong."""
        await self.host.finish_work(self.options.grace_period if error is None else 0)
        if self._control is not None:
            await self._control.stop()
        await self.host.stop()
        self._host = self._control = self._edge = None

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.__aenter__()
        except BaseException as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})
