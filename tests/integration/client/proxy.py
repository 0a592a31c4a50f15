"""A TCP proxy that a test cuts, so that a server and its clients lose each other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HOST = "127.0.0.1"


class Proxy:
    """Passes bytes on until it is cut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.admits = True
        self.address = ""

    def cut(self) -> None:
        """Break every connection, as a network does."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client to the target."""
        self.connections += 1
        if not self.admits:
            writer.transport.abort()
            return
        inner_reader, inner_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, inner_writer}
        try:
            await asyncio.gather(self._pass(reader, inner_writer), self._pass(inner_reader, writer))
        finally:
            self._writers -= {writer, inner_writer}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def proxied(target: str) -> AsyncIterator[Proxy]:
    """A proxy before a server, for the length of a block."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, HOST, 0)
    proxy.address = f"{HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        proxy.cut()
        server.close()
        await server.wait_closed()
