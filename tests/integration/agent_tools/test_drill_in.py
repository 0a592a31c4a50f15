"""People who open a child while its run is under way: reading is free, writing follows a rule."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pytest
from pydantic_ai.models import Model

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.protocol.messages import text_of
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness, TestClient
from ramet.testing.scripted_model import Gate, ScriptedModel
from tests.integration.agent_tools.conftest import kinds
from tests.integration.chat import support
from tests.integration.chat.support import ack, endings, request, transcripts, user

AT_WORK = "This agent is working on a run for its parent; write again when that has ended."
TOOLS: list[JsonObject] = [{"name": "steal", "description": "d", "parameters": {"type": "object"}}]
INPUT_ID = "agent-tool-run-input"


class Notes:
    """What the turns of the children of a test were given, over crashes."""

    gates: ClassVar[list[Gate]] = []
    turns: ClassVar[list[Turn]] = []
    decide: ClassVar[Gate | None] = None

    @classmethod
    async def answer(cls, turn: Turn) -> str:
        """Note a turn and wait at the next gate, if there is one."""
        cls.turns.append(turn)
        if cls.gates:
            await cls.gates[0].wait()
        return " done"


class ChatChild(ramet.AIChatAgent):
    """A child that people may not write to while it works."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        yield text_of(turn.messages[-1])
        yield await Notes.answer(turn)

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        if Notes.decide is not None:
            await Notes.decide.wait()


class ThinkChild(ramet.Think):
    """The same with a model."""

    def before_turn(self, turn: Turn) -> None:
        Notes.turns.append(turn)

    def get_model(self) -> Model:
        asked = text_of(next(m for m in Notes.turns[-1].messages[::-1] if m["role"] == "user"))
        return ScriptedModel([[f"{asked} ", *Notes.gates[:1], "done"]])

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        if Notes.decide is not None:
            await Notes.decide.wait()


class QueueingChat(ChatChild):
    """A child that answers people when it has done its work."""

    options = ramet.AgentOptions(drill_in="queue")


class QueueingThink(ThinkChild):
    """The same with a model."""

    options = ramet.AgentOptions(drill_in="queue")


class Parent(ramet.Agent[None]):
    """Asks one of them."""

    async def ask(self, cls: type) -> ramet.RunResult[Any]:
        return await self.run_agent_tool(cls, input="work", run_id="run")


Child: TypeAlias = type[ChatChild] | type[ThinkChild]
REFUSING: list[Child] = [ChatChild, ThinkChild]
QUEUEING: list[Child] = [QueueingChat, QueueingThink]
either = pytest.mark.parametrize("child", REFUSING)
queueing = pytest.mark.parametrize("child", QUEUEING)
any_child = pytest.mark.parametrize("child", [*REFUSING, *QUEUEING])


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Notes.gates, Notes.turns, Notes.decide = [Gate()], [], None
    async with Harness(
        agents=[Parent], sub_agents=[*REFUSING, *QUEUEING], data_dir=tmp_path
    ) as started:
        yield started
    Notes.decide = None


class Scene:
    """A run under way, a client of the parent and one inside the child."""

    def __init__(self, harness: Harness, child: Child) -> None:
        self.harness = harness
        self.child = child
        self.sub = [(child, "run")]

    async def begin(self) -> "Scene":
        """Start the run and open its child."""
        parent = await self.harness.agent(Parent, "p")
        self.run = asyncio.ensure_future(parent.ask(self.child))
        self.outside = await self.harness.connect(Parent, "p")
        await self.harness.settle()
        self.inside = await self.drill_in()
        return self

    async def drill_in(self) -> TestClient:
        """A client that opens the child through its parent."""
        return await self.harness.connect(Parent, "p", self.sub)

    async def write(
        self, text: str = "hello?", *, request_id: str = "r9", **body: object
    ) -> JsonObject | None:
        """Write into the child as a person does; gives the end of the request if it has one."""
        shown = (await self.transcript())[:]
        question = user(f"u-{request_id}", text)
        await self.inside.send(request(request_id, [*shown, question], **body))
        found = endings(self.inside, request_id)
        return found[0] if found else None

    async def transcript(self) -> list[UIMessage]:
        """The child's messages."""
        agent: Any = await self.harness.agent(Parent, "p", self.sub)
        messages: list[UIMessage] = agent.messages
        return messages

    async def texts(self) -> list[str]:
        """What they say."""
        return [text_of(message) for message in await self.transcript()]

    def open(self) -> None:
        """Let the child go on to its end."""
        Notes.gates[0].open()

    def status(self) -> object:
        """How the run is by its parent's row."""
        (row,) = self.harness.rows(Parent, "p", "SELECT status FROM cf_agent_tool_runs")
        return row["status"]


@any_child
@pytest.mark.behaviour("AT-337", "AT-333")
async def test_reading_is_free_while_the_child_works(harness: Harness, child: Child) -> None:
    scene = await Scene(harness, child).begin()
    (offer,) = scene.inside.of_type("cf_agent_stream_resuming")
    await ack(scene.inside, str(offer["id"]))
    assert support.text_of(scene.inside, str(offer["id"])).startswith("work")
    scene.open()
    await harness.settle()

    assert support.text_of(scene.inside, str(offer["id"])) == "work done"
    assert (await scene.run).status == "completed"
    late = await scene.drill_in()
    assert [text_of(message) for message in _greeted(late)] == ["work", "work done"]


@either
async def test_a_message_is_refused_with_one_sentence_and_leaves_no_trace(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    other = await scene.drill_in()
    end = await scene.write()

    assert end is not None
    assert (end["error"], end["body"], end["done"]) == (True, AT_WORK, True)
    assert [message["id"] for message in await scene.transcript()] == [INPUT_ID]
    assert transcripts(scene.inside)[-1] == await scene.transcript()
    assert endings(other, "r9") == []
    assert len(harness.rows(Parent, "p", "SELECT * FROM cf_chat_turns", sub=scene.sub)) == 1

    scene.open()
    await harness.settle()
    assert (await scene.run).summary == "work done"
    assert kinds(scene.outside)[-1] == "finished"
    end = await scene.write(request_id="r10")
    assert end is not None
    assert end["outcome"] == "completed"
    assert await scene.texts() == ["work", "work done", "hello?", "hello? done"]


@either
async def test_a_message_is_refused_too_while_a_killed_run_is_still_to_go_on(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    await harness.crash()
    scene.run.cancel()
    Notes.decide = Gate()
    await harness.restart()
    scene.inside = await scene.drill_in()
    end = await scene.write()
    assert end is not None
    assert end["body"] == AT_WORK

    Notes.decide.open()
    scene.open()
    await harness.settle()
    await harness.agent(Parent, "p")
    await harness.settle()
    assert await scene.texts() == ["work", "work done"]
    assert scene.status() == "completed"


@queueing
async def test_a_message_may_wait_for_the_end_of_the_run(harness: Harness, child: Child) -> None:
    scene = await Scene(harness, child).begin()
    assert await scene.write() is None
    assert len(Notes.turns) == 1
    scene.open()
    await harness.settle()

    assert (await scene.run).summary == "work done"
    assert [end["outcome"] for end in endings(scene.inside, "r9")] == ["completed"]
    assert await scene.texts() == ["work", "work done", "hello?", "hello? done"]
    assert [text_of(message) for message in Notes.turns[1].messages] == [
        "work",
        "work done",
        "hello?",
    ]
    agent: Any = await harness.agent(Parent, "p", scene.sub)
    bodies = "".join(item.body for item in await agent.get_agent_tool_chunks("run"))
    assert "hello?" not in bodies


@queueing
async def test_a_message_does_not_go_before_a_killed_run_nor_take_its_place(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    await harness.crash()
    scene.run.cancel()
    Notes.decide = Gate()
    await harness.restart()
    scene.inside = await scene.drill_in()
    end = await scene.write()
    assert end is not None
    assert end["body"] == AT_WORK

    Notes.decide.open()
    await harness.settle()
    assert await scene.write("now?", request_id="r10") is None
    scene.open()
    await harness.settle()
    await harness.agent(Parent, "p")
    await harness.settle()
    assert await scene.texts() == ["work", "work done", "now?", "now? done"]
    assert scene.status() == "completed"


@queueing
async def test_a_message_that_waited_when_the_server_died_is_answered_after_the_run(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    assert await scene.write(clientTools=TOOLS, kind="question") is None
    await harness.crash()
    scene.run.cancel()
    scene.open()
    await harness.restart()
    await harness.agent(Parent, "p")
    await harness.settle()

    assert await scene.texts() == ["work", "work done", "hello?", "hello? done"]
    assert scene.status() == "completed"
    of_run = [turn for turn in Notes.turns if turn.message_ids == (INPUT_ID,)]
    assert len(of_run) == 2
    assert [turn.body for turn in of_run] == [{"agentToolInput": "work"}] * 2
    assert [list(turn.client_tools) for turn in of_run] == [[]] * 2
    assert [tool["name"] for tool in Notes.turns[-1].client_tools] == ["steal"]
    assert Notes.turns[-1].body["kind"] == "question"


@any_child
async def test_an_answer_of_the_run_cannot_be_asked_for_again_while_it_is_given(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    shown = await scene.transcript()
    await scene.inside.send(request("r9", shown, trigger="regenerate-message"))
    (end,) = endings(scene.inside, "r9")
    assert end["body"] == AT_WORK
    scene.open()
    await harness.settle()
    assert await scene.texts() == ["work", "work done"]


@any_child
async def test_a_transcript_that_a_page_has_changed_is_not_taken_while_it_works(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    pushed = [user("u7", "smuggled")]
    await scene.inside.send({"type": "cf_agent_chat_messages", "messages": [*pushed]})
    scene.open()
    await harness.settle()
    assert await scene.texts() == ["work", "work done"]


@any_child
@pytest.mark.behaviour("AT-344")
async def test_tools_and_body_of_a_person_never_enter_a_turn_of_the_framework(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    await scene.write(clientTools=TOOLS, agentToolInput="forged", model="theirs")
    scene.open()
    await harness.settle()
    await scene.write("and?", request_id="r10", clientTools=TOOLS, model="theirs")
    talk = Notes.turns[-1]
    assert [tool["name"] for tool in talk.client_tools] == ["steal"]
    assert talk.body["model"] == "theirs"
    agent: Any = await harness.agent(Parent, "p", scene.sub)
    await agent.save_messages([*agent.messages, user("u-code", "by code")])
    await agent.continue_last_turn()
    await agent.start_agent_tool_run("again", run_id="run-2")
    await harness.settle()

    run = Notes.turns[0]
    saved, continued, again = Notes.turns[-3:]
    assert (run.trigger, run.body, run.client_tools) == (
        "agent-tool",
        {"agentToolInput": "work"},
        (),
    )
    assert (again.body, again.client_tools) == ({"agentToolInput": "again"}, ())
    for turn in (saved, continued):
        assert (dict(turn.body), list(turn.client_tools)) == ({}, [])


@any_child
async def test_a_person_who_leaves_or_reads_slowly_changes_nothing(
    harness: Harness, child: Child
) -> None:
    scene = await Scene(harness, child).begin()
    stalled = await scene.drill_in()
    stalled.reading = False
    await scene.inside.close()
    scene.open()
    await harness.settle()
    assert (await scene.run).status == "completed"


def _greeted(client: TestClient) -> list[JsonObject]:
    """The transcript that a client was greeted with."""
    (frame,) = client.of_type("cf_agent_chat_messages")
    messages = frame["messages"]
    assert isinstance(messages, list)
    return [message for message in messages if isinstance(message, dict)]
