"""What pages send for tool calls, and the turn that goes on then (PROTOCOL 4.7)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.chat.lapsing import LAPSED
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import types
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness, TestClient
from tests.integration.chat.support import (
    END,
    Fed,
    ack,
    ask,
    chunks_of,
    endings,
    probe,
    request,
    responses,
    transcripts,
    user,
)


def called(call_id: str = "c1", name: str = "getWeather") -> list[JsonObject]:
    """A call of a tool that the page executes."""
    return [
        {"type": "tool-input-start", "toolCallId": call_id, "toolName": name},
        {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": {}},
    ]


def approval(call_id: str = "c1") -> JsonObject:
    return {"type": "tool-approval-request", "approvalId": f"ap-{call_id}", "toolCallId": call_id}


def result(call_id: str = "c1", output: JsonValue = "sunny", **more: JsonValue) -> JsonObject:
    frame: JsonObject = {"type": types.TOOL_RESULT, "toolCallId": call_id, "toolName": ""}
    return {**frame, "output": output, "autoContinue": True, **more}


def verdict(*, approved: bool, call_id: str = "c1") -> JsonObject:
    frame: JsonObject = {"type": types.TOOL_APPROVAL, "toolCallId": call_id}
    return {**frame, "approved": approved, "autoContinue": True}


async def asked_page(
    harness: Harness, *chunks: Mapping[str, object], body: Mapping[str, object] | None = None
) -> tuple[TestClient, Fed]:
    """A client and an agent whose first answer has stopped to ask the client."""
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await client.send(request("r1", [user("u-r1", "hi")], **(body or {})))
    agent.give({"type": "start-step"}, *(chunks or called()), {"type": "finish-step"}, END)
    await harness.settle()
    assert endings(client)[0]["outcome"] == "completed"
    return client, agent


def continuation_id(client: TestClient, besides: str = "r1") -> str:
    """The request of the turn that went on by itself."""
    frames = [frame for frame in client.of_type(types.CHAT_RESPONSE) if frame["id"] != besides]
    return str(frames[-1]["id"])


def call_parts(message: UIMessage) -> list[JsonObject]:
    return [part for part in parts_of(message) if "toolCallId" in part]


async def test_the_result_of_a_page_is_stored_told_to_all_and_answered_in_a_continuation(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, body={"city": "Oslo", "clientTools": [{"name": "x"}]})
    other = await harness.connect(Fed, "a")
    await client.send(result())
    for each in (client, other):
        updated = each.of_type(types.MESSAGE_UPDATED)
        assert [call_parts(frame["message"])[0]["output"] for frame in updated] == ["sunny"]
    assert len(agent.turns) == 1
    await harness.advance(0.05)
    turn = agent.turns[1]
    assert (turn.trigger, turn.continuation) == ("auto-continuation", True)
    assert turn.body == {"city": "Oslo"}
    assert [tool["name"] for tool in turn.client_tools] == ["x"]
    assert turn.message_ids == ("u-r1",)
    assert call_parts(turn.messages[-1])[0]["state"] == "output-available"
    agent.give({"type": "start-step"}, "Weather: sunny", END)
    await harness.settle()
    went_on = continuation_id(other)
    assert all(frame.get("continuation") for frame in responses(other, went_on))
    assert chunks_of(other, went_on)[0] == {"type": "start"}
    assert endings(other, went_on)[0]["messageIds"] == ["u-r1"]
    assert [part["type"] for part in parts_of(agent.messages[-1])] == [
        "step-start",
        "tool-getWeather",
        "step-start",
        "text",
    ]
    assert len(agent.messages) == 2
    assert transcripts(client)[-1] == agent.messages


async def test_the_page_that_answered_is_offered_the_continuation(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result())
    assert (await probe(client, "p1"))["type"] == types.STREAM_PENDING
    await harness.advance(0.05)
    agent.give("Sunny")
    await harness.settle()
    offered = client.of_type(types.STREAM_RESUMING)[-1]
    went_on = str(offered["id"])
    assert responses(client, went_on) == []
    await ack(client, went_on)
    agent.give(" it is", END)
    await harness.settle()
    assert [chunk.get("delta") for chunk in chunks_of(client, went_on)][2:4] == ["Sunny", " it is"]
    assert endings(client, went_on)[0]["outcome"] == "completed"


@pytest.mark.behaviour("CW-013")
async def test_a_replay_of_a_continuation_says_that_it_is_one(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result())
    await harness.advance(0.05)
    agent.give("Sunny")
    await harness.settle()
    went_on = str(client.of_type(types.STREAM_RESUMING)[-1]["id"])
    late = await harness.connect(Fed, "a")
    await ack(late, went_on)
    replayed = responses(late, went_on)
    assert replayed
    assert all(frame["replay"] and frame["continuation"] for frame in replayed)
    await harness.crash()
    await harness.restart()
    again = await harness.connect(Fed, "a")
    await ack(again, went_on)
    replayed = responses(again, went_on)
    assert len(replayed) > 1
    assert all(frame["replay"] and frame["continuation"] for frame in replayed)


@pytest.mark.behaviour("AC-001", "AC-005")
async def test_answers_of_one_moment_lead_to_one_continuation(harness: Harness) -> None:
    client, agent = await asked_page(harness, *called("c1"), *called("c2"), *called("c3"))
    other = await harness.connect(Fed, "a")
    await client.send(result("c1"))
    await other.send(result("c2"))
    await harness.advance(0.04)
    await client.send(result("c3"))
    await harness.advance(0.049)
    await other.send(result("c3"))
    await harness.advance(1)
    assert len(agent.turns) == 2


@pytest.mark.behaviour("AC-002")
async def test_an_answer_goes_on_only_when_all_calls_of_its_last_step_are_answered(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, *called("c1"), *called("c2"))
    await client.send(result("c1"))
    await harness.advance(3600)
    assert len(agent.turns) == 1
    await harness.evict(Fed, "a")
    await client.send(result("c2", autoContinue=False))
    await harness.advance(1)
    agent = await harness.agent(Fed, "a")
    assert [turn.trigger for turn in agent.turns] == ["auto-continuation"]


@pytest.mark.behaviour("AC-003")
async def test_a_result_without_the_wish_to_go_on_never_goes_on(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result(autoContinue=False))
    await harness.advance(1)
    assert call_parts(agent.messages[-1])[0]["output"] == "sunny"
    assert len(agent.turns) == 1


@pytest.mark.behaviour("AC-004")
async def test_results_during_a_continuation_wait_for_the_next_one(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result("c1"))
    await harness.advance(0.05)
    agent.give({"type": "start-step"}, *called("c2"))
    await harness.settle()
    await client.send(result("c2", "rainy"))
    await harness.advance(1)
    assert len(agent.turns) == 2
    agent.give({"type": "finish-step"}, END)
    await harness.advance(1)
    assert len(agent.turns) == 3
    outputs = [part["output"] for part in call_parts(agent.turns[2].messages[-1])]
    assert outputs == ["sunny", "rainy"]


async def test_the_first_answer_stands_and_a_second_changes_nothing(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result())
    await harness.advance(0.05)
    agent.give("Sunny", END)
    await harness.settle()
    seen = len(client.of_type(types.MESSAGE_UPDATED))
    for frame in (result(output="rainy"), verdict(approved=False), result("unknown")):
        await client.send(frame)
    await harness.advance(1)
    assert call_parts(agent.messages[-1])[0]["output"] == "sunny"
    assert len(client.of_type(types.MESSAGE_UPDATED)) == seen
    assert len(agent.turns) == 2


async def test_a_tool_that_failed_in_the_page_is_kept_as_an_error(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result(state="output-error", errorText="no network", autoContinue=False))
    part = call_parts(agent.messages[-1])[0]
    assert (part["state"], part["errorText"]) == ("output-error", "no network")


async def test_an_approved_call_is_run_by_the_continuation_and_its_result_goes_into_the_message(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, *called(name="danger"), approval())
    assert agent.has_pending_interaction()
    await client.send(verdict(approved=True))
    part = call_parts(agent.messages[-1])[0]
    assert (part["state"], part["approval"]) == (
        "approval-responded",
        {"id": "ap-c1", "approved": True},
    )
    await harness.advance(0.05)
    output: JsonObject = {"type": "tool-output-available", "toolCallId": "c1", "output": "done"}
    agent.give(output, {"type": "start-step"}, "Executed", END)
    await harness.settle()
    went_on = continuation_id(await reader(harness, client))
    assert all("toolCallId" not in chunk for chunk in chunks_of(client, went_on))
    updated = client.of_type(types.MESSAGE_UPDATED)[-1]["message"]
    assert call_parts(updated)[0]["output"] == "done"
    assert call_parts(agent.messages[-1])[0]["state"] == "output-available"
    assert not agent.has_pending_interaction()


async def reader(harness: Harness, client: TestClient) -> TestClient:
    """The client, after it took the continuation that it was offered."""
    await ack(client, str(client.of_type(types.STREAM_RESUMING)[-1]["id"]))
    return client


async def test_a_refused_call_is_denied_and_the_answer_goes_on(harness: Harness) -> None:
    client, agent = await asked_page(harness, *called(name="danger"), approval())
    await client.send(verdict(approved=False))
    part = call_parts(agent.messages[-1])[0]
    assert (part["state"], part["approval"]) == (
        "output-denied",
        {"id": "ap-c1", "approved": False},
    )
    await harness.advance(0.05)
    assert len(agent.turns) == 2


async def test_an_approval_while_the_answer_still_streams_is_kept_with_it(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give(*called("c1"), approval("c1"), *called("c2"))
    await harness.settle()
    await client.send(verdict(approved=True))
    assert [chunk["type"] for chunk in chunks_of(client)][-1] == "tool-approval-response"
    output: JsonObject = {"type": "tool-output-available", "toolCallId": "c2", "output": 2}
    agent.give(output, END)
    await harness.settle()
    assert [part["state"] for part in call_parts(agent.messages[-1])] == [
        "approval-responded",
        "output-available",
    ]
    numbers = [frame["seq"] for frame in responses(client) if "seq" in frame]
    assert numbers == list(range(len(numbers)))
    await harness.advance(0.05)
    assert len(agent.turns) == 2


@pytest.mark.parametrize("named", [True, False])
async def test_the_output_of_a_call_that_needs_an_approval_is_a_pages_only_if_the_tool_is(
    harness: Harness,
    named: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    tools: list[JsonValue] = [{"name": "danger"}] if named else []
    client, agent = await asked_page(
        harness, *called(name="danger"), approval(), body={"clientTools": tools}
    )
    await client.send(result(output="of the page"))
    part = call_parts(agent.messages[-1])[0]
    if named:
        assert part["output"] == "of the page"
    else:
        assert part["state"] == "approval-requested"
        assert client.of_type(types.MESSAGE_UPDATED) == []


async def test_an_approval_behind_which_the_conversation_has_gone_on_ends_the_call(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, *called(name="danger"), approval())
    await client.send(request("r2", [*agent.messages, user("u2", "never mind")]))
    agent.give("All right", END)
    await harness.settle()
    await client.send(verdict(approved=True))
    updated = client.of_type(types.MESSAGE_UPDATED)[-1]["message"]
    assert updated == agent.messages[1]
    part = call_parts(agent.messages[1])[0]
    assert (part["state"], part["errorText"]) == ("output-error", LAPSED)
    assert part["approval"] == {"id": "ap-c1", "approved": True}
    await harness.advance(1)
    assert len(agent.turns) == 2
    assert not agent.has_pending_interaction()


@pytest.mark.parametrize("wishes", [True, False])
async def test_an_approved_call_that_a_question_came_before_is_ended(
    harness: Harness,
    wishes: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    client, agent = await asked_page(harness, *called("c1"), approval("c1"), *called("c2"))
    await client.send({**verdict(approved=True), "autoContinue": wishes})
    await client.send(request("r2", [*agent.messages, user("u2", "never mind")]))
    agent.give("All right", END)
    await harness.settle()
    parts = call_parts(agent.messages[1])
    assert [part["state"] for part in parts] == ["output-error", "input-available"]
    assert parts[0]["errorText"] == LAPSED
    assert transcripts(client)[-1] == agent.messages
    assert len(agent.turns) == 2


async def test_an_approved_call_that_a_stored_message_came_before_is_ended(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, *called("c1"), approval("c1"), *called("c2"))
    await client.send(verdict(approved=True))
    await agent.persist_messages([*agent.messages, user("u2", "by the way")])
    await client.send(result("c2"))
    parts = call_parts(agent.messages[1])
    assert [part["state"] for part in parts] == ["output-error", "output-available"]
    assert client.of_type(types.MESSAGE_UPDATED)[-1]["message"] == agent.messages[1]


async def test_a_late_answer_does_not_take_the_place_of_what_is_to_go_on(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(request("r2", [*agent.messages, user("u2", "never mind")]))
    agent.give({"type": "start-step"}, *called("c2"), *called("c3"), END)
    await harness.settle()
    await client.send(result("c2"))
    await client.send(result("c1"))
    await client.send(result("c3", autoContinue=False))
    await harness.advance(0.05)
    assert [turn.trigger for turn in agent.turns] == ["ws-chat", "ws-chat", "auto-continuation"]


async def test_what_was_to_go_on_goes_on_after_a_crash(harness: Harness) -> None:
    client, _ = await asked_page(harness)
    await client.send(result())
    await harness.crash()
    await harness.restart()
    agent = await harness.agent(Fed, "a")
    await harness.advance(0.05)
    assert [turn.trigger for turn in agent.turns] == ["auto-continuation"]
    assert call_parts(agent.messages[-1])[0]["output"] == "sunny"


class Recovering(Fed):
    chat_recovery: ramet.ChatRecovery | bool = True


async def test_an_answer_to_a_lost_turn_is_not_lost_with_it(tmp_path: Path) -> None:
    async with Harness(agents=[Recovering], data_dir=tmp_path) as harness:
        client = await harness.connect(Recovering, "a")
        agent = await harness.agent(Recovering, "a")
        await ask(client)
        agent.give(*called(), approval())
        await harness.settle()
        await harness.crash()
        await harness.restart()
        client = await harness.connect(Recovering, "a")
        await client.send(verdict(approved=True))
        await harness.advance(1)
        agent = await harness.agent(Recovering, "a")
        assert call_parts(agent.messages[-1])[0]["state"] == "approval-responded"
        assert [turn.trigger for turn in agent.turns] == ["auto-continuation"]


class Waiting(Recovering):
    """Is asked what becomes of a lost turn, and says nothing for a while."""

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("named", [True, False])
async def test_the_output_of_a_call_that_needs_an_approval_is_a_pages_as_well_after_a_crash(
    tmp_path: Path,
    named: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with Harness(agents=[Waiting], data_dir=tmp_path) as harness:
        client, agent = await harness.connect(Waiting, "a"), await harness.agent(Waiting, "a")
        tools = [{"name": "danger"}] if named else []
        await client.send(request("r1", [user("u-r1", "hi")], clientTools=tools))
        agent.give(*called(name="danger"), approval())
        await harness.settle()
        await harness.crash()
        await harness.restart()
        client, agent = await harness.connect(Waiting, "a"), await harness.agent(Waiting, "a")
        await client.send(result(output="of the page"))
        (part,) = call_parts(agent.messages[-1])
        if named:
            assert part["output"] == "of the page"
        else:
            assert part["state"] == "approval-requested"
        assert agent.turns == []


@pytest.mark.behaviour("CR-016")
async def test_a_tool_that_was_cut_beside_one_that_waits_for_the_page_has_failed(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Recovering], data_dir=tmp_path) as harness:
        client = await harness.connect(Recovering, "a")
        agent = await harness.agent(Recovering, "a")
        tools = [{"name": "getWeather"}]
        await client.send(request("r1", [user("u-r1", "hi")], clientTools=tools))
        agent.give(*called(), *called("c2", "ours"))
        await harness.settle()
        await harness.crash()
        await harness.restart()
        client = await harness.connect(Recovering, "a")
        agent = await harness.agent(Recovering, "a")
        await harness.settle()
        states = [part["state"] for part in call_parts(agent.messages[-1])]
        assert states == ["input-available", "output-error"]
        await client.send(result())
        await harness.advance(0.05)
        assert [turn.trigger for turn in agent.turns] == ["auto-continuation"]


async def test_a_question_in_between_leaves_the_wish_behind(harness: Harness) -> None:
    client, agent = await asked_page(harness, *called("c1"), *called("c2"))
    await client.send(result("c1"))
    await client.send(request("r2", [*agent.messages, user("u2", "never mind")]))
    agent.give("All right", END)
    await harness.settle()
    await client.send(result("c2"))
    await harness.advance(1)
    assert len(agent.turns) == 2
    assert agent.messages[-1]["role"] == "assistant"


async def test_a_cleared_chat_does_not_go_on(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    await client.send(result())
    await client.send({"type": types.CHAT_CLEAR})
    await harness.advance(1)
    assert len(agent.turns) == 1
    assert client.of_type(types.STREAM_RESUME_NONE)
    assert agent.messages == []


async def test_tools_that_a_page_names_with_its_result_take_the_place_of_those_before(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness, body={"clientTools": [{"name": "old"}]})
    await client.send(result(clientTools=[{"name": "new"}]))
    await harness.advance(0.05)
    assert [tool["name"] for tool in agent.turns[1].client_tools] == ["new"]


@pytest.mark.behaviour("TQ-004")
async def test_waiting_until_stable_takes_the_continuation_in(harness: Harness) -> None:
    client, agent = await asked_page(harness)
    stable = [False]

    async def wait() -> None:
        stable[0] = await agent.wait_until_stable()

    agent._ramet.context.background.start(wait(), name="wait")
    await harness.settle()
    assert not stable[0]
    await client.send(result())
    assert not stable[0]
    await harness.advance(0.05)
    assert not stable[0]
    agent.give("Sunny", END)
    await harness.settle()
    assert stable[0]


class Parent(ramet.Agent[None]):
    async def run(self) -> ramet.RunResult[object]:
        return await self.run_agent_tool(Fed, input="work", run_id="run1")


@pytest.fixture
async def family(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Parent], sub_agents=[Fed], data_dir=tmp_path) as harness:
        yield harness


@pytest.mark.behaviour("AT-344")
async def test_what_a_page_brings_into_a_child_never_enters_its_run(family: Harness) -> None:
    below = [(Fed, "run1")]
    parent = await family.agent(Parent, "p")
    parent._ramet.context.background.start(parent.run(), name="run")
    await family.settle()
    child: Any = await family.agent(Parent, "p", sub=below)
    client = await family.connect(Parent, "p", sub=below)
    child.give({"type": "start-step"}, *called())
    await family.settle()
    await client.send(result(clientTools=[{"name": "mine"}]))
    turn: Turn = child.turns[0]
    assert (turn.trigger, turn.client_tools) == ("agent-tool", ())
    assert set(turn.body) <= {"agentToolInput"}
    child.give(END)
    await family.advance(1)
    assert [turn.trigger for turn in child.turns] == ["agent-tool", "auto-continuation"]
    assert child.turns[1].body == {}


async def test_a_page_that_takes_a_continuation_late_gets_the_transcript_behind_its_replay(
    harness: Harness,
) -> None:
    client, agent = await asked_page(harness)
    await client.send(result())
    await harness.advance(0.05)
    agent.give("Sunny", END)
    await harness.settle()
    went_on = str(client.of_type(types.STREAM_RESUMING)[-1]["id"])
    seen = len(client.frames)
    await ack(client, went_on)
    *replayed, complete, transcript, done = client.frames[seen:]
    assert replayed
    assert all(frame["replay"] and not frame["done"] for frame in replayed)
    assert (complete["replayComplete"], complete["done"]) == (True, False)
    assert transcript["messages"] == agent.messages
    assert (done["done"], done["outcome"]) == (True, "completed")
