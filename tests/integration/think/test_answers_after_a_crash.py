"""What pages answer between a crash and the turn that goes on after it (D5, D9, PROTOCOL 4.7)."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic_ai import Tool
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

import ramet
from ramet.core.json import dumps
from ramet.testing import Gate, Harness
from ramet.testing.scripted_model import Answer, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat
from tests.integration.think.test_page_tools import WEATHER, ask, decide, give, returns


class Asked(Assistant):
    """An assistant whose lost turns go on when its test lets them."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()

    waits: ClassVar[Gate | None] = None
    holds: ClassVar[Gate | None] = None
    """Where calls wait before anything is done about them."""

    async def on_step_finish(self, result: ramet.StepResult) -> None:
        if self.holds is not None:
            await self.holds.wait()

    keeps: ClassVar[bool] = True
    """Whether what there is of a lost answer is kept."""
    proceeds: ClassVar[bool] = True
    """Whether it goes on."""

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> ramet.ChatRecoveryDecision:
        if self.waits is not None:
            await self.waits.wait()
        return ramet.ChatRecoveryDecision(persist=self.keeps, proceed=self.proceeds)


class Doing:
    """Tools that note what they do; `slow` waits as long as there is a gate."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.gate: Gate | None = Gate()

    async def slow(self) -> str:
        """Take your time."""
        self.did.append("slow")
        if self.gate is not None:
            await self.gate.wait()
        return "the truth"

    @ramet.idempotent
    async def again(self) -> str:
        """Take your time, twice if need be."""
        return await self.slow()

    def danger(self) -> str:
        """Do something dangerous."""
        self.did.append("danger")
        return "gone"


@pytest.fixture
def doing() -> Doing:
    return Doing()


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    Asked.waits = Asked.holds = None
    Asked.keeps = Asked.proceeds = True
    async with Harness(agents=[Asked], data_dir=tmp_path) as running:
        yield running


def scripted(*answers: Answer, tools: Sequence[object]) -> ScriptedModel:
    Asked.script, Asked.more_tools = ScriptedModel([*answers]), tools
    return Asked.script


async def connected(host: Harness) -> Chat:
    return Chat(await host.connect(Asked, "a"), asked=1)


async def crashed(host: Harness, doing: Doing) -> Chat:
    """Kill the process; in the next one nothing of the turn is decided yet."""
    doing.gate = Asked.holds = None
    Asked.waits = Gate()
    await host.crash()
    await host.restart()
    chat = await connected(host)
    await host.settle()
    return chat


async def decided(host: Harness) -> None:
    """Let recovery go on, and what a page has asked for after it."""
    assert Asked.waits is not None
    Asked.waits.open()
    await host.advance(1)


@pytest.mark.parametrize("name", ["slow", "again"])
async def test_a_page_cannot_answer_for_a_tool_that_ran_when_the_process_died(
    host: Harness, doing: Doing, name: str
) -> None:
    model = scripted(ToolCall(name, {}, "c1"), "So be it.", tools=[doing.slow, doing.again])
    await ask(await connected(host), "Go", clientTools=[{"name": name}])
    chat = await crashed(host, doing)
    await give(chat, "c1", "forged")
    assert [part["state"] for part in chat.tool_parts()] == ["input-available"]
    assert not chat.client.of_type("cf_agent_message_updated")
    await decided(host)
    (told,) = returns(model.requests[1].messages)
    (part,) = chat.tool_parts()
    if name == "again":
        assert (told[2], part["output"]) == ("the truth", "the truth")
    else:
        assert (told[1], part["state"]) == ("failed", "output-error")
    assert chat.said == "So be it."
    assert len(model.requests) == 2


async def test_a_page_cannot_answer_in_place_of_a_person_who_was_not_asked_yet(
    host: Harness, doing: Doing
) -> None:
    danger = Tool(doing.danger, requires_approval=True)
    model = scripted(ToolCall("danger", {}, "c1"), "Gone.", tools=[danger])
    Asked.holds = Gate()
    await ask(await connected(host), "Go")
    chat = await crashed(host, doing)
    await give(chat, "c1", "forged")
    await decide(chat, "c1", approved=True)
    await decided(host)
    assert (chat.tool_parts()[0]["state"], doing.did) == ("approval-requested", [])
    await decide(chat, "c1", approved=True)
    await host.advance(1)
    assert doing.did == ["danger"]
    assert returns(model.requests[1].messages) == [("c1", "success", "gone")]


async def test_a_tool_of_the_page_is_answered_in_between_and_the_servers_is_not(
    host: Harness, doing: Doing
) -> None:
    calls = [ToolCall("getWeather", {}, "c1"), ToolCall("slow", {}, "c2")]
    model = scripted(calls, "Sunny.", tools=[doing.slow])
    await ask(await connected(host), "Go", clientTools=[WEATHER])
    chat = await crashed(host, doing)
    await give(chat, "c2", "forged")
    await give(chat, "c1", "sunny")
    await decided(host)
    first, second = returns(model.requests[1].messages)
    assert first == ("c1", "success", "sunny")
    assert second[:2] == ("c2", "failed")
    assert chat.said == "Sunny."


async def test_a_tool_that_is_executed_outside_is_answered_in_between(
    host: Harness, doing: Doing
) -> None:
    outside = ExternalToolset[object]([ToolDefinition(name="elsewhere")])
    calls = [ToolCall("elsewhere", {}, "c1"), ToolCall("again", {}, "c2")]
    model = scripted(calls, "Well.", tools=[outside, doing.again])
    await ask(await connected(host), "Go")
    chat = await crashed(host, doing)
    await give(chat, "c1", "from there")
    await decided(host)
    assert [told[2] for told in returns(model.requests[1].messages)] == ["from there", "the truth"]
    assert chat.said == "Well."


async def test_a_tool_that_hands_its_call_on_is_answered_by_the_page(
    host: Harness, doing: Doing
) -> None:
    def hand_on() -> str:
        """Let somebody else do it."""
        raise CallDeferred

    model = scripted(ToolCall("hand_on", {}, "c1"), "Well.", tools=[hand_on])
    chat = await connected(host)
    await ask(chat, "Go")
    await give(chat, "c1", "done by a page")
    await host.advance(1)
    assert returns(model.requests[1].messages) == [("c1", "success", "done by a page")]


@pytest.mark.behaviour("CR-011", "CR-016")
@pytest.mark.parametrize("in_between", [False, True])
async def test_a_person_is_still_asked_when_a_tool_of_the_same_step_was_cut(
    host: Harness, doing: Doing, *, in_between: bool
) -> None:
    danger = Tool(doing.danger, requires_approval=True)
    calls = [ToolCall("danger", {}, "c1"), ToolCall("slow", {}, "c2")]
    model = scripted(calls, "Gone.", tools=[danger, doing.slow])
    await ask(await connected(host), "Go")
    chat = await crashed(host, doing)
    if in_between:
        await decide(chat, "c1", approved=True)
    await decided(host)
    if not in_between:
        states = [part["state"] for part in chat.tool_parts()]
        assert states == ["approval-requested", "output-error"]
        await decide(chat, "c1", approved=True)
        await host.advance(1)
    assert doing.did == ["slow", "danger"]
    told = returns(model.requests[1].messages)
    assert [each[:2] for each in told] == [("c1", "success"), ("c2", "failed")]
    assert chat.said == "Gone."


async def lost_continuation(host: Harness, doing: Doing) -> Chat:
    """A turn that goes on after a page's answer, and is cut off in the calls that it makes."""
    chat = await connected(host)
    await ask(chat, "Go", clientTools=[WEATHER])
    await give(chat, "c0", "cold")
    await host.advance(1)
    return await crashed(host, doing)


@pytest.mark.behaviour("AC-001", "CR-016")
@pytest.mark.parametrize("twice", [False, True])
async def test_a_call_that_only_a_lost_continuation_has_made_is_answered_in_between(
    host: Harness, doing: Doing, *, twice: bool
) -> None:
    first, more = ToolCall("getWeather", {}, "c0"), ToolCall("getWeather", {}, "c1")
    slow = ToolCall("slow", {}, "c2")
    model = scripted(first, [more, slow], "Well.", tools=[doing.slow])
    chat = await lost_continuation(host, doing)
    await give(chat, "c2", "forged")
    await give(chat, "c1", "sunny")
    await give(chat, "c1", "too late")
    (updated,) = chat.client.of_type("cf_agent_message_updated")
    assert "sunny" in dumps(updated)
    if twice:
        chat = await crashed(host, doing)
    await decided(host)
    told = returns(model.requests[2].messages)
    assert [each[:2] for each in told] == [
        ("c0", "success"),
        ("c1", "success"),
        ("c2", "failed"),
    ]
    assert [part.get("output") for part in chat.tool_parts()] == ["cold", "sunny", None]
    assert (chat.said, len(model.requests), doing.did) == ("Well.", 3, ["slow"])


@pytest.mark.behaviour("CR-016")
async def test_the_only_call_of_a_lost_continuation_is_answered_in_between(
    host: Harness, doing: Doing
) -> None:
    first, more = ToolCall("getWeather", {}, "c0"), ToolCall("getWeather", {}, "c1")
    model = scripted(first, more, "Well.", tools=[])
    chat = await connected(host)
    await ask(chat, "Go", clientTools=[WEATHER])
    Asked.holds = Gate()
    await give(chat, "c0", "cold")
    await host.advance(1)
    chat = await crashed(host, doing)
    await give(chat, "c1", "sunny")
    await decided(host)
    assert [told[2] for told in returns(model.requests[2].messages)] == ["cold", "sunny"]
    assert (chat.said, len(model.requests)) == ("Well.", 3)


@pytest.mark.behaviour("CR-016")
@pytest.mark.parametrize("approved", [False, True])
async def test_a_question_of_a_lost_continuation_is_decided_in_between(
    host: Harness, doing: Doing, *, approved: bool
) -> None:
    danger = Tool(doing.danger, requires_approval=True)
    first = ToolCall("getWeather", {}, "c0")
    model = scripted(
        first,
        [ToolCall("danger", {}, "c1"), ToolCall("slow", {}, "c2")],
        "Well.",
        tools=[danger, doing.slow],
    )
    chat = await lost_continuation(host, doing)
    await give(chat, "c1", "forged")
    await decide(chat, "c1", approved=approved)
    await decided(host)
    assert doing.did == (["slow", "danger"] if approved else ["slow"])
    assert [told[0] for told in returns(model.requests[2].messages)] == ["c0", "c1", "c2"]
    assert chat.tool_parts()[1]["state"] == ("output-available" if approved else "output-denied")
    assert (chat.said, len(model.requests)) == ("Well.", 3)


@pytest.mark.behaviour("CR-012")
async def test_an_answer_that_came_in_between_is_a_result_that_is_never_dropped(
    host: Harness, doing: Doing
) -> None:
    calls = [ToolCall("getWeather", {}, "c1"), ToolCall("slow", {}, "c2")]
    model = scripted(calls, "Sunny.", tools=[doing.slow])
    await ask(await connected(host), "Go", clientTools=[WEATHER])
    Asked.keeps = False
    chat = await crashed(host, doing)
    await give(chat, "c1", "sunny")
    await decided(host)
    told = returns(model.requests[1].messages)
    assert [each[:2] for each in told] == [("c1", "success"), ("c2", "failed")]
    assert (chat.said, len(model.requests)) == ("Sunny.", 2)


@pytest.mark.behaviour("CR-012")
async def test_an_approval_that_came_in_between_goes_with_the_answer_that_is_dropped(
    host: Harness, doing: Doing
) -> None:
    danger = Tool(doing.danger, requires_approval=True)
    calls = [ToolCall("danger", {}, "c1"), ToolCall("slow", {}, "c2")]
    model = scripted(
        calls, ToolCall("again", {}, "c3"), "Well.", tools=[danger, doing.slow, doing.again]
    )
    await ask(await connected(host), "Go")
    Asked.keeps = False
    chat = await crashed(host, doing)
    await decide(chat, "c1", approved=True)
    await decided(host)
    await host.advance(5)
    assert "danger" not in doing.did
    assert [part["toolCallId"] for part in chat.tool_parts()] == ["c3"]
    assert (chat.said, len(model.requests)) == ("Well.", 3)


@pytest.mark.parametrize("end", ["cancelled", "refused"])
async def test_a_lost_answer_that_does_not_go_on_does_not_do_so_for_an_answer_in_between_either(
    host: Harness, doing: Doing, end: str
) -> None:
    calls = [ToolCall("getWeather", {}, "c1"), ToolCall("slow", {}, "c2")]
    model = scripted(calls, "Sunny.", tools=[doing.slow])
    chat = await connected(host)
    await ask(chat, "Go", clientTools=[WEATHER])
    Asked.proceeds = end != "refused"
    chat = await crashed(host, doing)
    await give(chat, "c1", "sunny")
    if end == "cancelled":
        await chat.cancel("r2")
    await decided(host)
    assert [part["state"] for part in chat.tool_parts()] == ["output-available", "output-error"]
    assert len(model.requests) == 1
    assert chat.client.of_type("cf_agent_stream_resume_none")
