"""The children: eight words, with progress after each and a milestone after the fourth."""

from collections.abc import AsyncIterator
from typing import Protocol

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

import ramet
from ramet.core.json import JsonObject
from tests.wire.parts import closing, opening, spoken
from tests.wire.script import (
    DEFAULT_PACE,
    RECOVERY,
    WORDS,
    ScriptedFailure,
    Topic,
    last_asked,
    pause,
)

LET_GO = ramet.Detached(notify=True, on_milestones=["halfway"])
"""How `background` lets go of a researcher: the chat hears of the milestone and of the end."""

_topics = TypeAdapter(Topic)


class _Reports(Protocol):
    """The part of a chat agent that the script reports to."""

    async def report_progress(
        self, *, fraction: float | None = None, milestone: str | None = None, data: object = None
    ) -> object: ...


async def _words(agent: _Reports, topic: Topic) -> AsyncIterator[str]:
    """The eight words; what is reported after a word comes once the word was taken."""
    for index, word in enumerate(WORDS):
        yield word if index == 0 else f" {word}"
        await agent.report_progress(fraction=(index + 1) / len(WORDS))
        if index == 3:
            await agent.report_progress(milestone="halfway", data={"seen": 4})
            if topic.get("fail"):
                raise ScriptedFailure
        await pause(topic.get("ms", DEFAULT_PACE))


class Researcher(ramet.AIChatAgent):
    """The scripted child that streams its own chunks."""

    chat_recovery = RECOVERY

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
        topic = _topics.validate_json(last_asked(turn.messages).text)
        for chunk in opening():
            yield chunk
        async for chunk in spoken("text", "t1", _words(self, topic)):
            yield chunk
        for chunk in closing():
            yield chunk

    def get_agent_tool_summary(self, run_id: str, output: object) -> str:
        return _summary(self.agent_tool_child_run(run_id))


class ThinkResearcher(ramet.Think):
    """The same child, driven by a scripted model."""

    chat_recovery = RECOVERY

    def __init__(self) -> None:
        self.asked = ""

    def before_turn(self, turn: ramet.Turn) -> None:
        self.asked = last_asked(turn.messages).text

    def get_model(self) -> Model:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            topic = _topics.validate_json(self.asked)
            async for word in _words(self, topic):
                yield word

        return FunctionModel(stream_function=stream, model_name="scripted")

    def get_agent_tool_summary(self, run_id: str, output: object) -> str:
        return _summary(self.agent_tool_child_run(run_id))


def _summary(run: ramet.ChildRun) -> str:
    return f"{_topics.validate_python(run.input)['topic']} summary"
