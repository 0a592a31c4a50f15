"""Serves an application on a real socket in the running event loop, as `ramet serve` does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from ramet.web.server import SOCKET_FRAME_BYTES, ServeOptions, Server


@asynccontextmanager
async def serving(app: ASGIApp, *, max_frame_bytes: int = SOCKET_FRAME_BYTES) -> AsyncIterator[str]:
    """Serve `app` inside the block; gives `127.0.0.1:port`."""
    async with running(app, max_frame_bytes=max_frame_bytes) as (address, _):
        yield address


@asynccontextmanager
async def running(
    app: ASGIApp, *, max_frame_bytes: int = SOCKET_FRAME_BYTES
) -> AsyncIterator[tuple[str, Server]]:
    """Serve `app` inside the block; gives the address and the server."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    options = ServeOptions(port=0, max_frame_bytes=max_frame_bytes, on_ready=ready.set_result)
    server = Server(app, options)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run_until_stopped())
        try:
            yield (await ready).removeprefix("http://"), server
        finally:
            server.stop()
