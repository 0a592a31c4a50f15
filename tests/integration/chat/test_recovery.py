"""Turns that are lost with the process and taken up again by the next one (section 34)."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.core.json import JsonObject
from ramet.observability.channels import Event, subscribe
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
    user,
)


class Lasting(Fed):
    """Goes on after a crash; what is decided about that is set by a test."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()
    decision: ClassVar[ramet.ChatRecoveryDecision | Exception | None] = None
    asked: ClassVar[list[ramet.ChatRecoveryContext]] = []
    started: ClassVar[int] = 0

    def on_start(self) -> None:
        type(self).started += 1

    def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> object:
        self.asked.append(ctx)
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Lasting.decision, Lasting.chat_recovery = None, ramet.ChatRecovery()
    Lasting.asked = []
    async with Harness(agents=[Lasting], data_dir=tmp_path) as harness:
        yield harness


@pytest.fixture
def told() -> Iterator[list[Event]]:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    yield events
    unsubscribe()


def steps(told: list[Event]) -> list[str]:
    """What was told of recovery, in order."""
    return [
        event.type.rpartition(":")[2] for event in told if event.type.startswith("chat:recovery:")
    ]


@pytest.mark.behaviour("CR-004", "CR-012", "CR-015", "CR-018", "CR-027", "D4", "D5")
async def test_a_lost_answer_goes_on_where_it_was_and_ends_whole(harness: Harness) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    agent = await harness.agent(Lasting, "a")
    (turn,) = agent.turns
    assert (turn.continuation, turn.trigger) == (True, "recovery-continue")
    assert turn.messages[-1]["parts"] == [said("par")]
    agent.give("tial", END)
    await harness.settle()
    await ack(client, turn.request_id)
    assert text_of(client, turn.request_id) == "partial"
    (ending,) = endings(client, turn.request_id)
    assert (ending["outcome"], ending["messageIds"]) == ("completed", ["u-r1"])
    assert [message["role"] for message in agent.messages] == ["user", "assistant"]
    assert agent.messages[-1]["id"] == turn.assistant_message_id
    assert agent.messages[-1]["parts"] == [said("par"), said("tial")]
    assert _incidents(harness) == []


@pytest.mark.behaviour("CR-024", "CW-014", "CW-017")
async def test_a_page_that_comes_back_waits_and_is_offered_the_next_request(
    harness: Harness,
) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    (turn,) = (await harness.agent(Lasting, "a")).turns
    assert [frame for frame in client.frames if frame["type"] == types.CHAT_RECOVERING] == [
        {"type": types.CHAT_RECOVERING, "recovering": True, "id": "r1"}
    ]
    assert (await probe(client, "p"))["id"] == turn.request_id
    await ack(client, turn.request_id)
    start = responses(client, turn.request_id)[0]
    assert start["replay"] is True
    assert turn.assistant_message_id in str(start["body"])
    (await harness.agent(Lasting, "a")).give("tial", END)
    await harness.settle()
    assert client.of_type(types.CHAT_RECOVERING)[-1]["recovering"] is False
    assert text_of(client, turn.request_id) == "partial"


@pytest.mark.behaviour("D4")
async def test_the_old_request_ends_as_recovering_and_an_ack_completes_nothing(
    harness: Harness,
) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    agent = await harness.agent(Lasting, "a")
    agent.give("tial", END)
    await harness.settle()
    for _ in range(2):
        await ack(client, "r1")
    assert [ending["outcome"] for ending in endings(client)] == ["recovering"] * 2
    assert text_of(client) == "par"
    rows = harness.rows(Lasting, "a", "SELECT outcome FROM cf_chat_turns ORDER BY rowid")
    assert [row["outcome"] for row in rows] == ["recovering", "completed"]


@pytest.mark.behaviour("CR-004")
async def test_a_turn_of_which_nothing_was_stored_is_run_again(harness: Harness) -> None:
    await _streaming(harness)
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    (turn,) = agent.turns
    assert (turn.continuation, turn.trigger) == (False, "recovery-retry")
    agent.give("whole", END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said("whole")]


@pytest.mark.behaviour("CR-001")
async def test_what_the_application_sent_comes_again_with_the_turn(harness: Harness) -> None:
    client = await harness.connect(Lasting, "a")
    tools: list[JsonObject] = [{"name": "locate", "description": "Where are you?"}]
    await client.send(request("r1", [user("u1", "hi")], clientTools=tools, mood="calm"))
    (first,) = (await harness.agent(Lasting, "a")).turns
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    (turn,) = agent.turns
    assert turn.body == first.body == {"mood": "calm"}
    assert [tool["name"] for tool in turn.client_tools] == ["locate"]
    assert turn.recovery_root == first.recovery_root
    agent.give(END)
    await harness.settle()
    assert harness.rows(Lasting, "a", "SELECT key FROM cf_chat_recovery") == []


@pytest.mark.behaviour("CR-027")
async def test_several_lost_turns_go_on_in_order_and_do_not_mix(harness: Harness) -> None:
    client = await _streaming(harness, "one ")
    await client.send(request("r2", [user("u-r1", "hi"), user("u2", "more")]))
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    agent.give("done", END, "two", END)
    await harness.settle()
    assert [message["id"] for message in agent.messages][::2] == ["u-r1", "u2"]
    assert [message["parts"] for message in agent.messages[1::2]] == [
        [said("one "), said("done")],
        [said("two")],
    ]


@pytest.mark.behaviour("CR-006", "CR-007", "CR-015")
async def test_a_storm_of_restarts_is_one_attempt(harness: Harness, told: list[Event]) -> None:
    await _streaming(harness, "par")
    for _ in range(4):
        await _killed(harness)
        await harness.agent(Lasting, "a")
        await harness.settle()
    assert [context.attempt for context in Lasting.asked] == [1] * 4
    assert steps(told) == ["detected", *["attempt", "scheduled"] * 4]
    agent = await harness.agent(Lasting, "a")
    agent.give("tial", END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said("par"), said("tial")]
    assert steps(told)[-1] == "completed"


@pytest.mark.behaviour("CR-009", "CR-019", "CR-023", "CR-002")
async def test_a_turn_that_never_gets_on_is_given_up_and_says_so(
    harness: Harness, told: list[Event]
) -> None:
    exhausted: list[ramet.ChatRecoveryExhausted] = []
    Lasting.chat_recovery = ramet.ChatRecovery(
        max_attempts=2, terminal_message="Sorry.", on_exhausted=exhausted.append
    )
    await _streaming(harness, "par")
    for _ in range(4):
        await harness.advance(31)
        await _killed(harness)
        await harness.agent(Lasting, "a")
        await harness.settle()
    client = await harness.connect(Lasting, "a")
    agent = await harness.agent(Lasting, "a")
    assert agent.turns == []
    assert [(each.reason, each.context.attempt) for each in exhausted] == [
        ("max_attempts_exceeded", 3)
    ]
    offered = await probe(client, "p")
    assert offered["type"] == types.STREAM_RESUMING
    await ack(client, str(offered["id"]))
    (ending,) = endings(client, str(offered["id"]))
    assert (ending["error"], ending["body"]) == (True, "Sorry.")
    assert agent.messages[-1]["parts"] == [said("par")]
    assert client.of_type(types.CHAT_RECOVERING) == []
    assert steps(told)[-1] == "exhausted"


@pytest.mark.behaviour("CR-008")
async def test_new_content_begins_the_count_anew(harness: Harness) -> None:
    Lasting.chat_recovery = ramet.ChatRecovery(max_attempts=2)
    await _streaming(harness, "0")
    for number in range(1, 6):
        await harness.advance(31)
        await _killed(harness)
        agent = await harness.agent(Lasting, "a")
        await harness.settle()
        agent.give(f"{number}")
        await harness.settle()
    agent = await harness.agent(Lasting, "a")
    agent.give(END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said(f"{number}") for number in range(6)]
    assert max(context.attempt for context in Lasting.asked) == 1


@pytest.mark.behaviour("CR-009")
async def test_time_without_progress_gives_a_turn_up(harness: Harness) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    await harness.agent(Lasting, "a")
    await harness.settle()
    await harness.advance(301)
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    assert agent.turns == []
    assert _turns(harness)[-1] == ("ended", "error")


@pytest.mark.behaviour("CR-010", "CR-009")
async def test_the_agent_may_say_that_enough_is_enough(harness: Harness) -> None:
    asked: list[int] = []

    def keep(context: ramet.ChatRecoveryContext) -> bool:
        asked.append(context.attempt)
        return False

    Lasting.chat_recovery = ramet.ChatRecovery(should_keep_recovering=keep)
    await _streaming(harness, "par")
    await _killed(harness)
    await harness.agent(Lasting, "a")
    await harness.settle()
    assert asked == []
    await harness.advance(31)
    await _killed(harness)
    await harness.agent(Lasting, "a")
    await harness.settle()
    assert asked == [2]
    assert _turns(harness)[-1] == ("ended", "error")


@pytest.mark.behaviour("CR-012")
async def test_a_partial_answer_can_be_dropped(harness: Harness) -> None:
    Lasting.decision = ramet.ChatRecoveryDecision(persist=False)
    await _streaming(harness, "par")
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    agent.give("whole", END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said("whole")]


@pytest.mark.behaviour("CR-012")
async def test_results_of_tools_are_kept_even_then(harness: Harness) -> None:
    Lasting.decision = ramet.ChatRecoveryDecision(persist=False)
    call: JsonObject = {"toolCallId": "c1", "toolName": "look"}
    await _streaming(
        harness,
        {"type": "tool-input-available", **call, "input": {}},
        {"type": "tool-output-available", "toolCallId": "c1", "output": 7},
    )
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    agent.give("seven", END)
    await harness.settle()
    parts = agent.messages[-1]["parts"]
    assert [part.get("output") for part in parts] == [7, None]


async def test_tools_that_ran_in_the_lost_process_are_told_as_interrupted(
    harness: Harness,
) -> None:
    call: JsonObject = {"toolCallId": "c1", "toolName": "look"}
    await _streaming(harness, {"type": "tool-input-available", **call, "input": {}})
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    agent = await harness.agent(Lasting, "a")
    (turn,) = agent.turns
    parts = turn.messages[-1]["parts"]
    assert [part["state"] for part in parts] == ["output-error"]
    agent.give(END)
    await ack(client, turn.request_id)
    assert "tool-output-error" in str(responses(client, turn.request_id)[-2]["body"])


@pytest.mark.behaviour("CR-014")
async def test_the_agent_may_refuse_to_go_on(harness: Harness, told: list[Event]) -> None:
    Lasting.decision = ramet.ChatRecoveryDecision(proceed=False)
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    assert (await harness.agent(Lasting, "a")).turns == []
    await ack(client, "r1")
    assert endings(client)[-1]["error"] is True
    assert steps(told)[-1] == "skipped"
    assert [event.payload["reason"] for event in told if event.type.endswith("skipped")] == [
        "continue_disabled"
    ]


@pytest.mark.behaviour("CR-013")
async def test_a_hook_that_raises_fails_the_recovery_and_the_request_ends(
    harness: Harness, told: list[Event]
) -> None:
    Lasting.decision = ValueError("no")
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    await ack(client, "r1")
    assert endings(client)[-1]["error"] is True
    assert steps(told)[-1] == "failed"


@pytest.mark.behaviour("CR-017")
async def test_a_newer_question_takes_the_place_of_a_lost_answer(
    harness: Harness, told: list[Event]
) -> None:
    await _streaming(harness, "par")
    await harness.crash()
    file = harness.host.files.open_existing(harness.path(Lasting, "a"))
    assert file is not None
    file.run(
        "INSERT INTO cf_ai_chat_agent_messages VALUES ('u9', 9, 'user', ?, 0)",
        '{"id":"u9","role":"user","parts":[]}',
    )
    file.close()
    await harness.restart()
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    assert agent.turns == []
    assert steps(told)[-1] == "skipped"
    assert _turns(harness) == [("ended", "aborted")]


@pytest.mark.behaviour("CR-016", "CR-011")
async def test_an_answer_that_waits_for_the_browser_is_parked(
    harness: Harness, told: list[Event]
) -> None:
    client = await harness.connect(Lasting, "a")
    await client.send(request("r1", [user("u1", "hi")], clientTools=[{"name": "locate"}]))
    agent = await harness.agent(Lasting, "a")
    agent.give(
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "locate", "input": {}}
    )
    await harness.settle()
    for _ in range(3):
        await _killed(harness)
        agent = await harness.agent(Lasting, "a")
        await harness.settle()
    assert agent.turns == []
    parts = agent.messages[-1]["parts"]
    assert [part["state"] for part in parts] == ["input-available"]
    assert steps(told)[-1] == "skipped"


@pytest.mark.behaviour("TQ-015")
async def test_cancelling_the_old_request_ends_the_turn_that_goes_on_for_it(
    harness: Harness,
) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    client = await harness.connect(Lasting, "a")
    (turn,) = (await harness.agent(Lasting, "a")).turns
    await client.send({"type": types.CHAT_CANCEL, "id": "r1"})
    await ack(client, turn.request_id)
    assert endings(client, turn.request_id)[-1]["outcome"] == "aborted"
    assert client.of_type(types.CHAT_RECOVERING)[-1]["recovering"] is False


@pytest.mark.behaviour("TQ-014")
async def test_a_cleared_chat_recovers_nothing(harness: Harness) -> None:
    await _streaming(harness, "par")
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await agent.clear_messages()
    await harness.settle()
    await _killed(harness)
    agent = await harness.agent(Lasting, "a")
    await harness.settle()
    assert agent.turns == []
    assert agent.messages == []


@pytest.mark.behaviour("CR-026", "D4")
async def test_an_answer_that_stands_still_is_taken_up_anew(
    harness: Harness, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lasting, "chat_stream_stall_timeout", 20)
    client = await _streaming(harness, "par")
    agent = await harness.agent(Lasting, "a")
    await harness.advance(21)
    assert [ending["outcome"] for ending in endings(client)] == ["recovering"]
    first, turn = agent.turns
    assert turn.assistant_message_id == first.assistant_message_id
    assert client.frames[-1] == {
        "type": types.STREAM_RESUMING,
        "id": turn.request_id,
        "goesOnFor": ["r1"],
    }
    await ack(client, turn.request_id)
    agent.give("tial", END)
    await harness.settle()
    assert text_of(client, turn.request_id) == "partial"
    assert "chat:stream:stalled" in [event.type for event in told]
    assert steps(told)[-1] == "completed"


@pytest.mark.behaviour("CR-026")
async def test_who_waits_for_a_turn_that_stood_still_gets_the_end_of_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lasting, "chat_stream_stall_timeout", 20)
    agent = await harness.agent(Lasting, "a")
    saved = agent._ramet_chat.ports.context.background.start(
        agent.save_messages([user("u1", "hi")]), name="save"
    )
    await harness.settle()
    agent.give("par")
    await harness.advance(21)
    agent.give("tial", END)
    await harness.settle()
    assert (await saved).status == "completed"


@pytest.mark.behaviour("CR-026")
async def test_a_lively_answer_is_left_alone(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lasting, "chat_stream_stall_timeout", 20)
    client = await _streaming(harness, "a")
    agent = await harness.agent(Lasting, "a")
    for _ in range(5):
        await harness.advance(15)
        agent.give("b")
    agent.give(END)
    await harness.settle()
    assert endings(client)[0]["outcome"] == "completed"
    assert len(agent.turns) == 1


@pytest.mark.behaviour("CR-009")
async def test_a_turn_that_runs_out_of_memory_is_tried_again_but_not_for_ever(
    harness: Harness, told: list[Event]
) -> None:
    Lasting.chat_recovery = ramet.ChatRecovery(max_oom_retries=2)
    await _streaming(harness, "par")
    agent = await harness.agent(Lasting, "a")
    for _ in range(3):
        agent.give(MemoryError())
        await harness.settle()
    assert steps(told)[-1] == "exhausted"
    assert [event.payload["reason"] for event in told if event.type.endswith("exhausted")] == [
        "out_of_memory"
    ]
    assert len(agent.turns) == 3


@pytest.mark.behaviour("AT-090", "AT-091", "AT-095", "AT-096", "AT-320", "D10")
async def test_a_run_whose_child_was_killed_ends_with_the_turn_that_goes_on(
    harness: Harness,
) -> None:
    child = await harness.agent(Lasting, "a")
    await child.start_agent_tool_run("q", run_id="run")
    await harness.settle()
    child.give("par")
    await harness.settle()
    seen = await child.get_agent_tool_chunks("run")
    await _killed(harness)
    child = await harness.agent(Lasting, "a")
    inspected = await child.inspect_agent_tool_run("run")
    assert inspected is not None
    assert inspected.status == "running"
    tail = child.tail_agent_tool_run("run", after_sequence=seen[-1].sequence)
    await harness.settle()
    child.give("tial", END)
    await harness.settle()
    items = [item async for item in tail]
    numbers = [item.sequence for item in items]
    assert numbers == list(range(len(seen), len(seen) + len(numbers)))
    assert (await child.get_agent_tool_chunks("run"))[: len(seen)] == seen
    inspected = await child.inspect_agent_tool_run("run")
    assert inspected is not None
    assert (inspected.status, inspected.summary) == ("completed", "partial")


@pytest.mark.behaviour("AT-093", "D10")
async def test_a_run_whose_turn_is_given_up_is_an_error(harness: Harness) -> None:
    Lasting.decision = ramet.ChatRecoveryDecision(proceed=False)
    child = await harness.agent(Lasting, "a")
    await child.start_agent_tool_run("q", run_id="run")
    child.give("par")
    await harness.settle()
    await _killed(harness)
    child = await harness.agent(Lasting, "a")
    await harness.settle()
    inspected = await child.inspect_agent_tool_run("run")
    assert inspected is not None
    assert inspected.status == "error"


@pytest.mark.behaviour("D11", "CR-024")
async def test_a_page_whose_agent_was_taken_out_by_force_sees_its_answer_go_on(
    harness: Harness,
) -> None:
    client = await _streaming(harness, "par")
    await harness.evict(Lasting, "a", force=True)
    await probe(client, "p")
    agent = await harness.agent(Lasting, "a")
    (turn,) = agent.turns
    assert [ending["outcome"] for ending in endings(client)] == ["recovering"]
    await ack(client, turn.request_id)
    agent.give("tial", END)
    await harness.settle()
    assert text_of(client, turn.request_id) == "partial"
    assert endings(client, turn.request_id)[-1]["outcome"] == "completed"


async def _killed(harness: Harness) -> None:
    await harness.crash()
    await harness.restart()


async def _streaming(harness: Harness, *given: object) -> TestClient:
    client = await harness.connect(Lasting, "a")
    agent = await harness.agent(Lasting, "a")
    await ask(client)
    agent.give(*given)
    await harness.settle()
    return client


def _turns(harness: Harness) -> list[tuple[object, object]]:
    rows = harness.rows(Lasting, "a", "SELECT status, outcome FROM cf_chat_turns ORDER BY rowid")
    return [(row["status"], row["outcome"]) for row in rows]


def _incidents(harness: Harness) -> list[object]:
    query = "SELECT value FROM cf_chat_recovery WHERE key LIKE 'cf:chat-recovery:incident:%'"
    return [row["value"] for row in harness.rows(Lasting, "a", query)]
