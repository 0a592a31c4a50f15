"""What a `Think` may override as coroutines, and toolsets that have to be opened."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from pydantic_ai.models import Model
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

import ramet
from ramet.core.json import JsonObject, dumps
from ramet.protocol.messages import text_of, user_message
from ramet.testing import Gate, Harness, ScriptedModel, TestClient, ToolCall


class Connected(WrapperToolset[object]):
    """A toolset that has to be opened, and notes it."""

    log: ClassVar[list[str]] = []
    fails: ClassVar[bool] = False

    async def __aenter__(self) -> Self:
        if self.fails:
            raise ConnectionError("the tool server is down")
        self.log.append("opened")
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        self.log.append("closed")
        return None


class Late(ramet.Think):
    """Gives everything from coroutines."""

    script: ClassVar[ScriptedModel] = ScriptedModel([])
    gate: ClassVar[Gate | None] = None

    async def get_model(self) -> Model:
        return self.script

    async def get_system_prompt(self) -> str:
        return f"You are {self.name}."

    async def get_tools(self) -> list[object]:
        async def look() -> str:
            Connected.log.append("looked")
            if self.gate is not None:
                await self.gate.wait()
            return "seen"

        return [Connected(FunctionToolset[object]([look], instructions="Look first."))]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[TestClient]:
    Connected.log, Connected.fails, Late.gate = [], False, None
    async with Harness(agents=[Late], data_dir=tmp_path) as host:
        yield await host.connect(Late, "late")


async def ask(client: TestClient) -> None:
    body = dumps({"messages": [user_message("go", id="u1")]})
    init: JsonObject = {"method": "POST", "body": body}
    await client.send({"type": "cf_agent_use_chat_request", "id": "r1", "init": init})


def end(client: TestClient) -> JsonObject:
    return next(frame for frame in client.of_type("cf_agent_use_chat_response") if frame["done"])


def answer(client: TestClient) -> str:
    messages = client.of_type("cf_agent_chat_messages")[-1]["messages"]
    assert isinstance(messages, list)
    assert isinstance(messages[-1], dict)
    return text_of(messages[-1])


async def test_model_prompt_and_tools_may_come_from_coroutines(client: TestClient) -> None:
    Late.script = ScriptedModel([ToolCall("look"), "done"])
    await ask(client)
    assert answer(client) == "done"
    assert Late.script.requests[0].instructions == "You are late.\n\nLook first."


async def test_a_toolset_is_open_during_the_turn_and_closed_after_it(client: TestClient) -> None:
    Late.script = ScriptedModel([ToolCall("look"), "done"])
    await ask(client)
    assert Connected.log == ["opened", "looked", "closed"]


async def test_a_toolset_is_closed_when_its_turn_is_cancelled(client: TestClient) -> None:
    Late.script, Late.gate = ScriptedModel([ToolCall("look")]), Gate()
    await ask(client)
    assert Connected.log == ["opened", "looked"]
    await client.send({"type": "cf_agent_chat_request_cancel", "id": "r1"})
    assert Connected.log == ["opened", "looked", "closed"]
    assert end(client)["outcome"] == "aborted"


async def test_a_toolset_that_cannot_be_opened_ends_the_turn(client: TestClient) -> None:
    Late.script, Connected.fails = ScriptedModel([]), True
    await ask(client)
    assert (end(client)["outcome"], end(client)["body"]) == ("error", "the tool server is down")
    assert Late.script.requests == []
