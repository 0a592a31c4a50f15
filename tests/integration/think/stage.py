"""Assistants with scripted models, as tests of `Think` talk to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic_ai.models import Model
from typing_extensions import TypedDict

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject, dumps, loads_object
from ramet.protocol.messages import parts_of, text_of, user_message
from ramet.testing import Harness, TestClient
from ramet.testing.scripted_model import ScriptedModel


class Topic(TypedDict):
    """What a researcher is asked."""

    topic: str


class Researcher(ramet.Think):
    """A child that answers by a rule of its test."""

    chat_recovery: ramet.ChatRecovery | bool = False

    rule: ClassVar[ScriptedModel] = ScriptedModel([])

    def get_model(self) -> Model:
        return self.rule


class Assistant(ramet.Think):
    """An assistant whose model and tools a test sets."""

    chat_recovery: ramet.ChatRecovery | bool = False

    script: ClassVar[ScriptedModel] = ScriptedModel([])
    more_tools: ClassVar[Sequence[object]] = ()
    refuses: ClassVar[str] = ""
    instructions = "Be brief."

    def __init__(self) -> None:
        self.seen: list[JsonObject] = []

    def before_turn(self, turn: Turn) -> None:
        if self.refuses:
            raise PermissionError(self.refuses)

    def on_chunk(self, chunk: JsonObject) -> None:
        self.seen.append(chunk)

    def get_model(self) -> Model:
        return self.script

    def get_tools(self) -> list[object]:
        research = ramet.agent_tool(
            Researcher, name="research", description="Research a topic.", input=Topic, icon="R"
        )
        return [research, *self.more_tools]


def harness(path: Path) -> Harness:
    return Harness(agents=[Assistant], sub_agents=[Researcher], data_dir=path)


@dataclass
class Chat:
    """One client of one assistant."""

    client: TestClient
    asked: int = 0

    async def ask(self, text: str) -> str:
        """Send a message and let the turn go as far as it goes; returns the request's id."""
        self.asked += 1
        request = f"r{self.asked}"
        body = {"messages": [*self.transcript, user_message(text, id=f"u{self.asked}")]}
        await self.client.send(
            {
                "type": "cf_agent_use_chat_request",
                "id": request,
                "init": {"method": "POST", "body": dumps(body)},
            }
        )
        return request

    @property
    def transcript(self) -> list[JsonObject]:
        """The transcript as it was last sent."""
        sent = self.client.of_type("cf_agent_chat_messages")
        messages = sent[-1]["messages"] if sent else []
        assert isinstance(messages, list)
        return [message for message in messages if isinstance(message, dict)]

    @property
    def answer(self) -> JsonObject:
        """The last message."""
        return self.transcript[-1]

    @property
    def said(self) -> str:
        """The text of the last message."""
        return text_of(self.answer)

    def tool_parts(self) -> list[JsonObject]:
        """The tool calls of the last message."""
        return [part for part in parts_of(self.answer) if "toolCallId" in part]

    def chunks(self, request: str) -> list[JsonObject]:
        """The chunks of one answer, as they came."""
        frames = [
            frame
            for frame in self.client.of_type("cf_agent_use_chat_response")
            if frame["id"] == request and frame["body"]
        ]
        found = [loads_object(str(frame["body"])) for frame in frames if not frame.get("error")]
        return [chunk for chunk in found if chunk is not None]

    def end(self, request: str) -> JsonObject:
        """The final frame of a request."""
        return next(
            frame
            for frame in self.client.of_type("cf_agent_use_chat_response")
            if frame["id"] == request and frame["done"]
        )

    async def cancel(self, request: str) -> None:
        """Cancel a request."""
        await self.client.send({"type": "cf_agent_chat_request_cancel", "id": request})


async def connected(harness: Harness, name: str = "a") -> Chat:
    """A chat with a client of its own."""
    return Chat(await harness.connect(Assistant, name))
