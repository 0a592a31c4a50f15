"""The application of these tests: `tests.integration.web.agents:app`."""

import asyncio
from collections.abc import AsyncIterator

import ramet
from ramet.core.json import JsonObject, JsonValue
from ramet.core.paths import AgentPath


class Child(ramet.Agent[JsonObject]):
    """A sub-agent."""

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        return ramet.Response(f"{self.path} {request.path}")


class Parent(ramet.Agent[JsonObject]):
    """Makes children, answers HTTP, can be busy."""

    initial_state = {"count": 0}

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        if request.path == "/stream":
            return ramet.Response(_pieces())
        return ramet.Response(f"{self.path} {request.path}")

    @ramet.rpc
    async def make_child(self, name: str) -> str:
        await self.sub_agent(Child, name)
        return name

    @ramet.rpc
    async def echo(self, value: JsonValue) -> JsonValue:
        return value

    @ramet.rpc
    async def work(self, marks: int) -> str:
        """Broadcast a mark each 20 ms."""
        for number in range(marks):
            self.broadcast({"mark": number})
            await self._ramet.context.clock.sleep(0.02)
        return "worked"

    @ramet.rpc
    async def shout(self, size: int) -> int:
        """Broadcast so many bytes in frames of 8 KiB; how many clients there are."""
        for _ in range(size // FRAME_BYTES):
            self.broadcast("." * FRAME_BYTES)
        return len(self.get_connections())

    async def describe(self, word: str) -> str:
        return f"{self.path} {word}"


class Guarded(ramet.Agent[JsonObject]):
    """Refuses one child, admits every other."""

    async def on_before_sub_agent(
        self, request: ramet.Request, target: ramet.Target
    ) -> ramet.Response | None:
        if target.name == "forbidden":
            return ramet.Response("No entry", status=403)
        return None


class Unregistered(ramet.Agent[JsonObject]):
    """Given to no application."""


class Flood(ramet.AIChatAgent[JsonObject]):
    """Streams as many large chunks as it is asked for, without waiting for anybody."""

    async def on_chat_message(self, turn: object) -> AsyncIterator[JsonObject]:
        yield {"type": "text-start", "id": "t"}
        for number in range(CHUNKS):
            yield {"type": "text-delta", "id": "t", "delta": f"{number:06}".ljust(CHUNK_BYTES, ".")}
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        yield {"type": "text-end", "id": "t"}


FRAME_BYTES = 8_192
CHUNKS = 1_000
CHUNK_BYTES = 16_000


async def _pieces() -> AsyncIterator[bytes]:
    for number in range(3):
        yield f"piece {number};".encode()


def path_of(*steps: tuple[type, str]) -> str:
    """The readable path of an agent, as these agents give it."""
    return str(AgentPath.of(*((cls.__name__, name) for cls, name in steps)))


app = ramet.App(
    agents=[Parent, Guarded, Flood],
    sub_agents=[Child],
    options=ramet.HostOptions(max_frame_bytes=100_000, outbox_bytes=2**20, grace_period=5),
)
