"""One WebSocket: hands what the client sends to the host, writes what waits for the client."""

import asyncio
import contextlib
from dataclasses import dataclass

from starlette.types import Message, Receive, Send

from ramet.connections.link import ClientLink
from ramet.connections.outbox import TOO_SLOW, TRY_AGAIN_LATER, Close, Frame, Outbox
from ramet.core.clock import Clock
from ramet.core.http import Request
from ramet.core.ids import Ids
from ramet.core.paths import AgentPath
from ramet.web.ports import AgentHost
from ramet.web.refusals import refusal_for
from ramet.web.requests import CONNECTION_ID

FRAMES_EXTENSION = "ramet.frames"
"""The ASGI extension of our own server: takes many frames in one message."""

ABNORMAL = 1006
_CLOSE_SECONDS = 5.0
_GATHER_SECONDS = 0.001
_FEW_FRAMES = 64
_ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Lost:
    """The client has closed the connection, or it broke."""

    code: int
    reason: str = ""


class ClientSocket:
    """An accepted WebSocket on its way from greeting to close."""

    def __init__(self, host: AgentHost, request: Request, *, receive: Receive, send: Send) -> None:
        self._host = host
        self._receive = receive
        self._send = send
        self._asked = False
        self._end: asyncio.Future[Close | Lost] = asyncio.get_running_loop().create_future()
        outbox = Outbox(
            limit_bytes=host.options.outbox_bytes,
            on_overflow=lambda: self._ended(Close(TRY_AGAIN_LATER, TOO_SLOW)),
        )
        self._link = ClientLink(id=connection_id(request, host.ids), request=request, outbox=outbox)

    async def run(self, path: AgentPath, *, in_batches: bool) -> None:
        """Serve the client until it leaves or is closed; `in_batches` with a server that can.

        Reading never waits for the agent, nor for writing. A client that is too slow is closed
        while a frame to it is still stuck, which needs the server behind `ramet serve` (D21).
        """
        end: Close | Lost = Lost(ABNORMAL)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._open(path))
                reading = tasks.create_task(self._read())
                writing = tasks.create_task(self._write_batches() if in_batches else self._write())
                end = await self._end
                self._link.outbox.drop()
                reading.cancel()
                writing.cancel()
            if isinstance(end, Close):
                await send_close(end, self._send, clock=self._host.clock)
        finally:
            self._link.outbox.drop()
            self._host.disconnect(self._link, end.code, end.reason)

    async def _open(self, path: AgentPath) -> None:
        try:
            await self._host.connect(path, self._link)
        except Exception as error:  # noqa: BLE001 - whatever opening runs into ends here
            close = refusal_for(error, self._host.ids).close
            self._link.outbox.close(close.code, close.reason)

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                code = message.get("code") or ABNORMAL
                self._ended(Lost(code, message.get("reason") or ""))
                return
            text = message.get("text")
            self._asked = True
            self._host.receive(self._link, message["bytes"] if text is None else text)

    async def _write(self) -> None:
        while True:
            for item in await self._link.outbox.take():
                if isinstance(item, Close):
                    self._ended(item)
                    return
                if not await self._deliver(_message(item)):
                    return

    async def _write_batches(self) -> None:
        while True:
            items = await self._link.outbox.take()
            frames = [item for item in items if not isinstance(item, Close)]
            if frames and not await self._deliver({"type": FRAMES_EXTENSION, "frames": frames}):
                return
            if isinstance(items[-1], Close):
                self._ended(items[-1])
                return
            if len(frames) < _FEW_FRAMES:
                await self._gather()

    async def _gather(self) -> None:
        """Let what comes in the next millisecond go out in one write; each is a system call.

        The first frame after a silence never waits, nor does the answer to what a client sent.
        """
        if self._asked:
            self._asked = False
        else:
            await self._host.clock.sleep(_GATHER_SECONDS)

    async def _deliver(self, message: Message) -> bool:
        try:
            await self._send(message)
        except OSError:
            self._ended(Lost(ABNORMAL))
            return False
        return True

    def _ended(self, end: Close | Lost) -> None:
        if not self._end.done():
            self._end.set_result(end)


async def send_close(close: Close, send: Send, *, clock: Clock) -> None:
    """Close a WebSocket; a server that cannot close past a stuck client is not waited for."""
    message = {"type": "websocket.close", "code": close.code, "reason": close.reason}
    with contextlib.suppress(OSError, TimeoutError):
        async with clock.timeout(_CLOSE_SECONDS):
            await send(message)


def connection_id(request: Request, ids: Ids) -> str:
    """The id that the client gave its connection, else a new one."""
    return request.query.get(CONNECTION_ID) or ids.url_safe(_ID_LENGTH)


def _message(frame: Frame) -> Message:
    return {"type": "websocket.send", "text" if isinstance(frame, str) else "bytes": frame}
