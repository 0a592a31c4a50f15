"""Both families of chat agents as parents and as children: asked, watched, cancelled and killed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pytest
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.protocol.messages import text_of
from ramet.testing import Harness, TestClient
from ramet.testing.scripted_model import Answer, Gate, ScriptedModel, ToolCall
from ramet.think.verbs import ModelChoice
from tests.integration.agent_tools.children import events
from tests.integration.agent_tools.conftest import event_of, kinds, numbers
from tests.integration.chat.support import endings, request, user

SAID = "They have six legs."


class Gates:
    """Where the children of these tests wait, in the middle of their answer."""

    middle: ClassVar[Gate | None] = None

    @classmethod
    async def pass_middle(cls) -> None:
        if cls.middle is not None:
            await cls.middle.wait()


class ThinkChild(ramet.Think):
    """Counts legs, with a model."""

    def get_model(self) -> Model:
        middle = [Gates.middle] if Gates.middle is not None else []
        return ScriptedModel([["six", *middle, " legs"]])


class ChatChild(ramet.AIChatAgent):
    """Counts legs, without one."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        yield "six"
        await Gates.pass_middle()
        yield " legs"


def _told_or_asks(messages: list[ModelMessage], tools: list[ToolDefinition]) -> Answer:
    part = messages[-1].parts[-1]
    if isinstance(part, ToolReturnPart):
        return f"They have {part.content}."
    return [ToolCall(tools[0].name, {"input": "bees"}, "call")]


class ThinkAskingThink(ramet.Think):
    """A model that asks a model."""

    child: ClassVar[type] = ThinkChild
    model: ModelChoice = ScriptedModel.by_rule(_told_or_asks)

    def get_tools(self) -> list[object]:
        return [ramet.agent_tool(self.child, name="count", description="Counts legs.", icon="🐝")]


class ThinkAskingChat(ThinkAskingThink):
    """A model that asks an `AIChatAgent`."""

    child: ClassVar[type] = ChatChild


class ChatAskingThink(ramet.AIChatAgent):
    """An `AIChatAgent` that asks a model."""

    child: ClassVar[type] = ThinkChild

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        result: ramet.RunResult[Any] = await self.run_agent_tool(
            self.child,
            input="bees",
            run_id="agent-tool:call",
            parent_tool_call_id="call",
            signal=turn.signal,
        )
        yield f"They have {result.summary}."


class ChatAskingChat(ChatAskingThink):
    """An `AIChatAgent` that asks another."""

    child: ClassVar[type] = ChatChild


class ForgetfulThink(ThinkAskingChat):
    """A model whose runs go with the chat."""

    options = ramet.AgentOptions(clear_runs_with_chat=True)


class ForgetfulChat(ChatAskingThink):
    """An `AIChatAgent` whose runs go with the chat."""

    options = ramet.AgentOptions(clear_runs_with_chat=True)


Pair: TypeAlias = type[ThinkAskingThink] | type[ChatAskingThink]
PAIRS: list[Pair] = [ThinkAskingThink, ThinkAskingChat, ChatAskingThink, ChatAskingChat]
RUN = "SELECT * FROM cf_agent_tool_runs"
every_pair = pytest.mark.parametrize("pair", PAIRS)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Gates.middle = None
    async with Harness(
        agents=[*PAIRS, ForgetfulThink, ForgetfulChat],
        sub_agents=[ThinkChild, ChatChild],
        data_dir=tmp_path,
    ) as started:
        yield started
    Gates.middle = None


async def asked(harness: Harness, pair: Pair) -> TestClient:
    """A client that has asked a question."""
    client = await harness.connect(pair, "p")
    await client.send(request("r1", [user("u1", "How many legs have bees?")]))
    return client


def answer_of(agent: ThinkAskingThink | ChatAskingThink) -> str:
    """The text of the last message."""
    return text_of(agent.messages[-1], separator="")


def lasting(client: TestClient) -> list[tuple[object, JsonObject]]:
    """What a client knows of runs."""
    return [(frame["sequence"], event_of(frame)) for frame in events(client.frames)]


@every_pair
@pytest.mark.behaviour("AT-001", "AT-043", "AT-135", "AT-164")
async def test_a_child_is_asked_under_the_call_and_its_answer_used(
    harness: Harness, pair: Pair
) -> None:
    client = await asked(harness, pair)
    late = await harness.connect(pair, "p")

    agent = await harness.agent(pair, "p")
    assert answer_of(agent) == SAID
    assert [end["outcome"] for end in endings(client)] == ["completed"]
    (row,) = harness.rows(pair, "p", RUN)
    assert (row["run_id"], row["parent_tool_call_id"]) == ("agent-tool:call", "call")
    assert (row["status"], row["summary"]) == ("completed", "six legs")
    assert {frame["parentToolCallId"] for frame in events(client.frames)} == {"call"}
    assert numbers(client) == list(range(len(numbers(client))))
    assert kinds(client)[0] == "started"
    assert kinds(client)[-1] == "finished"
    assert lasting(late) == lasting(client)


@every_pair
@pytest.mark.behaviour("AT-013", "AT-176", "AT-353", "AT-182", "D12")
async def test_cancelling_the_question_reaches_the_child(harness: Harness, pair: Pair) -> None:
    Gates.middle = Gate()
    client = await asked(harness, pair)
    assert Gates.middle.waiting == 1
    await client.send({"type": "cf_agent_chat_request_cancel", "id": "r1"})

    assert Gates.middle.waiting == 0, "the child's own work has ended"
    (row,) = harness.rows(pair, "p", RUN)
    assert row["status"] == "aborted"
    below = [(pair.child, "agent-tool:call")]
    (turn,) = harness.rows(pair, "p", "SELECT outcome FROM cf_chat_turns", sub=below)
    (run,) = harness.rows(pair, "p", "SELECT * FROM cf_agent_tool_child_runs", sub=below)
    assert (turn["outcome"], run["status"]) == ("aborted", "aborted")
    assert [end["outcome"] for end in endings(client)] == ["aborted"]
    assert kinds(client)[-1] == "aborted"


@every_pair
@pytest.mark.behaviour("AT-302", "AT-321", "AT-064", "AT-054", "D5", "D9", "AT-341")
async def test_when_the_server_dies_both_go_on_and_no_word_is_said_twice(
    harness: Harness, pair: Pair
) -> None:
    Gates.middle = Gate()
    await asked(harness, pair)
    await harness.crash()
    await harness.restart()
    client = await harness.connect(pair, "p")
    await harness.advance(60)
    (row,) = harness.rows(pair, "p", RUN)
    assert row["status"] == "running"
    Gates.middle.open()
    await harness.settle()

    agent = await harness.agent(pair, "p")
    assert answer_of(agent) == SAID
    assert [message["role"] for message in agent.messages] == ["user", "assistant"]
    (row,) = harness.rows(pair, "p", RUN)
    assert (row["status"], row["summary"], row["error_message"]) == ("completed", "six legs", None)
    below = [(pair.child, "agent-tool:call")]
    (child,) = harness.rows(pair, "p", "SELECT * FROM cf_agent_tool_child_runs", sub=below)
    assert child["status"] == "completed"
    assert [kind for kind in kinds(client) if kind != "chunk"] == ["started", "finished"]
    assert numbers(client) == list(range(len(numbers(client))))
    late = await harness.connect(pair, "p")
    assert lasting(late) == lasting(client)


@every_pair
@pytest.mark.behaviour("AT-050", "AT-064", "D8")
async def test_the_next_question_asks_a_child_of_its_own(harness: Harness, pair: Pair) -> None:
    client = await asked(harness, pair)
    agent = await harness.agent(pair, "p")
    await client.send(request("r2", [*agent.messages, user("u2", "And wasps?")]))

    runs = harness.rows(pair, "p", RUN)
    if issubclass(pair, ramet.Think):
        assert len({str(run["run_id"]) for run in runs}) == 2
        assert answer_of(agent) == SAID
    else:
        assert len(runs) == 1, "the id that its own code gives belongs to another question"
        assert [end["error"] for end in endings(client, "r2")] == [True]


@every_pair
@pytest.mark.behaviour("AT-228")
async def test_what_a_child_gives_counts_as_its_parents_progress_now_and_then(
    harness: Harness, pair: Pair
) -> None:
    Gates.middle = Gate()
    await asked(harness, pair)
    agent = await harness.agent(pair, "p")
    before = agent._ramet_chat.ports.recovery.progress()
    await harness.advance(60)
    assert agent._ramet_chat.ports.recovery.progress() == before, "a silent child credits nothing"
    Gates.middle.open()
    await harness.settle()
    credited = agent._ramet_chat.ports.recovery.progress() - before
    own = 1 if pair in {ChatAskingThink, ChatAskingChat} else 2
    assert credited >= own + 1


@pytest.mark.behaviour("AT-036", "AT-325")
async def test_destroying_a_parent_removes_its_runs_with_everything_else(harness: Harness) -> None:
    await asked(harness, ThinkAskingChat)
    agent = await harness.agent(ThinkAskingChat, "p")
    file = harness.host.files.file_of(harness.path(ThinkAskingChat, "p"))
    assert file.exists()
    destroying = asyncio.ensure_future(agent.destroy())
    await harness.settle()
    await asyncio.gather(destroying, return_exceptions=True)

    assert not file.exists()
    fresh = await harness.agent(ThinkAskingChat, "p")
    assert fresh.list_agent_tool_runs() == []
    assert fresh.messages == []


@pytest.mark.behaviour("AT-325", "AT-330", "AT-327", "D3")
@pytest.mark.parametrize("pair", [ThinkAskingChat, ChatAskingThink, ForgetfulThink, ForgetfulChat])
@pytest.mark.parametrize("under_way", [False, True])
async def test_clearing_the_chat_takes_its_runs_along_only_where_that_is_wished(
    harness: Harness, pair: Pair, *, under_way: bool
) -> None:
    Gates.middle = Gate() if under_way else None
    client = await asked(harness, pair)
    await client.send({"type": "cf_agent_chat_clear"})

    agent = await harness.agent(pair, "p")
    assert agent.messages == []
    forgets = pair in {ForgetfulThink, ForgetfulChat}
    runs = agent.list_agent_tool_runs()
    status = "aborted" if under_way else "completed"
    assert [run.status for run in runs] == ([] if forgets else [status])
    assert agent.has_sub_agent(pair.child, "agent-tool:call") != forgets
    late = await harness.connect(pair, "p")
    assert bool(events(late.frames)) != forgets
    path = harness.path(pair, "p", [(pair.child, "agent-tool:call")])
    assert harness.host.files.file_of(path).exists() != forgets
