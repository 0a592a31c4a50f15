"""Questions that overlap: every policy, frame by frame (PROTOCOL 4.9, TQ-016 … TQ-023)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ramet
from ramet.chat.concurrency import MessageConcurrency
from ramet.core.json import JsonObject
from ramet.errors import InvalidOptions
from ramet.protocol import types
from ramet.protocol.ui_message import UIMessage
from ramet.testing.client import TestClient
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    endings,
    kinds,
    probe,
    request,
    responses,
    said,
    transcripts,
    user,
)


class Latest(Fed):
    message_concurrency: MessageConcurrency = "latest"


class Merging(Fed):
    message_concurrency: MessageConcurrency = "merge"


class Dropping(Fed):
    message_concurrency: MessageConcurrency = "drop"


class Debouncing(Fed):
    message_concurrency: MessageConcurrency = ramet.Debounce()


class Mistaken(Fed):
    message_concurrency = "lates"  # type: ignore[assignment] # the mistake of the test


CLASSES = [Fed, Latest, Merging, Dropping, Debouncing, Mistaken]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=CLASSES, data_dir=tmp_path) as harness:
        yield harness


FIRST, SECOND, THIRD = user("u1", "First"), user("u2", "Second"), user("u3", "Third")


async def send(client: TestClient, number: int, *messages: UIMessage, **body: object) -> None:
    await client.send(request(f"r{number}", messages, **body))


async def send_three(client: TestClient) -> None:
    """Three questions, each before the one before is answered."""
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    await send(client, 3, FIRST, SECOND, THIRD)


async def finish(harness: Harness, agent: Fed, turns: int) -> None:
    for _ in range(turns):
        agent.give("ok", END)
        await harness.settle()


def ids(agent: Fed) -> list[object]:
    return [message["id"] for message in agent.messages if message["role"] == "user"]


def skipped(number: int, *message_ids: str) -> JsonObject:
    return {
        "type": types.CHAT_RESPONSE,
        "id": f"r{number}",
        "body": "",
        "done": True,
        "messageIds": [*message_ids],
        "outcome": "skipped",
    }


@pytest.mark.behaviour("TQ-016")
async def test_by_default_overlapping_questions_are_answered_in_order(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await send_three(client)
    await finish(harness, agent, 3)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r2", "r3"]


@pytest.mark.behaviour("TQ-017", "TQ-022", "TQ-023")
async def test_latest_answers_the_first_and_the_newest_and_keeps_what_was_asked_between(
    harness: Harness,
) -> None:
    client = await harness.connect(Latest, "a")
    watching = await harness.connect(Latest, "a")
    agent = await harness.agent(Latest, "a")
    await send_three(client)
    assert endings(client, "r2") == [skipped(2, "u1", "u2")]
    assert responses(watching, "r2") == []
    await finish(harness, agent, 2)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]
    assert [result.request_id for result in agent.results] == ["r1", "r3"]
    assert ids(agent) == ["u1", "u2", "u3"]
    assert [len(endings(client, each)) for each in ("r1", "r2", "r3")] == [1, 1, 1]
    rows = harness.rows(Latest, "a", "SELECT outcome FROM cf_chat_turns ORDER BY rowid")
    assert [row["outcome"] for row in rows] == ["completed", "skipped", "completed"]


@pytest.mark.behaviour("TQ-017")
async def test_the_message_of_a_superseded_question_outlives_a_tab_that_does_not_know_it(
    harness: Harness,
) -> None:
    one = await harness.connect(Latest, "a")
    other = await harness.connect(Latest, "a")
    agent = await harness.agent(Latest, "a")
    await send(one, 1, FIRST)
    await send(one, 2, FIRST, SECOND)
    await send(other, 3, FIRST, THIRD)
    await finish(harness, agent, 2)
    assert ids(agent) == ["u1", "u2", "u3"]
    assert endings(one, "r2")
    assert responses(other, "r2") == []


@pytest.mark.behaviour("TQ-016")
async def test_what_code_starts_is_never_superseded_and_supersedes_nothing(
    harness: Harness,
) -> None:
    client = await harness.connect(Latest, "a")
    agent = await harness.agent(Latest, "a")
    context = agent._ramet_chat.ports.context
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    saving = context.background.start(agent.save_messages([user("code", "go")]), name="saving")
    await harness.settle()
    assert endings(client, "r2") == []
    await send(client, 3, FIRST, SECOND, THIRD)
    await finish(harness, agent, 3)
    assert [turn.trigger for turn in agent.turns] == ["ws-chat", "programmatic", "ws-chat"]
    assert (await saving).status == "completed"


@pytest.mark.behaviour("TQ-016")
async def test_an_answer_that_is_wanted_anew_always_queues(harness: Harness) -> None:
    client = await harness.connect(Dropping, "a")
    agent = await harness.agent(Dropping, "a")
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, trigger="regenerate-message")
    await finish(harness, agent, 2)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r2"]


@pytest.mark.behaviour("TQ-018", "TQ-022", "TQ-023")
async def test_a_dropped_question_is_given_back_to_its_sender_and_leaves_no_trace(
    harness: Harness,
) -> None:
    client = await harness.connect(Dropping, "a")
    watching = await harness.connect(Dropping, "a")
    agent = await harness.agent(Dropping, "a")
    await send(client, 1, FIRST)
    seen, sent = len(watching.frames), len(client.frames)
    await send(client, 2, FIRST, SECOND)
    assert kinds(client)[sent:] == [types.CHAT_MESSAGES, types.CHAT_RESPONSE]
    assert client.frames[sent]["messages"] == [FIRST]
    assert client.frames[-1] == skipped(2, "u1", "u2")
    assert len(watching.frames) == seen
    await finish(harness, agent, 1)
    assert [result.request_id for result in agent.results] == ["r1"]
    assert len(harness.rows(Dropping, "a", "SELECT 1 FROM cf_chat_turns")) == 1
    await send(client, 3, FIRST, SECOND)
    await finish(harness, agent, 1)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]


@pytest.mark.behaviour("TQ-019")
async def test_merge_makes_the_waiting_questions_one(harness: Harness) -> None:
    client = await harness.connect(Merging, "a")
    agent = await harness.agent(Merging, "a")
    await send_three(client)
    merged = user("u3", "Second\n\nThird")
    assert endings(client, "r2") == [skipped(2, "u1", "u2")]
    assert transcripts(client)[-1] == [FIRST, merged]
    await finish(harness, agent, 2)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]
    assert [m for m in agent.messages if m["role"] == "user"] == [FIRST, merged]
    assert [m["role"] for m in agent.messages] == ["user", "assistant", "user", "assistant"]
    assert agent.turns[1].messages[-1] == merged


@pytest.mark.behaviour("TQ-019")
async def test_a_fourth_question_from_a_page_that_has_not_seen_the_merge_loses_and_doubles_nothing(
    harness: Harness,
) -> None:
    client = await harness.connect(Merging, "a")
    agent = await harness.agent(Merging, "a")
    await send_three(client)
    await send(client, 4, FIRST, SECOND, THIRD, user("u4", "Fourth"))
    await finish(harness, agent, 2)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r4"]
    questions = [message for message in agent.messages if message["role"] == "user"]
    assert questions == [FIRST, user("u4", "Second\n\nThird\n\nFourth")]


@pytest.mark.behaviour("TQ-019")
async def test_questions_of_two_tabs_are_merged_too(harness: Harness) -> None:
    one = await harness.connect(Merging, "a")
    other = await harness.connect(Merging, "a")
    agent = await harness.agent(Merging, "a")
    await send(one, 1, FIRST)
    await send(one, 2, FIRST, SECOND)
    await send(other, 3, FIRST, THIRD)
    await finish(harness, agent, 2)
    questions = [message for message in agent.messages if message["role"] == "user"]
    assert questions == [FIRST, user("u3", "Second\n\nThird")]
    assert transcripts(one)[-1] == transcripts(other)[-1]


@pytest.mark.behaviour("TQ-020")
async def test_debounce_answers_the_newest_after_a_quiet_period(harness: Harness) -> None:
    client = await harness.connect(Debouncing, "a")
    agent = await harness.agent(Debouncing, "a")
    await send(client, 1, FIRST)
    await finish_later(harness, agent)
    await send(client, 2, FIRST, SECOND)
    await harness.advance(0.7)
    await send(client, 3, FIRST, SECOND, THIRD)
    await finish(harness, agent, 1)
    assert endings(client, "r2") == [skipped(2, "u1", "u2")]
    await harness.advance(0.74)
    assert [turn.request_id for turn in agent.turns] == ["r1"]
    await harness.advance(0.02)
    await finish(harness, agent, 1)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]
    assert ids(agent) == ["u1", "u2", "u3"]


async def finish_later(harness: Harness, agent: Fed) -> None:
    """The first turn has begun and still runs."""
    await harness.settle()
    assert [turn.request_id for turn in agent.turns] == ["r1"]


@pytest.mark.behaviour("TQ-020", "TQ-004")
async def test_a_debounced_question_counts_as_work_while_it_waits(harness: Harness) -> None:
    client = await harness.connect(Debouncing, "a")
    agent = await harness.agent(Debouncing, "a")
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    await finish(harness, agent, 1)
    late = await harness.connect(Debouncing, "a")
    assert (await probe(late, "p1"))["type"] == types.STREAM_PENDING
    waiting = agent._ramet_chat.ports.context.background.start(
        agent.wait_until_stable(), name="waiting"
    )
    await harness.settle()
    assert not waiting.done()
    await harness.advance(0.75)
    assert late.of_type(types.STREAM_RESUMING)[-1]["id"] == "r2"
    await finish(harness, agent, 1)
    assert await waiting is True


async def test_cancelling_a_debounced_question_ends_it_at_once(harness: Harness) -> None:
    client = await harness.connect(Debouncing, "a")
    agent = await harness.agent(Debouncing, "a")
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    await finish(harness, agent, 1)
    await client.send({"type": types.CHAT_CANCEL, "id": "r2"})
    assert [frame["outcome"] for frame in endings(client, "r2")] == ["aborted"]
    await harness.advance(1)
    assert len(endings(client, "r2")) == 1
    assert await agent.wait_until_stable()


@pytest.mark.behaviour("TQ-021", "TQ-014")
@pytest.mark.parametrize("cls", [Latest, Merging, Debouncing])
async def test_clear_ends_waiting_questions_and_later_ones_overlap_nothing_before_it(
    harness: Harness, cls: type[Fed]
) -> None:
    client = await harness.connect(cls, "a")
    agent = await harness.agent(cls, "a")
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    harness.host.receive(client.link, '{"type":"cf_agent_chat_clear"}')
    await send(client, 3, THIRD)
    assert [frame["outcome"] for frame in endings(client, "r2")] == ["skipped"]
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]
    await finish(harness, agent, 1)
    await harness.advance(1)
    assert [turn.request_id for turn in agent.turns] == ["r1", "r3"]
    assert [frame["outcome"] for frame in endings(client, "r3")] == ["completed"]
    assert ids(agent) == ["u3"]


@pytest.mark.behaviour("CW-018")
async def test_the_skip_of_a_superseded_question_releases_no_client_that_waits(
    harness: Harness,
) -> None:
    client = await harness.connect(Debouncing, "a")
    agent = await harness.agent(Debouncing, "a")
    await send(client, 1, FIRST)
    await send(client, 2, FIRST, SECOND)
    await finish(harness, agent, 1)
    parked = await harness.connect(Debouncing, "a")
    assert (await probe(parked, "p1"))["type"] == types.STREAM_PENDING
    await send(client, 3, FIRST, SECOND, THIRD)
    assert parked.of_type(types.STREAM_RESUME_NONE) == []
    await harness.advance(0.75)
    assert parked.of_type(types.STREAM_RESUMING)[-1]["id"] == "r3"
    assert parked.of_type(types.STREAM_RESUME_NONE) == []
    agent.give(END)
    await harness.settle()


async def test_a_crash_keeps_the_end_of_a_superseded_question_and_what_was_asked(
    harness: Harness,
) -> None:
    client = await harness.connect(Latest, "a")
    await send_three(client)
    await harness.crash()
    await harness.restart()
    agent = await harness.agent(Latest, "a")
    assert ids(agent) == ["u1", "u2", "u3"]
    rows = harness.rows(Latest, "a", "SELECT outcome FROM cf_chat_turns ORDER BY rowid")
    assert rows[1]["outcome"] == "skipped"
    again = await harness.connect(Latest, "a")
    await again.send({"type": types.STREAM_RESUME_ACK, "id": "r2"})
    assert [frame["outcome"] for frame in endings(again, "r2")] == ["skipped"]


async def test_a_policy_that_does_not_exist_fails_the_opening(harness: Harness) -> None:
    with pytest.raises(InvalidOptions, match="not 'lates'"):
        await harness.agent(Mistaken, "a")


@pytest.mark.behaviour("TQ-009", "TQ-010")
async def test_the_last_answer_can_be_continued(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    nothing = await agent.continue_last_turn()
    assert (nothing.status, nothing.request_id) == ("skipped", "")
    agent.give("Hel", END, "lo", END)
    await agent.save_messages([user("u1", "hi")])
    result = await agent.continue_last_turn()
    await harness.settle()
    assert (result.status, result.continuation) == ("completed", True)
    assert len(agent.messages) == 2
    assert agent.messages[-1]["parts"] == [said("Hel"), said("lo")]
    assert agent.turns[-1].continuation
    assert agent.turns[-1].messages[-1]["id"] == agent.messages[-1]["id"]
    frames = responses(client, result.request_id)
    assert all(frame["continuation"] is True for frame in frames)
    assert '"messageId"' not in str(frames[0]["body"])


async def test_a_continuation_that_a_crash_cuts_keeps_the_answer_that_it_extends(
    harness: Harness,
) -> None:
    agent = await harness.agent(Fed, "a")
    agent.give("Hel", END, "lo")
    await agent.save_messages([user("u1", "hi")])
    background = agent._ramet_chat.ports.context.background
    background.start(agent.continue_last_turn(), name="continuing")
    await harness.settle()
    await harness.crash()
    await harness.restart()
    agent = await harness.agent(Fed, "a")
    assert len(agent.messages) == 2
    assert agent.messages[-1]["parts"] == [said("Hel"), said("lo")]
