"""Clients that stop reading: nobody waits for them, and they lose nothing (D21)."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from ramet.core.json import JsonObject, dumps
from tests.integration.web.agents import CHUNKS, FRAME_BYTES, app
from tests.integration.web.support import call, next_frame, until_closed
from tests.integration.web.test_serve import serving as serving_elsewhere
from tests.unit.web.serving import serving

CLIENTS = 400
STALLED = 200
ROUNDS = 8
ROUND_BYTES = 64 * FRAME_BYTES
MOST_GROWTH = 80 * 2**20

ASK: JsonObject = {
    "type": "cf_agent_use_chat_request",
    "id": "question",
    "init": {
        "method": "POST",
        "body": dumps(
            {
                "messages": [
                    {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
                ],
                "trigger": "submit-message",
            }
        ),
    },
}


async def chunks_until_done(client: ClientConnection) -> list[str]:
    """The bodies of a turn's chunks, in order, until its last frame."""
    bodies: list[str] = []
    while True:
        frame = await next_frame(client, "cf_agent_use_chat_response")
        if frame["done"]:
            return bodies
        if frame["body"]:
            bodies.append(str(frame["body"]))


async def resumed(client: ClientConnection) -> list[str]:
    """Take up a running turn: what is replayed, and what follows."""
    offer = await next_frame(client, "cf_agent_stream_resuming")
    await client.send(dumps({"type": "cf_agent_stream_resume_ack", "id": offer["id"]}))
    return await chunks_until_done(client)


@pytest.mark.behaviour("D21")
async def test_a_turn_does_not_wait_for_a_client_that_stopped_reading(tmp_path: Path) -> None:
    app.data_dir = tmp_path
    async with serving(app) as address:
        url = f"ws://{address}/agents/flood/f"
        async with connect(url) as asking, connect(url) as stalled:
            stalled.transport.pause_reading()
            await asking.send(dumps(ASK))
            bodies = await chunks_until_done(asking)
            stalled.transport.resume_reading()
            code, reason = await until_closed(stalled)

    assert len(bodies) == CHUNKS + 3
    assert (code, reason) == (1013, "Too slow: reconnect to catch up")


@pytest.mark.behaviour("D21")
async def test_a_client_that_was_dropped_comes_back_and_is_given_what_it_missed(
    tmp_path: Path,
) -> None:
    app.data_dir = tmp_path
    async with serving(app) as address:
        url = f"ws://{address}/agents/flood/f"
        async with connect(url) as asking, connect(url) as stalled:
            await asking.send(dumps(ASK))
            watching = asyncio.ensure_future(chunks_until_done(asking))
            await next_frame(stalled, "cf_agent_use_chat_response")
            stalled.transport.pause_reading()
            while len(app.host.sockets._seats) > 1:
                await _turn_of_the_loop()
            stalled.transport.abort()
            async with connect(url) as back:
                healed = await resumed(back)
            seen = await watching

    assert healed == seen


async def _turn_of_the_loop() -> None:
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)


class Listener(asyncio.Protocol):
    """A WebSocket client that only counts what it is sent, or stops reading after the handshake."""

    def __init__(self, path: str, *, stalls: bool) -> None:
        self._path = path
        self._stalls = stalls
        self.received = 0
        self.open = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if not self.open.done():
            self.open.set_result(None)
            if self._stalls:
                self.transport.pause_reading()


@asynccontextmanager
async def listeners(address: str, path: str) -> AsyncIterator[list[Listener]]:
    """Clients of one agent; those that stall are the last."""
    host, _, port = address.partition(":")
    loop = asyncio.get_running_loop()
    opened: list[Listener] = []
    try:
        for number in range(CLIENTS):
            made = partial(Listener, path, stalls=number >= CLIENTS - STALLED)
            _, listener = await loop.create_connection(made, host, int(port))
            await listener.open
            opened.append(listener)
        yield opened
    finally:
        for listener in opened:
            listener.transport.abort()


def resident_bytes(pid: int) -> int:
    """The memory that a process has in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.behaviour("D21")
async def test_memory_stays_flat_while_half_of_four_hundred_clients_do_not_read(
    tmp_path: Path,
) -> None:
    async with (
        serving_elsewhere(tmp_path) as server,
        connect(f"ws://{server.address}/agents/parent/p") as conductor,
        listeners(server.address, "/agents/parent/p") as clients,
    ):
        reading = clients[: CLIENTS - STALLED]
        pid = server.process.pid
        present = await call(conductor, "shout", 0)
        before, most = resident_bytes(pid), 0
        for number in range(1, ROUNDS + 1):
            remaining = await call(conductor, "shout", ROUND_BYTES)
            while min(each.received for each in reading) < number * ROUND_BYTES:
                most = max(most, resident_bytes(pid))
                await _turn_of_the_loop()
        remaining = await call(conductor, "shout", 0)

    assert present["result"] == CLIENTS + 1
    assert remaining["result"] == CLIENTS - STALLED + 1
    assert most - before < MOST_GROWTH
