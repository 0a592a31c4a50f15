"""A page is shown a call of its tool once `before_tool_call` has let it through, not before."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic_ai import Tool

import ramet
from ramet.testing import Gate, Harness
from ramet.testing.scripted_model import Answer, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat
from tests.integration.think.test_page_tools import WEATHER, ask, decide, give, returns


class Careful(Assistant):
    """Thinks about every call, and forbids some."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()

    thinks: ClassVar[dict[str, Gate]] = {}
    forbids: ClassVar[set[str]] = set()

    async def before_tool_call(self, call: ramet.ToolCallInfo) -> None:
        if call.tool_call_id in self.thinks:
            await self.thinks[call.tool_call_id].wait()
        if call.tool_call_id in self.forbids:
            raise PermissionError("not today")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    Careful.thinks, Careful.forbids = {}, set()
    async with Harness(agents=[Careful], data_dir=tmp_path) as running:
        yield running


def scripted(*answers: Answer, tools: tuple[object, ...] = ()) -> ScriptedModel:
    Careful.script, Careful.more_tools = ScriptedModel([*answers]), tools
    return Careful.script


async def connected(host: Harness) -> Chat:
    return Chat(await host.connect(Careful, "a"))


def shown(chat: Chat, call_id: str, request: str = "r1") -> list[object]:
    """The chunks of a call, but for those of its input as it comes."""
    return [
        chunk["type"]
        for chunk in chat.chunks(request)
        if chunk.get("toolCallId") == call_id and chunk["type"] != "tool-input-delta"
    ]


async def test_a_call_that_the_hook_forbids_is_never_given_to_the_page(host: Harness) -> None:
    Careful.thinks, Careful.forbids = {"c1": Gate()}, {"c1"}
    model = scripted(ToolCall("getWeather", {}, "c1"), "Then not.")
    chat = await connected(host)
    await ask(chat, "Go", clientTools=[WEATHER])
    assert shown(chat, "c1") == ["tool-input-start"]
    await give(chat, "c1", "sunny")
    Careful.thinks["c1"].open()
    await host.advance(1)
    assert shown(chat, "c1") == ["tool-input-start", "tool-input-available", "tool-output-error"]
    assert [told[:2] for told in returns(model.requests[1].messages)] == [("c1", "failed")]
    assert (chat.said, len(model.requests)) == ("Then not.", 2)


async def test_a_call_that_the_hook_allows_is_given_to_the_page_at_once(host: Harness) -> None:
    Careful.thinks = {"c1": Gate(), "c2": Gate()}
    calls = [ToolCall("getWeather", {"city": "Ulm"}, "c1"), ToolCall("getWeather", {}, "c2")]
    model = scripted(calls, "Sunny.")
    chat = await connected(host)
    await ask(chat, "Go", clientTools=[WEATHER])
    Careful.thinks["c2"].open()
    await host.settle()
    assert [shown(chat, call) for call in ("c1", "c2")] == [
        ["tool-input-start"],
        ["tool-input-start", "tool-input-available"],
    ]
    await give(chat, "c2", "windy")
    Careful.thinks["c1"].open()
    await host.settle()
    assert chat.tool_parts()[0]["input"] == {"city": "Ulm"}
    await give(chat, "c1", "sunny")
    await host.advance(1)
    assert [told[2] for told in returns(model.requests[1].messages)] == ["sunny", "windy"]
    assert (chat.said, len(model.requests)) == ("Sunny.", 2)


@pytest.mark.behaviour("CR-011", "CR-016")
@pytest.mark.parametrize("asks", [False, True])
async def test_a_call_about_which_the_hook_was_thinking_at_a_crash_is_given_to_the_page_after_it(
    host: Harness, *, asks: bool
) -> None:
    def danger() -> str:
        """Do something dangerous."""
        return "gone"

    Careful.thinks = {"c1": Gate()}
    calls = [ToolCall("getWeather", {}, "c1"), ToolCall("danger", {}, "c2")]
    model = scripted(
        calls if asks else calls[:1], "Well.", tools=(Tool(danger, requires_approval=True),)
    )
    await ask(await connected(host), "Go", clientTools=[WEATHER])
    await host.crash()
    Careful.thinks = {}
    await host.restart()
    chat = await connected(host)
    await host.advance(1)
    assert chat.tool_parts()[0]["state"] == "input-available"
    await give(chat, "c1", "sunny")
    if asks:
        await decide(chat, "c2", approved=True)
    await host.advance(1)
    told = [told[2] for told in returns(model.requests[1].messages)]
    assert told == (["sunny", "gone"] if asks else ["sunny"])
    assert (chat.said, len(model.requests)) == ("Well.", 2)


async def test_a_refusal_that_a_crash_kept_from_being_shown_is_shown_with_its_call(
    host: Harness,
) -> None:
    Careful.thinks, Careful.forbids = {"c2": Gate()}, {"c1"}
    calls = [ToolCall("getWeather", {}, "c1"), ToolCall("getWeather", {}, "c2")]
    model = scripted(calls, "Well.")
    await ask(await connected(host), "Go", clientTools=[WEATHER])
    await host.crash()
    Careful.thinks, Careful.forbids = {}, set()
    await host.restart()
    chat = await connected(host)
    await host.advance(1)
    states = [part["state"] for part in chat.tool_parts()]
    assert states == ["output-error", "input-available"]
    await give(chat, "c2", "sunny")
    await host.advance(1)
    outcomes = [told[:2] for told in returns(model.requests[1].messages)]
    assert outcomes == [("c1", "failed"), ("c2", "success")]
