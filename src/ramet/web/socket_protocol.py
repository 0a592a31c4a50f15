"""The WebSocket protocol of our own server: bounded buffers, closes that get past them (D21)."""

import socket
from asyncio import BaseTransport
from asyncio.trsock import TransportSocket
from typing import ClassVar

from starlette.types import Message
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from ramet.connections.outbox import Frame
from ramet.web.socket import ABNORMAL, FRAMES_EXTENSION

SEND_BUFFER_BYTES = 256 * 1024
"""What the kernel may hold for one client; it would take up to 4 MiB by itself."""
WRITE_BUFFER_BYTES = 64 * 1024
"""What may wait above that before writers are held back."""

_TWO_BYTE_SIZE = 126
_EIGHT_BYTE_SIZE = 65_536


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket of uvicorn, except where its peer does not read or sends what is too large.

    There a close would wait for the peer, and the memory with it; here the connection is cut when
    the peer has not answered in time.
    """

    close_seconds: ClassVar[float] = 5.0
    """How long a client may take to answer a close before the connection is cut."""
    shutdown_seconds: ClassVar[float] = 1.0
    """The same when the server stops."""

    _discarding = False

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound what may wait for the client."""
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        sock = transport.get_extra_info("socket")
        if isinstance(sock, TransportSocket):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the connection broke, unless it was closed before."""
        if self.handshake_complete:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": ABNORMAL})
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends; after a protocol error it is only drained."""
        if not self._discarding:
            super().data_received(data)

    async def run_asgi(self) -> None:
        """Offer to take many frames at once."""
        self.scope["extensions"][FRAMES_EXTENSION] = {}
        await super().run_asgi()

    async def send(self, message: Message) -> None:  # type: ignore[override] # takes one type more
        """Send what the application wants sent; only a close does not wait for the client."""
        kind = message["type"]
        if kind == FRAMES_EXTENSION:
            await self._send_frames(message["frames"])
            return
        closing = kind == "websocket.close" and self.handshake_complete and not self.close_sent
        if closing:
            self.writable.set()
        await super().send(message)  # type: ignore[arg-type] # one of uvicorn's own types
        if closing:
            self._cut_later(self.close_seconds)

    def keepalive_timeout(self) -> None:
        """Close when the client does not answer pings, and cut the connection if it stays."""
        super().keepalive_timeout()
        self._cut_later(self.close_seconds)

    def handle_parser_exception(self) -> None:
        """Close after a protocol error; reading goes on, or the client would not see the close."""
        if self._discarding:
            return
        self._discarding = True
        closed = self.conn.close_sent
        if closed is not None:
            self.queue.put_nowait(
                {"type": "websocket.disconnect", "code": closed.code, "reason": closed.reason}
            )
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._cut_later(self.close_seconds)

    def shutdown(self) -> None:
        """Close because the server stops, and do not wait long for clients that do not read."""
        super().shutdown()
        self._cut_later(self.shutdown_seconds)

    async def _send_frames(self, frames: list[Frame]) -> None:
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join([piece for frame in frames for piece in encoded(frame)]))

    def _cut_later(self, seconds: float) -> None:
        if self.disconnected:
            return
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)


def encoded(frame: Frame) -> tuple[bytes, bytes]:
    """Head and payload of a whole, uncompressed data frame from a server (RFC 6455, 5.2).

    The library's own way to them costs seven times as much, for every chunk to every client.
    """
    first, payload = (b"\x81", frame.encode()) if isinstance(frame, str) else (b"\x82", frame)
    size = len(payload)
    if size < _TWO_BYTE_SIZE:
        return first + size.to_bytes(1, "big"), payload
    if size < _EIGHT_BYTE_SIZE:
        return first + b"\x7e" + size.to_bytes(2, "big"), payload
    return first + b"\x7f" + size.to_bytes(8, "big"), payload
