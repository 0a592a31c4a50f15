"""Frames a second to one WebSocket client: through the edge, and from a bare Starlette application.

Both run in the server of `ramet serve`, both send the same bytes. `bursts` hands out as many frames
as fit; `singly` gives the event loop a turn after each, as chunks of a model come.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

import ramet
from ramet.app.app import App
from ramet.core.json import JsonObject
from ramet.web.server import ServeOptions, Server

FRAMES = 50_000
ROUNDS = 3
FRAME = (
    '{"type":"cf_agent_use_chat_response","id":"u5ShLdJP","body":"'
    '{\\"type\\":\\"text-delta\\",\\"id\\":\\"t1\\",\\"delta\\":\\"Hello there\\"}",'
    '"done":false,"seq":31234}'
)
PATH = "/agents/sender/s"


class Sender(ramet.Agent[JsonObject]):
    """Sends frames when it is asked to."""

    async def on_message(self, connection: ramet.Connection, message: str | bytes) -> None:
        pause = _pause(str(message))
        for number in range(FRAMES):
            connection.send(FRAME)
            await pause(number)
            while connection.link.outbox.waiting_bytes > 2**20:  # noqa: ASYNC110 - a benchmark
                await asyncio.sleep(0)


async def bare(socket: WebSocket) -> None:
    await socket.accept()
    pause = _pause(await socket.receive_text())
    for number in range(FRAMES):
        await socket.send_text(FRAME)
        await pause(number)
    with contextlib.suppress(WebSocketDisconnect):
        await socket.receive_text()


def _pause(how: str) -> Callable[[int], Awaitable[None]]:
    async def never(number: int) -> None:
        return

    async def always(number: int) -> None:
        await asyncio.sleep(0)

    return always if how == "singly" else never


def serve(kind: str, data: str, ready: Connection) -> None:
    app: ASGIApp = Starlette(routes=[WebSocketRoute(PATH, bare)])
    if kind == "edge":
        app = App(agents=[Sender], data_dir=data)
    server = Server(app, ServeOptions(port=0, on_ready=ready.send))
    asyncio.run(server.run_until_stopped())


async def frames_a_second(url: str, how: str) -> float:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
    writer.write(
        f"GET {PATH} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"\x81" + bytes([0x80 | len(how)]) + bytes(4) + how.encode())
    began = time.perf_counter()
    left = FRAMES * (len(FRAME) + 4)
    while left > 0:
        left -= len(await reader.read(2**20))
    took = time.perf_counter() - began
    writer.close()
    return FRAMES / took


def measure(kind: str, how: str, data: str) -> float:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(kind, data, there))
    process.start()
    try:
        return asyncio.run(frames_a_second(here.recv(), how))
    finally:
        process.terminate()
        process.join()


def main() -> None:
    best: dict[tuple[str, str], float] = {}
    for _, kind, how in itertools.product(range(ROUNDS), ("bare", "edge"), ("bursts", "singly")):
        with tempfile.TemporaryDirectory() as data:
            speed = measure(kind, how, data)
        best[kind, how] = max(speed, best.get((kind, how), 0))
    for how in ("bursts", "singly"):
        edge, floor = best["edge", how], best["bare", how]
        print(f"{how}: edge {edge:,.0f}, bare {floor:,.0f} frames/s, ratio {edge / floor:.2f}")


if __name__ == "__main__":
    main()
