"""`Think` with tools that a page executes, and with tools that need a person's approval."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ToolReturnPart

import ramet
from ramet.chat.lapsing import LAPSED
from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.protocol.messages import parts_of, user_message
from ramet.testing import Gate, Harness, Reasoning, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat, connected, harness

WEATHER: JsonObject = {
    "name": "getWeather",
    "description": "The weather, as the page knows it",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ran: list[str] = []


def danger(target: str) -> str:
    """Do something dangerous."""
    ran.append(target)
    return f"{target} is gone"


@ramet.idempotent
def harmless(target: str) -> str:
    """Do something that may be done twice."""
    ran.append(target)
    return f"{target} is fine"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def assistant(
    monkeypatch: pytest.MonkeyPatch, *answers: Any, tools: tuple[object, ...] = ()
) -> ScriptedModel:
    model = ScriptedModel(list(answers))
    monkeypatch.setattr(Assistant, "script", model)
    monkeypatch.setattr(Assistant, "more_tools", tools)
    return model


async def ask(chat: Chat, text: str, **body: object) -> None:
    chat.asked += 1
    messages = [*chat.transcript, user_message(text, id=f"u{chat.asked}")]
    asked = dumps({"messages": messages, **body})
    await chat.client.send(
        {
            "type": "cf_agent_use_chat_request",
            "id": f"r{chat.asked}",
            "init": {"method": "POST", "body": asked},
        }
    )


async def give(chat: Chat, call_id: str, output: JsonValue) -> None:
    await chat.client.send(
        {
            "type": "cf_agent_tool_result",
            "toolCallId": call_id,
            "toolName": "getWeather",
            "output": output,
            "autoContinue": True,
        }
    )


async def decide(chat: Chat, call_id: str, *, approved: bool) -> None:
    await chat.client.send(
        {
            "type": "cf_agent_tool_approval",
            "toolCallId": call_id,
            "approved": approved,
            "autoContinue": True,
        }
    )


def returns(messages: list[ModelMessage]) -> list[tuple[str, str, object]]:
    """The tool results that the model was told: call, outcome, content."""
    return [
        (part.tool_call_id, part.outcome, part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


async def test_the_tools_of_a_page_are_offered_to_the_model_and_end_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(
        monkeypatch,
        [Reasoning("Ask the page."), ToolCall("getWeather", {"city": "Oslo"}, "c1")],
        "It is sunny.",
        "That is all.",
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Weather?", clientTools=[WEATHER])
        offered = {tool.name: tool for tool in model.requests[0].tools}
        assert offered["getWeather"].parameters_json_schema == WEATHER["parameters"]
        assert chat.chunks("r1")[-1] == {"type": "finish", "finishReason": "stop"}
        assert chat.tool_parts()[0]["state"] == "input-available"
        await give(chat, "c1", "sunny")
        await host.advance(0.05)
        assert returns(model.requests[1].messages) == [("c1", "success", "sunny")]
        said = model.requests[1].messages[-2]
        assert [part.part_kind for part in said.parts] == ["thinking", "tool-call"]
        assert "getWeather" in model.requests[1].tool_names
        assert [part["type"] for part in parts_of(chat.answer)] == [
            "step-start",
            "reasoning",
            "tool-getWeather",
            "step-start",
            "text",
        ]
        await ask(chat, "and?")
        assert "getWeather" not in model.requests[2].tool_names


async def test_an_own_tool_wins_over_one_of_the_page_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(
        monkeypatch, ToolCall("harmless", {"target": "cat"}), "Done.", tools=(harmless,)
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go", clientTools=[{"name": "harmless"}, WEATHER])
        assert chat.tool_parts()[0]["output"] == "cat is fine"
        assert model.requests[0].tool_names.count("harmless") == 1


async def test_a_page_may_answer_while_another_tool_of_the_step_holds_up_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    async def slow() -> str:
        """Take your time."""
        await gate.wait()
        return "slowly"

    model = assistant(
        monkeypatch,
        [ToolCall("slow", {}, "c1"), ToolCall("getWeather", {}, "c2")],
        "Done.",
        tools=(Tool(slow, sequential=True),),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go", clientTools=[WEATHER])
        await gate.reached()
        await give(chat, "c2", "sunny")
        gate.open()
        await host.advance(1)
        assert returns(model.requests[1].messages) == [
            ("c1", "success", "slowly"),
            ("c2", "success", "sunny"),
        ]
        assert [part["output"] for part in chat.tool_parts()] == ["slowly", "sunny"]


async def test_an_answer_that_is_stopped_does_not_go_on_for_what_a_page_has_answered_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    async def slow() -> None:
        """Take your time."""
        await gate.wait()

    calls = [ToolCall("slow", {}, "c1"), ToolCall("getWeather", {}, "c2")]
    model = assistant(monkeypatch, calls, "Done.", tools=(slow,))
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go", clientTools=[WEATHER])
        await gate.reached()
        await give(chat, "c2", "sunny")
        await chat.cancel("r1")
        await host.advance(5)
        assert [part["state"] for part in chat.tool_parts()] == ["output-error", "output-available"]
        assert len(model.requests) == 1
        assert chat.client.of_type("cf_agent_stream_resume_none")


async def test_server_tools_of_the_same_step_have_run_when_the_page_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(
        monkeypatch,
        [ToolCall("getWeather", {}, "c1"), ToolCall("harmless", {"target": "cat"}, "c2")],
        "Done.",
        tools=(harmless,),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go", clientTools=[WEATHER])
        assert [part["state"] for part in chat.tool_parts()] == [
            "input-available",
            "output-available",
        ]
        await give(chat, "c1", {"sky": "blue"})
        await host.advance(0.05)
        assert returns(model.requests[1].messages) == [
            ("c1", "success", {"sky": "blue"}),
            ("c2", "success", "cat is fine"),
        ]


async def test_an_approved_tool_runs_in_the_continuation_and_the_model_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(
        monkeypatch,
        ToolCall("danger", {"target": "cat"}, "c1"),
        "Gone.",
        tools=(Tool(danger, requires_approval=True),),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        assert (chat.tool_parts()[0]["state"], ran) == ("approval-requested", [])
        await decide(chat, "c1", approved=True)
        await decide(chat, "c1", approved=True)
        await host.advance(0.05)
        assert ran == ["cat"]
        assert returns(model.requests[1].messages) == [("c1", "success", "cat is gone")]
        assert chat.tool_parts()[0]["output"] == "cat is gone"
        assert chat.said == "Gone."
        rows = host.rows(
            Assistant, "a", "SELECT message FROM cf_think_steps WHERE tool_call_id = 'c1'"
        )
        assert "cat is gone" in str(rows[0]["message"])


async def test_a_refused_tool_does_not_run_and_the_model_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(
        monkeypatch,
        ToolCall("danger", {"target": "cat"}, "c1"),
        "As you wish.",
        tools=(Tool(danger, requires_approval=True),),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        await decide(chat, "c1", approved=False)
        await host.advance(0.05)
        assert ran == []
        assert [outcome for _, outcome, _ in returns(model.requests[1].messages)] == ["denied"]
        assert chat.tool_parts()[0]["state"] == "output-denied"
        assert chat.said == "As you wish."


async def test_input_that_does_not_fit_is_told_to_the_model_before_a_person_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant(
        monkeypatch,
        ToolCall("danger", {"goal": 1}),
        "Sorry.",
        tools=(Tool(danger, requires_approval=True),),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        assert chat.tool_parts()[0]["state"] == "output-error"
        assert chat.said == "Sorry."


@pytest.mark.parametrize("tool", [danger, harmless])
async def test_a_crash_in_an_approved_tool_runs_it_again_only_where_it_may(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "chat_recovery", True)
    name = str(getattr(tool, "__name__", ""))
    model = assistant(
        monkeypatch,
        ToolCall(name, {"target": "cat"}, "c1"),
        "Well.",
        tools=(Tool(stalling(tool, name), requires_approval=True),),
    )
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        await decide(chat, "c1", approved=True)
        await host.advance(0.05)
        assert ran == ["begun"]
        await host.crash()
        await host.restart()
        monkeypatch.setattr(Assistant, "more_tools", (Tool(tool, requires_approval=True),))
        chat = await connected(host)
        await host.advance(1)
        outcome = returns(model.requests[1].messages)
        if tool is harmless:
            assert outcome == [("c1", "success", "cat is fine")]
        else:
            assert [each[1] for each in outcome] == ["failed"]
            assert ran == ["begun"]


def stalling(tool: object, name: str) -> Any:
    """The same tool, but one that never ends."""

    async def stall(target: str) -> str:
        """Never end."""
        ran.append("begun")
        await asyncio.Event().wait()
        return target

    stall.__name__ = name
    return ramet.idempotent(stall) if tool is harmless else stall


@pytest.mark.parametrize("needs_approval", [False, True])
async def test_a_page_cannot_answer_for_a_tool_that_runs_here(
    needs_approval: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()

    async def slow() -> str:
        """Take your time."""
        await gate.wait()
        return "the truth"

    tool = Tool(slow, requires_approval=needs_approval)
    model = assistant(monkeypatch, ToolCall("slow", {}, "c1"), "So be it.", tools=(tool,))
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        if needs_approval:
            await decide(chat, "c1", approved=True)
            await host.advance(0.05)
        await gate.reached()
        seen = len(chat.client.of_type("cf_agent_message_updated"))
        await give(chat, "c1", "forged")
        assert len(chat.client.of_type("cf_agent_message_updated")) == seen
        gate.open()
        await host.settle()
        assert returns(model.requests[1].messages) == [("c1", "success", "the truth")]
        assert [part["output"] for part in chat.tool_parts()] == ["the truth"]
        await host.advance(1)
        assert len(model.requests) == 2


@pytest.mark.parametrize("approved", [False, True])
async def test_a_page_cannot_answer_for_a_tool_that_waits_for_an_approval_or_is_about_to_run(
    approved: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = Tool(danger, requires_approval=True)
    call = ToolCall("danger", {"target": "cat"}, "c1")
    model = assistant(monkeypatch, call, "Gone.", tools=(tool,))
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go", clientTools=[{"name": "danger"}])
        if approved:
            await decide(chat, "c1", approved=True)
        await give(chat, "c1", "forged")
        await host.advance(0.05)
        if not approved:
            await decide(chat, "c1", approved=True)
            await host.advance(0.05)
        assert ran == ["cat"]
        assert returns(model.requests[1].messages) == [("c1", "success", "cat is gone")]


async def test_the_model_is_told_that_an_approval_came_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool(danger, requires_approval=True)
    call = ToolCall("danger", {"target": "cat"}, "c1")
    model = assistant(monkeypatch, call, "Fine.", "Well.", tools=(tool,))
    async with harness(tmp_path) as host:
        chat = await connected(host)
        await ask(chat, "Go")
        await ask(chat, "Never mind")
        await decide(chat, "c1", approved=True)
        await host.advance(1)
        assert ran == []
        await ask(chat, "And now?")
        assert returns(model.requests[2].messages) == [("c1", "failed", LAPSED)]


class Parent(ramet.Agent[None]):
    async def run(self) -> ramet.RunResult[object]:
        return await self.run_agent_tool(Assistant, input="work", run_id="run1")


async def test_tools_of_a_page_that_looks_into_a_child_stay_out_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assistant(monkeypatch, ToolCall("getWeather", {}), "None.")
    async with Harness(agents=[Parent], sub_agents=[Assistant], data_dir=tmp_path) as host:
        parent = await host.agent(Parent, "p")
        client = await host.connect(Parent, "p")
        result = await parent.run()
        await host.settle()
        assert result.status == "completed"
        assert "getWeather" not in model.requests[0].tool_names
        assert client.of_type("agent-tool-event")
