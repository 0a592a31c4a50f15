"""A WebSocket client that costs next to nothing, so that the server is what is measured."""

import socket
from types import TracebackType
from typing import Self

_SHORT, _MEDIUM = 126, 127


class RawSocket:
    """A blocking connection that cuts frames out of what arrives and parses nothing else."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head, self._rest = b"", b""
        while b"\r\n\r\n" not in head:
            head += self._received()
        head, _, self._rest = head.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise ConnectionError(head.decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, text: str) -> None:
        payload = text.encode()
        size = len(payload)
        if size < _SHORT:
            head = bytes([0x81, 0x80 | size])
        elif size < 2**16:
            head = bytes([0x81, 0x80 | _SHORT]) + size.to_bytes(2, "big")
        else:
            head = bytes([0x81, 0x80 | _MEDIUM]) + size.to_bytes(8, "big")
        self._socket.sendall(head + bytes(4) + payload)

    def until(self, mark: bytes) -> int:
        """Take frames up to the first that holds `mark`; how many came before it."""
        count = 0
        data = self._rest
        at = 0
        while True:
            end = at + 2 if len(data) < at + 2 else _end_of(data, at)
            if len(data) < end:
                data, at = data[at:] + self._received(), 0
                continue
            found = data.find(mark, at, end) >= 0
            at = end
            if found:
                self._rest = data[at:]
                return count
            count += 1

    def _received(self) -> bytes:
        received = self._socket.recv(2**18)
        if not received:
            raise ConnectionError("The server has closed the connection")
        return received


def _head(data: bytes, at: int) -> int:
    short = data[at + 1] & 0x7F
    return 2 if short < _SHORT else 4 if short == _SHORT else 10


def _end_of(data: bytes, at: int) -> int:
    """Where a frame ends, or at least how much of it has to be there to tell."""
    head = _head(data, at)
    if len(data) < at + head:
        return at + head
    short = data[at + 1] & 0x7F
    size = short if short < _SHORT else int.from_bytes(data[at + 2 : at + head], "big")
    return at + head + size
