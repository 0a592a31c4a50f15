"""A `Think` whose process dies: its turn goes on at the last committed step (D5, D8, D9)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.toolsets import FunctionToolset

import ramet
from ramet.core.json import JsonObject, loads_object
from ramet.protocol.messages import parts_of, text_of
from ramet.testing import Harness
from ramet.testing.scripted_model import Gate, Reasoning, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat, Topic


class Digger(ramet.Think):
    """A child that a test scripts."""

    script: ClassVar[ScriptedModel] = ScriptedModel([])

    def get_model(self) -> Model:
        return self.script


class Lasting(Assistant):
    """An assistant whose turns go on after a crash."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()

    def get_tools(self) -> list[object]:
        dig = ramet.agent_tool(Digger, name="dig", description="Dig.", input=Topic)
        return [dig, *self.more_tools]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    Lasting.more_tools = ()
    async with Harness(agents=[Lasting], sub_agents=[Digger], data_dir=tmp_path) as running:
        yield running


class Notes:
    """What tools did, over all processes of a test."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.ran: list[str] = []
        self.gate = gate

    async def look(self, at: str) -> str:
        """Look at something."""
        self.ran.append(at)
        if at == "slow" and self.gate is not None:
            await self.gate.wait()
        return f"saw {at}"

    @ramet.idempotent
    async def check(self, at: str) -> str:
        """Check something."""
        return await self.look(at)


@pytest.mark.behaviour("D5", "CR-027")
async def test_text_that_was_cut_is_said_once(host: Harness) -> None:
    gate, said = Gate(), "One two three four five."
    again = Gate()
    Lasting.script = ScriptedModel(
        [["One two three", gate], ["One two ", again, "three four five."]]
    )
    await _asked(host)
    chat = await _killed(host)
    again.open()
    await host.settle()
    assert _said(chat) == said
    assert [part["type"] for part in parts_of(chat.answer)] == ["step-start", "text"]
    assert _shown(chat) == said
    assert len(chat.transcript) == 2


async def test_the_log_tells_of_each_turn_and_run_that_goes_on(
    host: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ramet")
    gate = Gate()
    Lasting.script = ScriptedModel([ToolCall("dig", {"topic": "roots"}), "Dug."])
    Digger.script = ScriptedModel([["Roots ", gate], "Roots run deep."])
    await _asked(host)
    assert not caplog.records
    chat = await _killed(host)
    assert _said(chat) == "Dug."
    assert {record.name for record in caplog.records} == {"ramet.agent_tools", "ramet.chat"}
    assert sorted(record.getMessage().partition(" (")[0] for record in caplog.records) == [
        "Lasting:a/Digger:agent-tool:call_1: a turn that was cut goes on",
        "Lasting:a: a turn that was cut goes on",
        "Lasting:a: the run agent-tool:call_1 of Digger is taken up",
    ]
    assert "(request r1, attempt 1)" in caplog.text


@pytest.mark.behaviour("D5")
async def test_where_a_new_answer_differs_the_stored_part_stays_and_a_new_one_comes(
    host: Harness,
) -> None:
    gate = Gate()
    Lasting.script = ScriptedModel([["One two three", gate], "One fish, two fish."])
    await _asked(host)
    chat = await _killed(host)
    texts = [part["text"] for part in parts_of(chat.answer) if part["type"] == "text"]
    assert texts == ["One two three", "One fish, two fish."]
    states = [part["state"] for part in parts_of(chat.answer) if part["type"] == "text"]
    assert states == ["done", "done"]


@pytest.mark.behaviour("D5")
async def test_reasoning_and_texts_before_the_cut_are_not_repeated(host: Harness) -> None:
    gate = Gate()
    Lasting.script = ScriptedModel(
        [[Reasoning("let me see"), "First. Then", gate], [Reasoning("let me see"), "First. Then."]]
    )
    await _asked(host)
    chat = await _killed(host)
    assert [(part["type"], part.get("text")) for part in parts_of(chat.answer)] == [
        ("step-start", None),
        ("reasoning", "let me see"),
        ("text", "First. Then."),
    ]


@pytest.mark.behaviour("D5", "D9")
async def test_tools_that_had_finished_are_not_run_again(host: Harness) -> None:
    gate, notes = Gate(), Notes()
    Lasting.more_tools = [notes.look]
    Lasting.script = ScriptedModel(
        [["Look: ", ToolCall("look", {"at": "a"})], ["I saw", gate], "I saw it."]
    )
    await _asked(host)
    chat = await _killed(host)
    assert notes.ran == ["a"]
    assert _said(chat) == "Look: I saw it."
    (part,) = chat.tool_parts()
    assert (part["state"], part["output"]) == ("output-available", "saw a")
    assert _returned(Lasting.script.requests[-1].messages) == ["saw a"]


@pytest.mark.behaviour("D9")
async def test_a_tool_under_way_is_told_as_interrupted_and_one_marked_idempotent_runs_again(
    host: Harness,
) -> None:
    notes = Notes(Gate())
    Lasting.more_tools = [FunctionToolset[object]([notes.check]), notes.look]
    Lasting.script = ScriptedModel(
        [
            [
                ToolCall("look", {"at": "slow"}, "c1"),
                ToolCall("check", {"at": "slow"}, "c2"),
                ToolCall("look", {"at": "quick"}, "c3"),
            ],
            "So it is.",
        ]
    )
    await _asked(host)
    assert notes.gate is not None
    notes.gate.open()
    notes.gate = None
    chat = await _killed(host)
    assert sorted(notes.ran) == ["quick", "slow", "slow", "slow"]
    by_call = {str(part["toolCallId"]): part for part in chat.tool_parts()}
    assert by_call["c1"]["state"] == "output-error"
    assert "interrupted" in str(by_call["c1"]["errorText"])
    assert by_call["c2"]["output"] == "saw slow"
    assert by_call["c3"]["output"] == "saw quick"
    assert _said(chat) == "So it is."
    told = _returned(Lasting.script.requests[-1].messages)
    assert told[1:] == ["saw slow", "saw quick"]
    assert "interrupted" in str(told[0])


@pytest.mark.behaviour("D5", "D8")
async def test_a_call_that_was_cut_keeps_its_id_when_the_model_makes_it_again(
    host: Harness,
) -> None:
    gate, notes = Gate(), Notes()
    Lasting.more_tools = [notes.look]
    Lasting.script = ScriptedModel(
        [
            ["Look: ", ToolCall("look", {"at": "a"}, "call_x"), gate],
            ["Look: ", ToolCall("look", {"at": "a"}, "call_y")],
            "Done.",
        ]
    )
    await _asked(host)
    chat = await _killed(host)
    (part,) = chat.tool_parts()
    assert (part["toolCallId"], part["output"]) == ("call_x", "saw a")
    assert _said(chat) == "Look: Done."
    calls = [
        part.tool_call_id
        for message in Lasting.script.requests[-1].messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    assert calls == ["call_y"]


@pytest.mark.behaviour("D5")
async def test_a_call_that_was_cut_and_is_not_made_again_ends_as_interrupted(
    host: Harness,
) -> None:
    gate = Gate()
    Lasting.more_tools = [Notes().look]
    Lasting.script = ScriptedModel(
        [["Look: ", ToolCall("look", {"at": "a"}), gate], "Look: never mind."]
    )
    await _asked(host)
    chat = await _killed(host)
    (part,) = chat.tool_parts()
    assert part["state"] == "output-error"
    assert _said(chat) == "Look: never mind."


@pytest.mark.behaviour("D5")
async def test_a_turn_outlives_one_crash_after_another(host: Harness) -> None:
    notes, gates = Notes(), [Gate() for _ in range(2)]
    Lasting.more_tools = [notes.look]
    Lasting.script = ScriptedModel(
        [
            ["A b ", gates[0]],
            ["A b c", gates[0]],
            ["A b c d ", ToolCall("look", {"at": "a"}, "call")],
            ["E f", gates[1]],
            ["E f g", gates[1]],
            "E f g h.",
        ]
    )
    await _asked(host)
    for _ in range(3):
        await _killed(host)
    chat = await _killed(host)
    assert notes.ran == ["a"]
    assert _said(chat) == "A b c d E f g h."


@pytest.mark.behaviour("D5", "D8", "D9", "AT-302", "AT-321", "AT-054")
async def test_a_child_that_was_asked_goes_on_too_and_its_result_is_used_once(
    host: Harness,
) -> None:
    gate = Gate()
    Digger.script = ScriptedModel([["Roots and", gate], "Roots and worms."])
    Lasting.script = ScriptedModel([["Dig: ", ToolCall("dig", {"topic": "x"}, "call")], "Dug."])
    await _asked(host)
    chat = await _killed(host)
    assert _said(chat) == "Dig: Dug."
    (run,) = host.rows(Lasting, "a", "SELECT * FROM cf_agent_tool_runs")
    assert (run["status"], run["summary"]) == ("completed", "Roots and worms.")
    assert _returned(Lasting.script.requests[-1].messages) == ["Roots and worms."]
    assert _run_kinds(chat)[0] == "started"
    assert [kind for kind in _run_kinds(chat) if kind not in {"started", "chunk"}] == ["finished"]
    numbers = [frame["sequence"] for frame in chat.client.of_type("agent-tool-event")]
    assert numbers == list(range(len(numbers)))


@pytest.mark.behaviour("AT-299", "AT-302", "AT-303", "AT-322", "QK-008")
async def test_a_child_that_takes_its_time_is_followed_and_its_run_ends_once(
    host: Harness,
) -> None:
    gate, again = Gate(), Gate()
    Digger.script = ScriptedModel([["Roots and", gate], ["Roots and ", again, "worms."]])
    Lasting.script = ScriptedModel([[ToolCall("dig", {"topic": "x"}, "call")], "Dug."])
    await _asked(host)
    chat = await _killed(host)
    await host.advance(60)
    assert _run_kinds(chat)[-1] == "chunk"
    again.open()
    await host.settle()
    assert _said(chat) == "Dug."
    assert [kind for kind in _run_kinds(chat) if kind not in {"started", "chunk"}] == ["finished"]
    (run,) = host.rows(Lasting, "a", "SELECT * FROM cf_agent_tool_runs")
    assert (run["status"], run["summary"]) == ("completed", "Roots and worms.")
    assert _returned(Lasting.script.requests[-1].messages) == ["Roots and worms."]


@pytest.mark.behaviour("D9", "AT-050", "AT-064")
async def test_a_child_that_had_finished_is_not_asked_again(host: Harness) -> None:
    gate = Gate()
    Digger.script = ScriptedModel(["Worms."])
    notes = Notes(gate)
    Lasting.more_tools = [notes.look]
    Lasting.script = ScriptedModel(
        [
            [ToolCall("dig", {"topic": "x"}, "call"), ToolCall("look", {"at": "slow"}, "other")],
            "Done.",
        ]
    )
    await _asked(host)
    chat = await _killed(host)
    Digger.script.assert_done()
    by_call = {str(part["toolCallId"]): part for part in chat.tool_parts()}
    assert by_call["call"]["output"] == "Worms."
    assert _said(chat) == "Done."


def _returned(messages: list[ModelMessage]) -> list[object]:
    return [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def _said(chat: Chat) -> str:
    """The text of the stored answer."""
    return text_of(chat.answer, separator="")


def _shown(chat: Chat) -> str:
    """The text that the page has put together: what was replayed, then what came live."""
    text = ""
    for frame in chat.client.of_type("cf_agent_use_chat_response"):
        chunk: JsonObject = loads_object(str(frame["body"])) or {}
        if chunk.get("type") == "start":
            text = ""
        text += str(chunk.get("delta", "")) if chunk.get("type") == "text-delta" else ""
    return text


def _run_kinds(chat: Chat) -> list[object]:
    events = [frame["event"] for frame in chat.client.of_type("agent-tool-event")]
    return [event["kind"] for event in events if isinstance(event, dict)]


async def _asked(host: Harness) -> Chat:
    chat = Chat(await host.connect(Lasting, "a"))
    await chat.ask("go")
    return chat


async def _killed(host: Harness) -> Chat:
    """Kill the process, and come back to the next one as a page does."""
    await host.crash()
    await host.restart()
    client = await host.connect(Lasting, "a")
    await client.send({"type": "cf_agent_stream_resume_request", "probeId": "p"})
    offers = client.of_type("cf_agent_stream_resuming")
    if offers:
        await client.send({"type": "cf_agent_stream_resume_ack", "id": offers[-1]["id"]})
    await host.settle()
    return Chat(client)
