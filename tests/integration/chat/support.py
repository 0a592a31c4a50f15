"""A chat agent that a test feeds by hand, and what a chat client sends and sees."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import ramet
from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import ChatErrorContext, ChatResult, Turn
from ramet.core.json import JsonObject, dumps, loads_object
from ramet.protocol import types
from ramet.protocol.ui_message import UIMessage
from ramet.testing.client import TestClient

END = object()


class Fed(AIChatAgent[object]):
    """Gives what the test puts in; an exception is raised, `END` ends the answer."""

    chat_recovery: ramet.ChatRecovery | bool = False

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.results: list[ChatResult] = []
        self.errors: list[ChatErrorContext] = []
        self.feed: asyncio.Queue[object] = asyncio.Queue()

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        self.turns.append(turn)
        while (item := await self.feed.get()) is not END:
            if isinstance(item, BaseException):
                raise item
            yield item

    def on_chat_response(self, result: ChatResult) -> None:
        self.results.append(result)

    def on_chat_error(self, error: BaseException, ctx: ChatErrorContext) -> object:
        self.errors.append(ctx)
        return None

    def give(self, *items: object) -> None:
        """Let the running turn take these."""
        for item in items:
            self.feed.put_nowait(item)


def user(message_id: str, text: str) -> UIMessage:
    """A user's message."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def assistant(message_id: str, *parts: JsonObject) -> UIMessage:
    """An assistant's message."""
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


def said(text: str) -> JsonObject:
    """A text part that is done."""
    return {"type": "text", "text": text, "state": "done"}


def request(request_id: str, messages: Iterable[UIMessage], **body: object) -> JsonObject:
    """The frame of a chat request."""
    text = dumps({"messages": list(messages), "trigger": "submit-message", **body})
    return {"type": types.CHAT_REQUEST, "id": request_id, "init": {"method": "POST", "body": text}}


async def ask(client: TestClient, request_id: str = "r1", text: str = "hi") -> None:
    """Send a first question."""
    await client.send(request(request_id, [user(f"u-{request_id}", text)]))


async def ack(client: TestClient, request_id: str) -> None:
    """Take an offered stream."""
    await client.send({"type": types.STREAM_RESUME_ACK, "id": request_id})


async def probe(client: TestClient, probe_id: str) -> JsonObject:
    """Ask whether there is something to resume; gives the answer."""
    await client.send({"type": types.STREAM_RESUME_REQUEST, "probeId": probe_id})
    return await client.wait_for(lambda frame: frame.get("probeId") == probe_id)


def responses(client: TestClient, request_id: str = "r1") -> list[JsonObject]:
    """The chat responses that a client got for a request."""
    return [frame for frame in client.of_type(types.CHAT_RESPONSE) if frame["id"] == request_id]


def chunk_of(frame: JsonObject) -> JsonObject:
    """The chunk in a response."""
    return loads_object(str(frame["body"])) or {}


def chunks_of(client: TestClient, request_id: str = "r1") -> list[JsonObject]:
    """The chunks that a client got for a request, in order."""
    return [chunk_of(frame) for frame in responses(client, request_id) if frame["body"]]


def text_of(client: TestClient, request_id: str = "r1") -> str:
    """The text that a client has put together for a request; each `start` begins anew."""
    text = ""
    for chunk in chunks_of(client, request_id):
        if chunk.get("type") == "start":
            text = ""
        text += str(chunk.get("delta", ""))
    return text


def endings(client: TestClient, request_id: str = "r1") -> list[JsonObject]:
    """The final frames that a client got for a request."""
    return [frame for frame in responses(client, request_id) if frame["done"]]


def transcripts(client: TestClient) -> list[object]:
    """The transcripts that a client was sent after it was greeted with one."""
    sent = client.of_type(types.CHAT_MESSAGES)
    return [frame["messages"] for frame in sent if "connect" not in frame]


def kinds(client: TestClient) -> list[str]:
    """The types of the frames that a client got, in order."""
    return [str(frame["type"]) for frame in client.frames]
