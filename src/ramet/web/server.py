"""The server behind `ramet serve`: uvicorn, stopped in the order that running turns need (D18)."""

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.lifespan.on import LifespanOn

from ramet.core.clock import SystemClock
from ramet.core.options import MEBIBYTE
from ramet.errors import ConfigurationError, PortInUse, RametError
from ramet.web.socket_protocol import SocketProtocol

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SOCKET_FRAME_BYTES = 16 * MEBIBYTE
_CLOSE_SECONDS = 5
_LAST_WORDS_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_BACKLOG = 2048
_SILENT = logging.Logger("ramet.web.silent", level=logging.CRITICAL + 1)

Application: TypeAlias = ASGIApp
"""What can be served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where and how an application is served."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port."""
    max_frame_bytes: int = SOCKET_FRAME_BYTES
    """The largest frame that is read at all; above it the connection is closed with 1009 (D25)."""
    on_ready: Callable[[str], object] | None = None
    """Told the URL once requests are taken."""


def serve(app: Application, options: ServeOptions) -> None:
    """Serve an application until SIGINT or SIGTERM; returns when everything has been put away.

    Raises:
        PortInUse: Something listens on that port already.
        RametError: What kept the application from starting.
    """
    server = Server(app, options)
    # What was imported stays: a look for garbage that goes through it holds every client up.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.run_until_stopped())


def listen(host: str, port: int) -> socket.socket:
    """Bind a listening socket.

    Raises:
        PortInUse: Something listens there already.
        ConfigurationError: The address cannot be listened on for another reason.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"Port {port} on {host} is in use; stop what listens there or choose another port"
            ) from error
        raise ConfigurationError(
            f"Cannot listen on port {port} of {host}: {error.strerror}"
        ) from error
    listener.setblocking(False)  # noqa: FBT003 - that is how it is called
    return listener


class Server(uvicorn.Server):
    """Serves one application on one socket."""

    def __init__(self, app: Application, options: ServeOptions) -> None:
        self._options = options
        self._watched = _Watched(app)
        self._clock = SystemClock()
        super().__init__(
            uvicorn.Config(
                self._watched,
                ws=SocketProtocol,
                ws_max_size=options.max_frame_bytes,
                ws_per_message_deflate=False,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=_CLOSE_SECONDS,
            )
        )
        self.config.load()
        self.config.lifespan_class = _Lifespan

    async def run_until_stopped(self) -> None:
        """Listen, serve and stop; see `serve` for what is raised."""
        listener = listen(self._options.host, self._options.port)
        try:
            await self.serve([listener])
        finally:
            listener.close()

    def stop(self) -> None:
        """Ask the server to stop, as the first SIGTERM does."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then take requests; raises what kept it from starting."""
        try:
            await super().startup(sockets)
        except SystemExit as exit:
            raise self._watched.failure() from exit
        if self._options.on_ready is not None:
            for listener in sockets or []:
                self._options.on_ready(_url(listener))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, let the application finish its turns, only then close the sockets."""
        for server in self.servers:
            server.close()
        await self.lifespan.shutdown()
        await self._last_words()
        await super().shutdown(sockets)

    async def _last_words(self) -> None:
        """Let what the application has said reach those who still listen."""
        deadline = self._clock.monotonic() + _LAST_WORDS_SECONDS
        while self.server_state.tasks and self._clock.monotonic() < deadline:
            await self._clock.sleep(_LOOK_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the first signal stop the server; a second one ends the process at once.

        That is as safe as any other death: whatever was shown to somebody is stored.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def release() -> None:
            for each in STOP_SIGNALS:
                loop.remove_signal_handler(each)

        def first_signal() -> None:
            release()
            for each in STOP_SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            self.stop()

        for each in STOP_SIGNALS:
            loop.add_signal_handler(each, first_signal)
        try:
            yield
        finally:
            release()


class _Lifespan(LifespanOn):
    """Starts an application without a word: why it could not start is raised, and said once."""

    async def startup(self) -> None:
        loud, self.logger = self.logger, _SILENT
        await super().startup()
        self.logger = loud


class _Watched:
    """The application, with the error that kept it from starting kept."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._error: BaseException | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except BaseException as error:
            self._error = error
            raise

    def failure(self) -> BaseException:
        if isinstance(self._error, RametError):
            return self._error
        return self._error or ConfigurationError("The application could not start; see the log")


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
