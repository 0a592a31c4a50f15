"""Clients that come late or come back (PROTOCOL 4.5, 2.1)."""

import pytest

from ramet.core.json import JsonObject, dumps
from ramet.protocol import types
from ramet.testing.client import TestClient
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    ack,
    ask,
    chunk_of,
    endings,
    kinds,
    probe,
    request,
    responses,
    text_of,
    user,
)


@pytest.mark.behaviour("CW-003", "CW-004", "CW-019")
async def test_who_connects_during_a_stream_is_offered_it_first_and_gets_no_live_chunks(
    harness: Harness,
) -> None:
    _, agent = await _streaming(harness, "one ")
    late = await harness.connect(Fed, "a")
    agent.give("two ")
    await harness.settle()
    assert kinds(late)[:2] == [types.STREAM_RESUMING, types.IDENTITY]
    assert late.frames[0] == {"type": types.STREAM_RESUMING, "id": "r1"}
    assert responses(late) == []


@pytest.mark.behaviour("CW-005", "D21")
async def test_after_the_ack_the_stored_chunks_come_from_the_first_then_the_live_ones(
    harness: Harness,
) -> None:
    asking, agent = await _streaming(harness, "one ")
    late = await harness.connect(Fed, "a")
    agent.give("two ")
    await harness.settle()
    await ack(late, "r1")
    agent.give("three", END)
    await harness.settle()
    assert text_of(late) == "one two three"
    frames = responses(late)
    complete = next(place for place, frame in enumerate(frames) if "replayComplete" in frame)
    assert frames[complete] == {
        "type": types.CHAT_RESPONSE,
        "id": "r1",
        "body": "",
        "done": False,
        "replay": True,
        "replayComplete": True,
    }
    assert all(frame["replay"] is True for frame in frames[:complete])
    assert not any("replay" in frame for frame in frames[complete + 1 :])
    live = [frame["seq"] for frame in responses(asking) if "seq" in frame]
    assert [frame["seq"] for frame in frames if "seq" in frame] == live
    assert len(endings(late)) == 1


@pytest.mark.behaviour("CW-014", "CW-015", "CW-016")
async def test_a_probe_is_always_answered_with_its_id(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    assert await probe(client, "p1") == {
        "type": types.STREAM_RESUME_NONE,
        "reason": "idle",
        "probeId": "p1",
    }
    await ask(client)
    for probe_id in ("p2", "p3"):
        assert await probe(client, probe_id) == {
            "type": types.STREAM_RESUMING,
            "id": "r1",
            "probeId": probe_id,
        }


@pytest.mark.behaviour("CW-008")
async def test_an_ack_of_another_request_is_ignored_while_one_streams(harness: Harness) -> None:
    await _streaming(harness, "one")
    late = await harness.connect(Fed, "a")
    await ack(late, "r0")
    assert responses(late) == []


async def test_an_ack_of_a_request_that_waits_behind_another_is_answered_when_its_turn_begins(
    harness: Harness,
) -> None:
    asking, waiting = [await harness.connect(Fed, "a") for _ in range(2)]
    agent = await harness.agent(Fed, "a")
    for number in (1, 2):
        sent = request(f"r{number}", [user(f"u{each}", "hi") for each in range(1, number + 1)])
        harness.host.receive(asking.link, dumps(sent))
    harness.host.receive(waiting.link, dumps({"type": types.STREAM_RESUME_ACK, "id": "r2"}))
    await harness.settle()
    assert responses(waiting, "r2") == []
    agent.give("one", END, "two", END)
    await harness.settle()
    assert [frame["outcome"] for frame in endings(waiting, "r2")] == ["completed"]


@pytest.mark.behaviour("CW-009")
async def test_an_ack_after_the_end_replays_the_stored_chunks_and_their_end(
    harness: Harness,
) -> None:
    _, agent = await _streaming(harness, "one")
    late = await harness.connect(Fed, "a")
    agent.give(END)
    await harness.settle()
    assert responses(late) == []
    await ack(late, "r1")
    assert text_of(late) == "one"
    assert endings(late) == [
        {
            "type": types.CHAT_RESPONSE,
            "id": "r1",
            "body": "",
            "done": True,
            "replay": True,
            "messageIds": ["u-r1"],
            "outcome": "completed",
        }
    ]


@pytest.mark.behaviour("CW-009")
async def test_an_ack_with_nothing_stored_gets_just_the_end(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    await ack(client, "r7")
    assert responses(client, "r7") == [
        {"type": types.CHAT_RESPONSE, "id": "r7", "body": "", "done": True, "replay": True}
    ]


@pytest.mark.behaviour("CW-010")
async def test_a_failed_turn_is_offered_to_who_asks_and_ends_with_its_error(
    harness: Harness,
) -> None:
    _, agent = await _streaming(harness, "partial")
    agent.give(RuntimeError("scripted failure"))
    await harness.settle()
    late = await harness.connect(Fed, "a")
    assert late.of_type(types.STREAM_RESUMING) == []
    answer = await probe(late, "p1")
    assert (answer["type"], answer["id"]) == (types.STREAM_RESUMING, "r1")
    await ack(late, "r1")
    assert text_of(late) == "partial"
    (ending,) = endings(late)
    assert (ending["body"], ending["error"]) == ("scripted failure", True)
    assert "replay" not in ending


@pytest.mark.behaviour("CW-012")
async def test_each_ack_replays_the_whole_answer(harness: Harness) -> None:
    client, _ = await _streaming(harness, "one")
    for _ in range(2):
        await ack(client, "r1")
    assert text_of(client) == "one"
    starts = [frame for frame in responses(client) if chunk_of(frame).get("type") == "start"]
    assert len(starts) == 3


@pytest.mark.behaviour("CW-011", "CW-012")
async def test_a_client_that_stalls_during_the_replay_gets_the_rest_without_gap_or_repeat(
    harness: Harness,
) -> None:
    words = [f"w{number} " for number in range(2000)]
    _, agent = await _streaming(harness, *words)
    late = await harness.connect(Fed, "a")
    late.reading = False
    await ack(late, "r1")
    late_frames = late.link.outbox.take_now()
    assert len(late_frames) < len(words)
    agent.give("live ", "end", END)
    await harness.settle()
    assert late.link.outbox.waiting_bytes < 20_000, "what is replayed waits on disk"
    for frame in late_frames:
        late._take(frame)
    late.reading = True
    await harness.settle()
    assert text_of(late) == "".join([*words, "live ", "end"])
    numbers = [frame["seq"] for frame in responses(late) if "seq" in frame]
    assert numbers == list(range(len(numbers)))
    assert len(endings(late)) == 1


@pytest.mark.behaviour("CW-017")
async def test_who_asks_between_acceptance_and_first_chunk_waits_and_is_offered_the_stream(
    harness: Harness,
) -> None:
    asking = await harness.connect(Fed, "a")
    waiting = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    _send_both(harness, asking, waiting)
    await harness.settle()
    answers = [
        frame for frame in waiting.frames if str(frame["type"]).startswith("cf_agent_stream")
    ]
    assert answers == [
        {"type": types.STREAM_PENDING, "id": "r1", "probeId": "p1"},
        {"type": types.STREAM_RESUMING, "id": "r1"},
    ]
    agent.give("one", END)
    await harness.settle()
    assert responses(waiting) == []
    await ack(waiting, "r1")
    assert text_of(waiting) == "one"


@pytest.mark.behaviour("CW-017", "TQ-011")
async def test_who_waits_is_told_when_the_turn_ends_without_streaming(harness: Harness) -> None:
    asking = await harness.connect(Fed, "a")
    waiting = await harness.connect(Fed, "a")
    _send_both(harness, asking, waiting)
    harness.host.receive(asking.link, dumps({"type": types.CHAT_CANCEL, "id": "r1"}))
    await harness.settle()
    assert waiting.of_type(types.STREAM_RESUME_NONE) == [{"type": types.STREAM_RESUME_NONE}]
    assert [ending["outcome"] for ending in endings(asking)] == ["aborted"]
    assert (await harness.agent(Fed, "a")).turns == []


def _send_both(harness: Harness, asking: TestClient, waiting: TestClient) -> None:
    """Ask, and probe before the turn has had time to begin."""
    harness.host.receive(asking.link, dumps(request("r1", [user("u1", "hi")])))
    probing: JsonObject = {"type": types.STREAM_RESUME_REQUEST, "probeId": "p1"}
    harness.host.receive(waiting.link, dumps(probing))


async def _streaming(harness: Harness, *given: str) -> tuple[TestClient, Fed]:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give(*given)
    await harness.settle()
    return client, agent
