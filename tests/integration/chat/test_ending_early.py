"""Cancelling turns and clearing the chat (PROTOCOL 4.6)."""

from pathlib import Path

import pytest

from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.core.options import AgentOptions
from ramet.protocol import types
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    ask,
    endings,
    kinds,
    probe,
    request,
    said,
    text_of,
    user,
)

CLEAR: JsonObject = {"type": types.CHAT_CLEAR}


def cancel(request_id: str) -> JsonObject:
    return {"type": types.CHAT_CANCEL, "id": request_id}


@pytest.mark.behaviour("TQ-010", "TQ-015")
async def test_cancelling_keeps_the_partial_answer_and_ends_the_request_once(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial")
    await harness.settle()
    await client.send(cancel("r1"))
    assert agent.turns[0].signal.aborted
    (ending,) = endings(client)
    assert ending["outcome"] == "aborted"
    assert agent.messages[-1]["parts"] == [said("partial")]
    assert kinds(client)[-2:] == [types.CHAT_MESSAGES, types.CHAT_RESPONSE]
    assert [result.status for result in agent.results] == ["aborted"]


@pytest.mark.behaviour("TQ-015")
async def test_cancelling_an_unknown_request_changes_nothing(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    await client.send(cancel("r9"))
    agent.give("whole", END)
    await harness.settle()
    assert [ending["outcome"] for ending in endings(client)] == ["completed"]


@pytest.mark.behaviour("TQ-011")
async def test_a_waiting_turn_that_is_cancelled_does_no_work(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    await client.send(request("r2", [user("u-r1", "hi"), user("u2", "more")]))
    await client.send(cancel("r2"))
    agent.give("whole", END)
    await harness.settle()
    assert [turn.request_id for turn in agent.turns] == ["r1"]
    assert [ending["outcome"] for ending in endings(client, "r2")] == ["aborted"]


async def test_tool_calls_of_a_cancelled_turn_do_not_stay_open(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give(
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "look"},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "look", "input": {}},
    )
    await harness.settle()
    await client.send(cancel("r1"))
    parts = agent.messages[-1]["parts"]
    (part,) = parts
    assert part["state"] == "output-error"
    assert part["errorText"] == "The tool call was interrupted before it could finish."


async def test_a_turn_may_cancel_itself(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial")
    await harness.settle()
    agent.cancel_all_chats()
    agent.give(" and more", END)
    await harness.settle()
    assert [ending["outcome"] for ending in endings(client)] == ["aborted"]
    assert text_of(client) == "partial"
    await client.send(request("r2", [user("u2", "again")]))
    agent.feed = type(agent.feed)()


@pytest.mark.behaviour("TQ-014", "TQ-002")
async def test_clearing_ends_turns_and_wipes_messages_and_logs(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    watching = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial")
    await client.send(request("r2", [user("u-r1", "hi"), user("u2", "more")]))
    await client.send(CLEAR)
    assert agent.messages == []
    assert [turn.request_id for turn in agent.turns] == ["r1"]
    assert [ending["outcome"] for ending in endings(client, "r1")] == ["aborted"]
    assert [ending["outcome"] for ending in endings(client, "r2")] == ["skipped"]
    assert endings(watching, "r2") == []
    assert client.of_type(types.CHAT_CLEAR) == []
    assert watching.of_type(types.CHAT_CLEAR) == [CLEAR]
    chunks = harness.rows(Fed, "a", "SELECT 1 FROM cf_ai_chat_stream_chunks")
    streams = harness.rows(Fed, "a", "SELECT 1 FROM cf_ai_chat_stream_metadata")
    assert (chunks, streams) == ([], [])
    assert agent.results == []


@pytest.mark.behaviour("TQ-014")
async def test_an_answer_has_ended_before_watchers_are_told_that_the_chat_is_cleared(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    watching = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial")
    await harness.settle()
    await client.send(CLEAR)
    agent.give(" and more", END)
    await harness.settle()
    assert kinds(watching)[-2:] == [types.CHAT_RESPONSE, types.CHAT_CLEAR]
    assert [ending["outcome"] for ending in endings(watching)] == ["aborted"]
    assert [ending["outcome"] for ending in endings(client)] == ["aborted"]


@pytest.mark.behaviour("TQ-014")
async def test_nothing_of_a_cleared_chat_is_offered_or_stored_later(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial", RuntimeError("no"))
    await harness.settle()
    await client.send(CLEAR)
    assert (await probe(client, "p1"))["type"] == types.STREAM_RESUME_NONE
    await client.send(request("r2", [user("u2", "anew")]))
    agent.give("fresh", END)
    await harness.settle()
    assert agent.messages[0]["id"] == "u2"
    assert len(agent.messages) == 2


@pytest.mark.behaviour("TQ-014")
async def test_code_clears_the_chat_for_every_client(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("whole", END)
    await harness.settle()
    await agent.clear_messages()
    await harness.settle()
    assert client.of_type(types.CHAT_CLEAR) == [CLEAR]
    assert agent.messages == []


class Dispatching(AIChatAgent[object]):
    """Starts a run in each turn, and forgets runs with the chat."""

    options = AgentOptions(clear_runs_with_chat=True)

    async def on_chat_message(self, turn: Turn) -> str:
        result = await self.run_agent_tool(Fed, input="go", run_id="run-1")
        return result.summary or ""


async def test_clearing_may_take_the_runs_along(tmp_path: Path) -> None:
    async with Harness(agents=[Dispatching], sub_agents=[Fed], data_dir=tmp_path) as harness:
        agent = await harness.agent(Dispatching, "a")
        client = await harness.connect(Dispatching, "a")
        await ask(client)
        child: object = await harness.agent(Dispatching, "a", sub=[(Fed, "run-1")])
        assert isinstance(child, Fed)
        child.give("fine", END)
        await harness.settle()
        assert agent.has_agent_tool_run(Fed, "run-1")
        await client.send(CLEAR)
        assert not agent.has_agent_tool_run(Fed, "run-1")
