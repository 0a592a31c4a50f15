"""Real WebSockets for the client, through the `websockets` library."""

import os
from collections.abc import Mapping

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from ramet.client.ports import Closing, Rejected, Socket, SocketClosed, Unreachable

_ABNORMAL = 1006
_SERVER_ERRORS = 500


class WebSocket:
    """One open WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, text: str) -> None:
        """Send a text frame; raises SocketClosed."""
        try:
            await self._connection.send(text)
        except ConnectionClosed as closed:
            raise SocketClosed(_closing(closed)) from closed

    async def receive(self) -> str | bytes:
        """The next frame; raises SocketClosed."""
        try:
            return await self._connection.recv()
        except ConnectionClosed as closed:
            raise SocketClosed(_closing(closed)) from closed

    async def close(self) -> None:
        """Close normally."""
        await self._connection.close()


class WebSocketOpener:
    """Opens WebSockets."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes

    async def open(self, url: str, headers: Mapping[str, str]) -> Socket:
        """Open one; who waits limits the time.

        Raises:
            Unreachable: Nobody answers there, or the server is not well.
            Rejected: The server answered, and not with a WebSocket.
        """
        try:
            connection = await connect(
                url,
                additional_headers=dict(headers),
                max_size=self._max_frame_bytes,
                open_timeout=None,
                close_timeout=1,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            text = f"it answered with HTTP {status}"
            raise (Unreachable if status >= _SERVER_ERRORS else Rejected)(text) from error
        except InvalidURI as error:
            raise Rejected(str(error)) from error
        except InvalidHandshake as error:
            if isinstance(error.__cause__, EOFError | OSError):
                raise Unreachable("it hung up") from error
            raise Rejected(f"what answers is no WebSocket server ({error})") from error
        except OSError as error:
            raise Unreachable(_told(error)) from error
        except EOFError as error:
            raise Unreachable("it hung up") from error
        return WebSocket(connection)


def _told(error: OSError) -> str:
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _closing(closed: ConnectionClosed) -> Closing:
    received, sent = closed.rcvd, closed.sent
    if received is not None and (sent is None or closed.rcvd_then_sent):
        return Closing(code=received.code, reason=received.reason)
    if sent is not None:
        return Closing(code=sent.code, reason=sent.reason, ours=True)
    return Closing(code=_ABNORMAL)
