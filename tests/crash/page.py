"""One open page: a WebSocket that speaks the protocol as the hooks do and keeps what it is sent."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self
from urllib.parse import quote

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from ramet.core.json import JsonObject, dumps, loads, loads_object
from ramet.protocol.names import kebab
from tests.crash.disk import AgentKey
from tests.crash.seen import CHAT_FRAME, Seen, seen_in

PATIENCE = 10.0
"""Seconds in which a healthy server has answered anything that is asked here."""


def path_of(key: AgentKey) -> str:
    """The path of an agent's URL."""
    (root, name), *below = key
    steps = [f"/sub/{kebab(cls)}/{quote(each, safe='')}" for cls, each in below]
    return f"/agents/{kebab(root)}/{quote(name, safe='')}{''.join(steps)}"


class Page:
    """A connected client that accepts every stream it is offered, once; made by `Page.open`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.frames: list[JsonObject] = []
        """Every frame received, in order."""
        self._socket = socket
        self._news = asyncio.Event()
        self._asked = 0
        self._acknowledged: set[str] = set()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address: str, key: AgentKey) -> Self:
        """Connect to an agent; raises OSError or what websockets raises when it is not there."""
        uri = f"ws://{address}{path_of(key)}"
        return cls(await connect(uri, max_size=None, ping_interval=None, proxy=None))

    @property
    def seen(self) -> Seen:
        """What was shown so far."""
        return seen_in(self.frames)

    @property
    def gone(self) -> bool:
        """Whether the connection has ended and everything that came over it was read."""
        return self._reading.done()

    async def until(self, wanted: Callable[[], bool], patience: float = PATIENCE) -> bool:
        """Wait until something holds; False when the connection ends or it takes too long."""
        try:
            async with asyncio.timeout(patience):
                while not wanted():
                    if self.gone:
                        return wanted()
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def send(self, frame: JsonObject) -> None:
        """Send a frame; one that the server is no longer there for is lost."""
        try:
            await self._socket.send(dumps(frame))
        except ConnectionClosed:
            return

    async def ask(self, request_id: str, text: str, *, history: Sequence[JsonObject] = ()) -> None:
        """Submit a message with the transcript before it, as `useAgentChat` does."""
        message = {
            "id": f"msg-{request_id}",
            "role": "user",
            "parts": [{"type": "text", "text": text}],
        }
        body = dumps({"messages": [*history, message], "trigger": "submit-message"})
        await self.send(
            {
                "type": "cf_agent_use_chat_request",
                "id": request_id,
                "init": {"method": "POST", "body": body},
            }
        )

    async def probe(self) -> JsonObject | None:
        """Ask whether there is something to resume, and give the answer."""
        self._asked += 1
        probe_id = f"probe-{self._asked}"
        await self.send({"type": "cf_agent_stream_resume_request", "probeId": probe_id})
        answered = await self.until(lambda: self._answer_to(probe_id) is not None)
        return self._answer_to(probe_id) if answered else None

    async def resume(self, request_id: str) -> bool:
        """Accept a stream, if that was not done, and wait for its end; False when none comes."""
        await self.acknowledge(request_id)
        return await self.until(lambda: self.has_end(request_id))

    async def acknowledge(self, request_id: str) -> None:
        """Accept a stream; only the first time counts."""
        if request_id in self._acknowledged:
            return
        self._acknowledged.add(request_id)
        await self.send({"type": "cf_agent_stream_resume_ack", "id": request_id})

    def has_end(self, request_id: str) -> bool:
        """Whether the final frame of a request came."""
        return any(
            frame.get("type") == CHAT_FRAME and frame.get("id") == request_id and frame.get("done")
            for frame in reversed(self.frames)
        )

    async def close(self) -> None:
        """Close the page."""
        await self._socket.close()
        await self._reading

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                frame = loads_object(message)
                if frame is not None:
                    self.frames.append(frame)
                    self._news.set()
                    if frame.get("type") == "cf_agent_stream_resuming":
                        await self.acknowledge(str(frame.get("id")))
        except ConnectionClosed:
            pass
        finally:
            self._news.set()

    def _answer_to(self, probe_id: str) -> JsonObject | None:
        return next((f for f in self.frames if f.get("probeId") == probe_id), None)


async def get_messages(address: str, key: AgentKey) -> list[JsonObject]:
    """Fetch an agent's transcript as the hooks do; raises AssertionError when it is not one."""
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        answer = await http.get(f"http://{address}{path_of(key)}/get-messages")
    assert answer.status_code == 200, f"get-messages answers {answer.status_code}: {answer.text}"
    messages = loads(answer.content or b"[]")
    assert isinstance(messages, list), f"get-messages gives {messages!r}"
    found = [message for message in messages if isinstance(message, dict)]
    assert len(found) == len(messages), f"get-messages gives {messages!r}"
    return found
