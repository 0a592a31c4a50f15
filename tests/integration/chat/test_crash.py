"""What a process that dies leaves, and what the next one makes of it (D4, D10, D11)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject, loads_object
from ramet.protocol import types
from ramet.testing.client import TestClient
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    ack,
    ask,
    endings,
    probe,
    request,
    responses,
    said,
    text_of,
    transcripts,
    user,
)


@pytest.mark.behaviour("D11")
async def test_a_dying_process_seals_nothing_and_tells_nobody(harness: Harness) -> None:
    client, agent = await _streaming(harness, "par", "tial")
    before = list(client.frames)
    await harness.crash()
    client.read()
    assert client.frames == before
    assert harness.rows(Fed, "a", "SELECT status, outcome FROM cf_chat_turns") == [
        {"status": "running", "outcome": None}
    ]
    assert agent.turns[0].signal.aborted is False


@pytest.mark.behaviour("D1", "D4", "CW-006")
async def test_the_partial_answer_is_stored_when_the_agent_opens_again(harness: Harness) -> None:
    client, _ = await _streaming(harness, "par", "tial")
    seen = text_of(client)
    await _killed(harness)
    agent = await harness.agent(Fed, "a")
    assert agent.messages[-1]["parts"] == [said(seen)]
    assert agent.turns == []


@pytest.mark.behaviour("D4", "CW-006", "RS-010")
async def test_the_lost_stream_is_offered_replayed_and_ended_as_aborted(harness: Harness) -> None:
    await _streaming(harness, "par", "tial")
    await _killed(harness)
    client = await harness.connect(Fed, "a")
    assert client.frames[0] == {"type": types.STREAM_RESUMING, "id": "r1"}
    assert (await probe(client, "p1"))["type"] == types.STREAM_RESUMING
    await ack(client, "r1")
    assert text_of(client) == "partial"
    assert [frame.get("replay") for frame in responses(client)] == [True] * len(responses(client))
    assert [(ending["outcome"], ending["messageIds"]) for ending in endings(client)] == [
        ("aborted", ["u-r1"])
    ]
    assert (await probe(client, "p2"))["reason"] == "idle"


@pytest.mark.behaviour("QK-016", "RS-010")
async def test_a_lost_stream_is_offered_however_old_it_is(harness: Harness) -> None:
    await _streaming(harness, "par", "tial")
    await harness.crash()
    harness.clock.move(30 * 86_400)
    await harness.restart()
    client = await harness.connect(Fed, "a")
    assert client.frames[0] == {"type": types.STREAM_RESUMING, "id": "r1"}
    await ack(client, "r1")
    assert text_of(client) == "partial"


@pytest.mark.behaviour("D4")
async def test_a_page_that_takes_a_lost_stream_is_told_what_became_of_open_calls(
    harness: Harness,
) -> None:
    await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    client = await harness.connect(Fed, "a")
    await ask(client, "r1")
    call: JsonObject = {"toolCallId": "c1", "toolName": "look", "input": {}}
    agent.give({"type": "tool-input-available", **call})
    await harness.settle()
    await _killed(harness)
    again = await harness.connect(Fed, "a")
    await ack(again, "r1")
    result, end = responses(again)[-2:]
    text = "The tool call was interrupted before it could finish."
    assert loads_object(str(result["body"])) == {
        "type": "tool-output-error",
        "toolCallId": "c1",
        "errorText": text,
    }
    assert (result["replay"], end["done"]) == (True, True)


async def test_a_page_that_missed_the_end_of_a_turn_is_given_the_transcript_when_it_is_back(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client, "r1")
    await client.close()
    agent.give("whole answer", END)
    await harness.settle()
    again = await harness.connect(Fed, "a")
    assert again.frames[0] == {
        "type": types.CHAT_MESSAGES,
        "messages": agent.messages,
        "connect": True,
    }


@pytest.mark.behaviour("D4")
async def test_a_lost_stream_is_still_offered_after_another_restart_until_it_is_taken(
    harness: Harness,
) -> None:
    await _streaming(harness, "partial")
    await _killed(harness)
    await harness.agent(Fed, "a")
    await _killed(harness)
    client = await harness.connect(Fed, "a")
    assert client.frames[0] == {"type": types.STREAM_RESUMING, "id": "r1"}


@pytest.mark.behaviour("D4")
async def test_the_next_turn_ends_the_offer_of_a_lost_one(harness: Harness) -> None:
    await _streaming(harness, "partial")
    await _killed(harness)
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    partial = agent.messages[-1]
    await client.send(request("r2", [user("u-r1", "hi"), partial, user("u2", "again")]))
    agent.give("whole", END)
    await harness.settle()
    late = await harness.connect(Fed, "a")
    assert late.of_type(types.STREAM_RESUMING) == []
    assert [message["parts"] for message in agent.messages if message["role"] == "assistant"] == [
        [said("partial")],
        [said("whole")],
    ]


@pytest.mark.behaviour("CW-007")
async def test_a_lost_turn_without_chunks_stores_no_message_and_ends_too(harness: Harness) -> None:
    await _streaming(harness)
    await _killed(harness)
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    assert agent.messages == [user("u-r1", "hi")]
    await ack(client, "r1")
    assert [ending["outcome"] for ending in endings(client)] == ["aborted"]


@pytest.mark.behaviour("D4")
async def test_tool_calls_that_were_running_end_as_interrupted(harness: Harness) -> None:
    call: JsonObject = {"toolCallId": "c1", "toolName": "look"}
    _, agent = await _streaming(harness)
    agent.give(
        {"type": "tool-input-start", **call},
        {"type": "tool-input-available", **call, "input": {"at": "bees"}},
    )
    await harness.settle()
    await _killed(harness)
    agent = await harness.agent(Fed, "a")
    parts = agent.messages[-1]["parts"]
    (part,) = parts
    assert (part["state"], part["input"]) == ("output-error", {"at": "bees"})
    assert part["errorText"] == "The tool call was interrupted before it could finish."


async def test_turns_that_waited_when_the_process_died_are_not_run_by_themselves(
    harness: Harness,
) -> None:
    client, _ = await _streaming(harness, "partial")
    await client.send(request("r2", [user("u-r1", "hi"), user("u2", "more")]))
    await _killed(harness)
    late = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    assert agent.turns == []
    assert [message["id"] for message in agent.messages if message["role"] == "user"] == [
        "u-r1",
        "u2",
    ]
    await ack(late, "r1")
    await ack(late, "r2")
    for request_id in ("r1", "r2"):
        assert [ending["outcome"] for ending in endings(late, request_id)] == ["aborted"]


@pytest.mark.behaviour("D11", "D14")
async def test_a_client_that_stays_connected_is_told_what_became_of_its_turn(
    harness: Harness,
) -> None:
    client, _ = await _streaming(harness, "partial")
    await harness.evict(Fed, "a", force=True)
    assert endings(client) == []
    await client.send({"type": types.STREAM_RESUME_REQUEST, "probeId": "p1"})
    assert [ending["outcome"] for ending in endings(client)] == ["aborted"]
    agent = await harness.agent(Fed, "a")
    assert transcripts(client)[-1] == agent.messages
    assert agent.messages[-1]["parts"] == [said("partial")]


async def test_a_replay_that_a_forced_eviction_cut_off_is_made_again(harness: Harness) -> None:
    words = [f"w{number} " for number in range(2000)]
    _, agent = await _streaming(harness, *words)
    agent.give(END)
    await harness.settle()
    late = await harness.connect(Fed, "a")
    late.reading = False
    await ack(late, "r1")
    late._take(late.link.outbox.take_now()[0])
    with pytest.raises(Exception, match="an answer is being sent again"):
        await harness.evict(Fed, "a")
    await harness.evict(Fed, "a", force=True)
    late.reading = True
    await late.send({"type": types.STREAM_RESUME_REQUEST, "probeId": "p1"})
    assert text_of(late) == "".join(words)
    assert len(endings(late)) == 1


class Finishing(AIChatAgent[object]):
    """Answers at once."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        yield "whole"


async def test_a_finished_chat_is_the_same_after_a_crash(tmp_path: Path) -> None:
    async with Harness(agents=[Finishing], data_dir=tmp_path) as harness:
        agent = await harness.agent(Finishing, "a")
        await agent.save_messages([user("u1", "hi")])
        before = agent.messages
        await _killed(harness)
        assert (await harness.agent(Finishing, "a")).messages == before


async def _killed(harness: Harness) -> None:
    await harness.crash()
    await harness.restart()


async def _streaming(harness: Harness, *given: str) -> tuple[TestClient, Fed]:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give(*given)
    await harness.settle()
    return client, agent
