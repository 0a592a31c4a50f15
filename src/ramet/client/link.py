"""Keeps one connection: opens it, reads it in order, opens it again when it is lost."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Protocol, TypeAlias

from ramet.client.address import AgentAddress
from ramet.client.options import ClientOptions
from ramet.client.policy import next_attempt, refusal, why
from ramet.client.ports import Closing, Opener, Rejected, Socket, SocketClosed, Unreachable
from ramet.client.settled import Settled
from ramet.errors import CallTimedOut, ClientClosed, ClientError, ConnectionLost, ConnectionRefused

_log = logging.getLogger("ramet.client")

Frame: TypeAlias = str | bytes


class LinkUser(Protocol):
    """What is told of a connection; none of it waits."""

    def opened(self) -> None:
        """A socket is open; frames may be sent."""
        ...

    def frame(self, frame: Frame) -> None:
        """A frame has come."""
        ...

    def lost(self, error: ClientError) -> None:
        """The socket has gone; another may be opened."""
        ...

    def over(self, error: ClientError) -> None:
        """The connection has gone for good, or was closed by the program."""
        ...


class Link:
    """One connection that outlives its sockets."""

    def __init__(
        self,
        address: AgentAddress,
        headers: Mapping[str, str],
        *,
        opener: Opener,
        options: ClientOptions,
    ) -> None:
        self._address = address
        self._headers = headers
        self._opener = opener
        self._options = options
        self._user: LinkUser | None = None
        self._socket: Socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._opening: Settled[Socket] = Settled()
        self._good = False
        self._ended: ClientError | None = ClientClosed(
            "The client is not connected: await connect()"
        )

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent now."""
        return self._socket is not None

    @property
    def is_running(self) -> bool:
        """Whether there is a connection, or will be one again."""
        return self._ended is None

    async def start(self, user: LinkUser) -> None:
        """Open the first socket and begin to read; it is not tried again.

        Args:
            user: Is told what happens from now on.

        Raises:
            ConnectionLost: Nobody answers.
            ConnectionRefused: The server does not want the connection, or is none of agents.
        """
        self._ended, self._opening, self._good = None, Settled(), False
        try:
            socket = await self._open()
        except BaseException:
            self._ended = ClientClosed("The client is not connected: await connect()")
            raise
        self._user = user
        self._take(socket)
        self._reading = _task(self._run(socket, user), name="ramet client")

    def introduced(self) -> None:
        """Note that the server has let this client in: from now on lost sockets are replaced."""
        self._good = True

    def check(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        if self._ended is not None:
            raise self._ended

    async def socket(self) -> Socket:
        """The open socket, as soon as there is one.

        Raises:
            ClientError: There will be none.
        """
        self.check()
        return await self._opening.wait()

    async def socket_in_time(self) -> Socket:
        """The open socket, if there is one before a call would time out.

        Raises:
            CallTimedOut: There was none for too long.
        """
        seconds = self._options.seconds(None)
        try:
            async with self._options.clock.timeout(seconds):
                return await self.socket()
        except TimeoutError as error:
            told = f"Nothing was sent: there was no connection for {seconds:g} s"
            raise CallTimedOut(told) from error

    async def send(self, text: str) -> None:
        """Send a frame as soon as there is a socket; frames keep the order of the calls.

        Raises:
            ConnectionLost: The connection broke meanwhile; the frame may have arrived.
            CallTimedOut: There was no connection for too long; nothing was sent.
        """
        socket = await self.socket_in_time()
        try:
            await socket.send(text)
        except SocketClosed as closed:
            raise self._lost(closed.closing) from closed

    def post(self, text: str) -> None:
        """Send a frame on the socket that is open now, without waiting; else it is forgotten."""
        if self._socket is not None:
            task = _task(_send_or_forget(self._socket, text), name="ramet client sends")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Close the socket and stop."""
        reading, self._reading = self._reading, None
        self._end(ClientClosed("The client was closed"))
        tasks = [task for task in (reading, *self._sending) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._socket is not None:
            socket, self._socket = self._socket, None
            await socket.close()

    async def _open(self) -> Socket:
        try:
            async with self._options.clock.timeout(self._options.connect_timeout):
                return await self._opener.open(self._address.socket_url, self._headers)
        except TimeoutError as error:
            seconds = self._options.connect_timeout
            raise self._unreachable(f"no answer within {seconds:g} s") from error
        except Unreachable as error:
            raise self._unreachable(str(error)) from error
        except Rejected as error:
            raise ConnectionRefused(
                f"There is no agent for {self._address.readable}: {error}",
                code=0,
                reason=str(error),
            ) from error

    async def _run(self, socket: Socket, user: LinkUser) -> None:
        failures = 0
        try:
            while True:
                user.opened()
                closing, seconds = await self._read(socket, user)
                self._socket, self._opening = None, Settled()
                final = refusal(closing, self._address.readable)
                if final is None and not self._good:
                    final = self._lost(closing)
                if final is not None:
                    self._end(final)
                    return
                user.lost(self._lost(closing))
                failures = 0 if seconds >= self._options.min_uptime else failures + 1
                socket, failures = await self._reopen(failures, closing)
        except ClientError as error:
            self._end(error)
        except Exception as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
            _log.exception("The connection to %s failed", self._address.readable)
            self._end(ClientError(f"The client failed: {error!r}"))

    async def _read(self, socket: Socket, user: LinkUser) -> tuple[Closing, float]:
        began = self._options.clock.monotonic()
        try:
            while True:
                user.frame(await socket.receive())
        except SocketClosed as closed:
            return closed.closing, self._options.clock.monotonic() - began

    async def _reopen(self, failures: int, closing: Closing) -> tuple[Socket, int]:
        told = why(closing)
        while True:
            luck = self._options.ids.uniform(0, 1)
            attempt = next_attempt(failures, options=self._options, luck=luck)
            if attempt is None:
                raise ConnectionLost(
                    f"The connection to {self._address.readable} was lost and did not come back in "
                    f"{failures} attempts: {told}"
                )
            await self._options.clock.sleep(attempt.delay)
            try:
                socket = await self._open()
            except (ConnectionLost, ConnectionRefused) as error:
                # It let this client in before: what answers may only stand in for it.
                failures, told = failures + 1, str(error)
                continue
            self._take(socket)
            return socket, failures

    def _take(self, socket: Socket) -> None:
        self._socket = socket
        self._opening.succeed(socket)

    def _end(self, error: ClientError) -> None:
        if self._ended is None:
            self._ended = error
            self._opening.fail(error)
            if self._user is not None:
                self._user.over(error)

    def _lost(self, closing: Closing) -> ConnectionLost:
        return ConnectionLost(
            f"The connection to {self._address.readable} was lost: {why(closing)}"
        )

    def _unreachable(self, told: str) -> ConnectionLost:
        return ConnectionLost(f"Cannot connect to {self._address.readable}: {told}")


async def _send_or_forget(socket: Socket, text: str) -> None:
    try:
        await socket.send(text)
    except SocketClosed:
        return


def _task(work: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
    """Make a task; the link holds it until it is done."""
    return asyncio.get_running_loop().create_task(_typed(work), name=name)


async def _typed(work: Coroutine[object, object, None]) -> None:
    await work
