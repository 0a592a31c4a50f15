"""What is given wrongly, or is stored wrongly: one sentence, and nothing written or lost by it."""

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

import ramet
from ramet.agent_tools.records import Inspection
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.errors import AgentNotRegistered, NotAnAgentTool, RunBelongsToAnother
from ramet.protocol.messages import parts_of, text_of
from ramet.testing import Ending, Harness, ScriptedChild, TestClient
from ramet.testing.scripted_child import AdapterCall
from ramet.testing.scripted_model import Gate, ScriptedModel, ToolCall
from ramet.think.verbs import ModelChoice
from tests.integration.agent_tools.children import events
from tests.integration.agent_tools.conftest import event_of, kinds
from tests.integration.chat.support import request, user

RUNS = "SELECT * FROM cf_agent_tool_runs ORDER BY rowid"
WORDS = ["one", "two"]
ADAPTER: list[AdapterCall] = ["start", "cancel", "inspect", "chunks", "tail"]

Good = ScriptedChild.script("Good", WORDS, ending=Ending(summary="good"))
Stranger = ScriptedChild.script("Stranger")
Other = ScriptedChild.script("Other", WORDS, ending=Ending(summary="other"))
Raising = {
    call: ScriptedChild.script(
        f"Raising{call.title()}",
        [*WORDS, Gate()] if call == "cancel" else WORDS,
        ending=Ending(summary="fine"),
        raises={call: ValueError(f"{call} is broken")},
        tail=call != "chunks",
    )
    for call in ADAPTER
}
Private = ScriptedChild.script(
    "Private", WORDS, raises={"start": sqlite3.OperationalError("no such table: secrets")}
)


class Nan(ramet.Agent[None]):
    """A child whose output JSON cannot carry."""

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: object = None
    ) -> Inspection:
        return Inspection(run_id=run_id, status="running", started_at=1)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        return None

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection:
        return Inspection(run_id=run_id, status="completed", started_at=1, output={"n": math.nan})

    async def get_agent_tool_chunks(self, run_id: str, *, after_sequence: int = -1) -> list[object]:
        return []


class Bare(ramet.Agent[None]):
    """An agent that is no child."""


class HalfAdapter(ramet.Agent[None]):
    """A child that lacks two of the methods, one of which is there but not async."""

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: object = None
    ) -> Inspection:
        raise NotImplementedError

    def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        raise NotImplementedError

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection | None:
        raise NotImplementedError


class Chatty(ramet.AIChatAgent):
    """A child that gives what JSON cannot carry when it is told to."""

    output: ClassVar[object] = "fine"

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        await self.report_progress(fraction=0.5)
        await self.report_progress(milestone="half", data={"n": 1})
        yield "word"

    def get_agent_tool_output(self, run_id: str) -> object:
        return self.output


class Topic(BaseModel):
    """What the model has to say."""

    topic: str
    depth: int


class Boss(ramet.Agent[None]):
    """A parent that notes its errors."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(str(error))


class Assistant(ramet.Think):
    """A parent whose model calls a tool with what its test says."""

    model: ModelChoice = None

    def get_tools(self) -> list[object]:
        return [
            ramet.agent_tool(Good, name="look", description="Looks.", input=Topic),
            ramet.agent_tool(Nan, name="count", description="Counts.", output=dict[str, float]),
            self.weigh,
        ]

    async def weigh(self) -> dict[str, float]:
        """Weigh something."""
        return {"kg": math.nan}


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Chatty.output = "fine"
    children = [Good, Other, Nan, Bare, HalfAdapter, Chatty, Private, *Raising.values()]
    async with Harness(agents=[Boss, Assistant], sub_agents=children, data_dir=tmp_path) as started:
        yield started


def rows(harness: Harness) -> list[JsonObject]:
    """The runs of the parent."""
    return harness.rows(Boss, "b", RUNS)


async def asked(harness: Harness, *answers: object) -> tuple[Assistant, TestClient]:
    """An assistant whose model has given these answers to one question."""
    Assistant.model = ScriptedModel(answers)  # type: ignore[arg-type] # as the tests give them
    client = await harness.connect(Assistant, "a")
    await client.send(request("r1", [user("u1", "Well?")]))
    return await harness.agent(Assistant, "a"), client


async def test_a_run_id_of_another_class_is_refused_and_its_run_stays(harness: Harness) -> None:
    boss = await harness.agent(Boss, "b")
    first = await boss.run_agent_tool(Good, input="x", run_id="r")
    before, inputs = rows(harness), list(Other.inputs)

    with pytest.raises(
        RunBelongsToAnother,
        match="The run id 'r' is a run of Good, not of Other: give this run an id of its own",
    ):
        await boss.run_agent_tool(Other, input="y", run_id="r")

    assert rows(harness) == before
    assert Other.inputs == inputs
    assert not boss.has_sub_agent(Other, "r")
    assert await boss.run_agent_tool(Good, run_id="r") == first


@pytest.mark.behaviour("AT-042")
@pytest.mark.parametrize(
    ("cls", "error", "sentence"),
    [
        (
            Bare,
            NotAnAgentTool,
            "Bare cannot be run as an agent tool: it has no async start_agent_tool_run, "
            "cancel_agent_tool_run, inspect_agent_tool_run, get_agent_tool_chunks. Derive it from "
            "Think or AIChatAgent, or give it the methods of the agent-tool adapter.",
        ),
        (
            HalfAdapter,
            NotAnAgentTool,
            "HalfAdapter cannot be run as an agent tool: it has no async cancel_agent_tool_run, "
            "get_agent_tool_chunks. Derive it",
        ),
        (Stranger, AgentNotRegistered, "Stranger"),
    ],
)
async def test_a_class_that_cannot_be_a_child_is_refused_before_anything_is_written(
    harness: Harness, cls: type, error: type[Exception], sentence: str
) -> None:
    boss = await harness.agent(Boss, "b")
    client = await harness.connect(Boss, "b")

    with pytest.raises(error) as raised:
        await boss.run_agent_tool(cls, input="x", run_id="r")

    assert str(raised.value).startswith(sentence) or sentence in str(raised.value)
    assert rows(harness) == []
    assert boss.list_sub_agents() == []
    assert events(client.frames) == []
    assert boss.errors == []


@pytest.mark.behaviour("AT-173", "AT-009")
async def test_an_input_that_fails_its_type_is_told_to_the_model_which_can_do_better(
    harness: Harness,
) -> None:
    before = len(Good.inputs)
    assistant, client = await asked(
        harness,
        ToolCall("look", {"topic": "bees", "depth": "very"}),
        ToolCall("look", {"topic": "bees", "depth": 2}),
        "Done.",
    )

    assert text_of(assistant.messages[-1]) == "Done."
    first, second = [p for p in parts_of(assistant.messages[-1]) if "toolCallId" in p]
    assert first["state"] == "output-error"
    assert "depth" in str(first["errorText"])
    assert "valid integer" in str(first["errorText"])
    assert second["output"] == "good"
    assert Good.inputs[before:] == [{"topic": "bees", "depth": 2}]
    (run,) = assistant.list_agent_tool_runs()
    assert run.parent_tool_call_id == second["toolCallId"]
    assert {event_of(frame)["runId"] for frame in events(client.frames)} == {run.run_id}


@pytest.mark.behaviour("AT-041", "AT-047", "QK-005", "D26")
@pytest.mark.parametrize("call", ["start", "inspect", "chunks", "tail"])
async def test_an_adapter_method_that_raises_ends_its_run_with_what_it_said(
    harness: Harness, call: AdapterCall
) -> None:
    boss = await harness.agent(Boss, "b")
    kept = await boss.run_agent_tool(Good, run_id="kept")
    client = await harness.connect(Boss, "b")
    run = asyncio.ensure_future(boss.run_agent_tool(Raising[call], run_id="r"))
    await harness.settle()

    if call == "start":
        with pytest.raises(ValueError, match="start is broken"):
            await run
    else:
        result = await run
        assert (result.status, result.error) == ("error", f"{call} is broken")
    assert [(row["run_id"], row["status"]) for row in rows(harness)] == [
        ("kept", "completed"),
        ("r", "error"),
    ]
    assert rows(harness)[1]["error_message"] == f"{call} is broken"
    mine = [event_of(f) for f in events(client.frames) if event_of(f)["runId"] == "r"]
    assert mine[0]["kind"] == "started"
    assert (mine[-1]["kind"], mine[-1]["error"]) == ("error", f"{call} is broken")
    assert await boss.run_agent_tool(Good, run_id="kept") == kept
    late = await harness.connect(Boss, "b")
    assert kinds(late)[-1] == "error"


@pytest.mark.behaviour("AT-182", "D12")
async def test_a_cancel_that_raises_is_reported_and_the_run_is_cancelled(harness: Harness) -> None:
    boss = await harness.agent(Boss, "b")
    run = asyncio.ensure_future(boss.run_agent_tool(Raising["cancel"], run_id="r"))
    await harness.settle()
    run.cancel()
    await harness.settle()

    assert (rows(harness)[0]["status"], rows(harness)[0]["error_message"]) == (
        "aborted",
        "cancelled",
    )
    assert boss.errors == ["cancel is broken"]


@pytest.mark.behaviour("D26")
async def test_what_is_nobodys_business_gets_a_sentence_with_an_id(harness: Harness) -> None:
    boss = await harness.agent(Boss, "b")
    with pytest.raises(sqlite3.OperationalError):
        await boss.run_agent_tool(Private, run_id="r")

    assert "secrets" not in str(rows(harness)[0]["error_message"])
    assert rows(harness)[0]["error_message"]


async def test_a_number_that_is_none_is_an_error_and_no_null(harness: Harness) -> None:
    boss = await harness.agent(Boss, "b")
    result = await boss.run_agent_tool(Nan, run_id="r")

    assert (result.status, result.error) == (
        "error",
        "Nan gave an output that is not JSON: nan is not a JSON number",
    )
    assert rows(harness)[0]["output_json"] is None


async def test_the_model_is_told_of_a_number_that_is_none(harness: Harness) -> None:
    assistant, _ = await asked(harness, [ToolCall("weigh"), ToolCall("count", {"input": "x"})], "!")

    weighed, counted = [p for p in parts_of(assistant.messages[-1]) if "toolCallId" in p]
    assert weighed["errorText"] == (
        "The tool 'weigh' returned something that cannot be written as JSON: "
        "nan is not a JSON number"
    )
    assert counted["output"] == {
        "ok": False,
        "status": "error",
        "error": "Nan gave an output that is not JSON: nan is not a JSON number",
        "retryable": False,
    }


@pytest.mark.parametrize("wrong", [{"n": math.inf}, object()])
async def test_a_chat_child_refuses_an_input_that_json_cannot_carry(
    harness: Harness, wrong: object
) -> None:
    boss = await harness.agent(Boss, "b")
    with pytest.raises(ValueError, match="JSON"):
        await boss.run_agent_tool(Chatty, input=wrong, run_id="r")

    assert rows(harness)[0]["status"] == "error"
    below: list[tuple[type, str]] = [(Chatty, "r")]
    assert harness.rows(Boss, "b", "SELECT * FROM cf_chat_turns", sub=below) == []
    assert harness.rows(Boss, "b", "SELECT * FROM cf_agent_tool_child_runs", sub=below) == []


async def test_a_chat_child_whose_output_is_no_json_fails_and_keeps_its_answer(
    harness: Harness,
) -> None:
    Chatty.output = {"n": math.nan}
    boss = await harness.agent(Boss, "b")
    result = await boss.run_agent_tool(Chatty, input="x", run_id="r")

    assert (result.status, result.error) == (
        "error",
        "The output of the run is not JSON: nan is not a JSON number",
    )
    child: Any = await harness.agent(Boss, "b", [(Chatty, "r")])
    assert text_of(child.messages[-1]) == "word"


@pytest.mark.behaviour("AT-029")
async def test_a_row_of_the_parent_that_is_no_json_is_shown_as_it_is(harness: Harness) -> None:
    boss = await harness.agent(Boss, "b")
    await boss.run_agent_tool(Good, input={"q": 1}, run_id="r", display={"name": "R"})
    await boss.run_agent_tool(Good, run_id="sound")
    boss.sql(
        "UPDATE cf_agent_tool_runs SET input_preview = '{oh', display_metadata = '[no', "
        "output_json = '{well' WHERE run_id = 'r'"
    )
    run, sound = boss.list_agent_tool_runs()
    assert (run.input_preview, run.display) == ("{oh", "[no")
    result = await boss.run_agent_tool(Good, run_id="r")
    assert (result.status, result.output, result.summary) == ("completed", "{well", "good")
    client = await harness.connect(Boss, "b")
    started = [event_of(f) for f in events(client.frames) if event_of(f)["kind"] == "started"]
    assert [each["runId"] for each in started] == ["r", sound.run_id]
    assert started[0]["inputPreview"] == "{oh"
    assert "display" not in started[0]
    assert await boss.clear_agent_tool_runs() == 2


@pytest.mark.behaviour("AT-029")
async def test_a_row_of_the_child_that_is_no_json_costs_only_what_it_says(
    harness: Harness,
) -> None:
    boss = await harness.agent(Boss, "b")
    await boss.run_agent_tool(Chatty, input={"q": 1}, run_id="r")
    before = await harness.connect(Boss, "b")
    child: Any = await harness.agent(Boss, "b", [(Chatty, "r")])
    child.sql(
        "UPDATE cf_agent_tool_child_runs SET input_json = '{a', output_json = '{b', "
        "progress_json = '{c', request_ids = '[d'"
    )
    child.sql("UPDATE cf_agent_tool_milestones SET data_json = '{e'")

    found = await child.inspect_agent_tool_run("r")
    assert (found.status, found.output, found.progress) == ("completed", "{b", None)
    assert [milestone.data for milestone in found.milestones] == ["{e"]
    run = child.agent_tool_child_run("r")
    assert run.input == "{a"
    assert [text_of(message) for message in run.messages if message["role"] == "assistant"] == [
        "word"
    ]
    late = await harness.connect(Boss, "b")
    assert kinds(late) == kinds(before)
    turn = await child.save_messages([user("u1", "still there?")])
    assert (turn.status, turn.error) == ("completed", None)
    await child.clear_messages()
    assert len(await child.get_agent_tool_chunks("r")) > 0
