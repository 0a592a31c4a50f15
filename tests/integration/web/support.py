"""What these tests ask of a client."""

from urllib.parse import quote

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from ramet.core.json import JsonObject, dumps, loads_object


def encoded(name: str) -> str:
    """A name as one segment of a URL."""
    return quote(name, safe="")


async def next_frame(client: ClientConnection, type: str) -> JsonObject:
    """The next frame of a type."""
    while True:
        found = loads_object(await client.recv())
        if found is not None and found.get("type") == type:
            return found


async def call(client: ClientConnection, method: str, *args: object) -> JsonObject:
    """Call a method over the wire; the answer."""
    await client.send(dumps({"type": "rpc", "id": "1", "method": method, "args": args}))
    return await next_frame(client, "rpc")


async def until_closed(client: ClientConnection) -> tuple[int, str]:
    """Read on until the server closes; its code and reason."""
    with pytest.raises(ConnectionClosed) as closed:
        await _read_on(client)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


async def _read_on(client: ClientConnection) -> None:
    while True:
        await client.recv()
