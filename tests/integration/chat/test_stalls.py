"""Answers that stand still, and tools that take their time (CR-026)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject
from ramet.protocol.messages import parts_of
from ramet.testing import Gate, Harness, ScriptedModel, ToolCall
from tests.integration.chat.support import END, Fed, ask, endings

CALL: JsonObject = {
    "type": "tool-input-available",
    "toolCallId": "c1",
    "toolName": "look",
    "input": {},
}
RESULT: JsonObject = {"type": "tool-output-available", "toolCallId": "c1", "output": 7}


class Watched(Fed):
    """Is taken for stalled after 20 seconds."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()
    chat_stream_stall_timeout: float | timedelta = 20


class Looking(ramet.Think):
    """Has a tool that takes long, and a model that may too."""

    chat_stream_stall_timeout: float | timedelta = 20
    script = ScriptedModel([])
    gate = Gate()

    def get_model(self) -> Model:
        return self.script

    def get_tools(self) -> list[object]:
        return [self.look]

    async def look(self, at: str) -> str:
        """Look at something."""
        await self.gate.wait()
        return f"saw {at}"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Watched, Looking], data_dir=tmp_path) as running:
        yield running


async def streaming(host: Harness, *given: object) -> Watched:
    client = await host.connect(Watched, "a")
    agent = await host.agent(Watched, "a")
    await ask(client)
    agent.give(*given)
    await host.settle()
    return agent


@pytest.mark.behaviour("CR-026")
async def test_the_time_of_a_tool_is_no_standstill(host: Harness) -> None:
    agent = await streaming(host, CALL)
    await host.advance(600)
    agent.give(RESULT)
    await host.advance(19)
    agent.give("seven", END)
    await host.settle()
    assert len(agent.turns) == 1


@pytest.mark.behaviour("CR-026")
@pytest.mark.parametrize(
    "given",
    [
        [CALL, RESULT],
        [CALL, {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no"}],
        [{**CALL, "providerExecuted": True}],
        ["text"],
    ],
    ids=["result", "error", "the model's own tool", "text"],
)
async def test_a_model_that_stands_still_is_noticed(host: Harness, given: list[object]) -> None:
    agent = await streaming(host, *given)
    await host.advance(21)
    assert len(agent.turns) == 2


@pytest.mark.behaviour("CR-026")
async def test_a_tool_runs_until_its_last_output(host: Harness) -> None:
    agent = await streaming(host, CALL, {**RESULT, "preliminary": True})
    await host.advance(100)
    assert len(agent.turns) == 1
    agent.give(RESULT)
    await host.advance(21)
    assert len(agent.turns) == 2


@pytest.mark.behaviour("CR-026")
async def test_one_tool_of_several_is_enough(host: Harness) -> None:
    agent = await streaming(host, CALL, {**CALL, "toolCallId": "c2"}, RESULT)
    await host.advance(100)
    assert len(agent.turns) == 1


@pytest.mark.behaviour("CR-026", "D9")
async def test_a_slow_tool_of_a_think_is_waited_for_and_a_slow_model_is_not(host: Harness) -> None:
    Looking.gate, silent = Gate(), Gate()
    look = ToolCall("look", {"at": "a"})
    Looking.script = ScriptedModel([["Well: ", look], ["I ", silent], "I saw it."])
    client = await host.connect(Looking, "a")
    await ask(client)
    await host.advance(600)
    Looking.gate.open()
    await host.settle()
    assert endings(client) == []
    await host.advance(21)
    assert [ending["outcome"] for ending in endings(client)] == ["recovering"]
    agent = await host.agent(Looking, "a")
    texts = [part["text"] for part in parts_of(agent.messages[-1]) if part["type"] == "text"]
    assert texts == ["Well: ", "I saw it."]
