"""A chat agent as the child of another (AT-061 … AT-121, AT-343 … AT-356)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ramet.agent_tools.records import ChildRun, Inspection, StoredChunk
from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Chunk, Turn
from ramet.core.json import JsonObject, loads_object
from ramet.core.options import AgentOptions
from ramet.core.signals import AbortController
from ramet.protocol import types
from ramet.protocol.run_events import ABSENT
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    ack,
    endings,
    request,
    said,
    text_of,
    transcripts,
    user,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    topic: str


class Shaped(AIChatAgent[object]):
    """Says for itself what its runs begin with and end with."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[Chunk]:
        yield f"looked at {turn.body['agentToolInput']}"

    def format_agent_tool_input(self, input: object, run: ChildRun) -> str:
        return f"Look at {input} for {run.run_id}"

    async def get_agent_tool_output(self, run_id: str) -> object:
        run = self.agent_tool_child_run(run_id)
        return {"asked": run.input, "messages": len(run.messages)}

    def get_agent_tool_summary(self, run_id: str, output: object) -> str:
        assert isinstance(output, dict)
        return f"{output['messages']} messages"


class Faulty(Shaped):
    """Cannot give its output."""

    async def get_agent_tool_output(self, run_id: str) -> object:
        raise ValueError("no output to be had")


class Queueing(Fed):
    """Lets people write while a run is under way."""

    options = AgentOptions(drill_in="queue")


@pytest.mark.behaviour("AT-062", "AT-343", "AT-345")
async def test_a_start_returns_at_once_and_the_turn_goes_on_by_itself(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    client = await harness.connect(Fed, "run-1")
    started = await child.start_agent_tool_run("bees", run_id="run-1")
    assert (started.run_id, started.status) == ("run-1", "running")
    assert started.started_at == harness.clock.now_ms()
    await harness.settle()
    assert transcripts(client)[-1] == [user("agent-tool-run-1-input", "bees")]
    with pytest.raises(Exception, match="a chat turn is running"):
        await harness.evict(Fed, "run-1")


@pytest.mark.behaviour("AT-086", "AT-344")
async def test_an_input_that_is_no_text_is_shown_as_indented_json(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run(Topic(topic="bees"), run_id="run-1")
    await harness.settle()
    (turn,) = child.turns
    assert turn.messages[0]["parts"] == [{"type": "text", "text": '{\n  "topic": "bees"\n}'}]
    assert turn.body == {"agentToolInput": {"topic": "bees"}}
    assert (turn.trigger, turn.client_tools) == ("agent-tool", ())


@pytest.mark.behaviour("AT-061", "AT-355")
async def test_a_known_run_is_looked_at_and_not_started_again(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    first, second = await asyncio.gather(
        child.start_agent_tool_run("bees", run_id="run-1"),
        child.start_agent_tool_run("wasps", run_id="run-1"),
    )
    assert first.request_id == second.request_id
    child.give("fine", END)
    await harness.settle()
    again = await child.start_agent_tool_run("wasps", run_id="run-1")
    assert (again.status, again.summary) == ("completed", "fine")
    assert [message["role"] for message in child.messages] == ["user", "assistant"]


@pytest.mark.behaviour("AT-346", "AT-351", "D10")
async def test_a_completed_run_has_the_text_of_its_answer_as_output_and_summary(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    assert await child.inspect_agent_tool_run("run-1") is None
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("six ", "legs", END)
    await harness.settle()
    run = await _inspected(child)
    assert (run.status, run.output, run.summary, run.error) == (
        "completed",
        "six legs",
        "six legs",
        None,
    )
    assert run.completed_at == harness.clock.now_ms()
    assert run.stream_id is not None


@pytest.mark.behaviour("AT-085", "AT-346")
async def test_a_run_without_text_completes_with_an_empty_summary_and_no_output(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give(END)
    await harness.settle()
    run = await _inspected(child)
    assert (run.status, run.output, run.summary) == ("completed", ABSENT, "")


@pytest.mark.behaviour("AT-347", "AT-348", "AT-084")
async def test_an_agent_may_say_what_its_runs_begin_and_end_with(tmp_path: Path) -> None:
    async with Harness(agents=[Shaped], data_dir=tmp_path) as harness:
        child = await harness.agent(Shaped, "run-1")
        await child.start_agent_tool_run({"x": 1}, run_id="run-1")
        await harness.settle()
        assert child.messages[0]["parts"] == [
            {"type": "text", "text": "Look at {'x': 1} for run-1"}
        ]
        run = await child.inspect_agent_tool_run("run-1")
        assert run is not None
        assert run.output == {"asked": {"x": 1}, "messages": 2}
        assert run.summary == "2 messages"


async def test_an_output_that_cannot_be_given_fails_its_run(tmp_path: Path) -> None:
    async with Harness(agents=[Faulty], data_dir=tmp_path) as harness:
        child = await harness.agent(Faulty, "run-1")
        await child.start_agent_tool_run({}, run_id="run-1")
        await harness.settle()
        run = await child.inspect_agent_tool_run("run-1")
        assert run is not None
        assert (run.status, run.error) == ("error", "no output to be had")


@pytest.mark.behaviour("AT-079", "AT-350", "AT-081")
async def test_a_failed_turn_fails_its_run_whether_anybody_follows_or_not(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("partial", {"type": "error", "errorText": "stung"})
    await harness.settle()
    run = await _inspected(child)
    assert (run.status, run.error, run.output, run.summary) == ("error", "stung", ABSENT, None)


@pytest.mark.behaviour("AT-182", "AT-353", "AT-087", "AT-351")
async def test_cancelling_seals_the_run_and_ends_its_turn(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    client = await harness.connect(Fed, "run-1")
    started = await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("partial")
    await harness.settle()
    await child.cancel_agent_tool_run("run-1", "changed my mind")
    assert (await _inspected(child)).status == "aborted"
    await harness.settle()
    run = await _inspected(child)
    assert (run.status, run.error) == ("aborted", None)
    assert child.messages[-1]["parts"] == [said("partial")]
    assert started.request_id is not None
    assert [end["outcome"] for end in endings(client, started.request_id)] == ["aborted"]
    await child.cancel_agent_tool_run("run-1")
    await child.cancel_agent_tool_run("run-9")


async def test_aborting_the_signal_of_a_start_cancels_the_run(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    controller = AbortController()
    await child.start_agent_tool_run("bees", run_id="run-1", signal=controller.signal)
    controller.abort("enough")
    await harness.settle()
    assert (await _inspected(child)).status == "aborted"
    assert controller.signal.listener_count == 0


@pytest.mark.behaviour("AT-082", "AT-349")
async def test_a_run_whose_chat_is_cleared_ends_in_an_error_that_says_so(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("partial")
    await harness.settle()
    await child.clear_messages()
    await harness.settle()
    run = await _inspected(child)
    assert run.status == "error"
    assert run.error == "The run was skipped before the child could finish: the chat was cleared."
    assert _texts(await child.get_agent_tool_chunks("run-1")) == "partial", "D3: runs are kept"


@pytest.mark.behaviour("AT-076", "AT-089", "AT-080")
async def test_other_turns_of_the_child_are_no_part_of_its_run(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    client = await harness.connect(Fed, "run-1")
    child.give("before", END, "inside", END, RuntimeError("after"))
    await child.save_messages([user("u1", "first")])
    await child.start_agent_tool_run("bees", run_id="run-1")
    await harness.settle()
    await client.send(request("r9", [*child.messages, user("u2", "and?")]))
    run = await _inspected(child)
    assert (run.status, run.summary) == ("completed", "inside")
    assert len(child.agent_tool_child_run("run-1").messages) == 2
    assert _texts(await child.get_agent_tool_chunks("run-1")) == "inside"


@pytest.mark.behaviour("AT-099", "AT-100", "AT-352")
async def test_stored_chunks_are_numbered_from_0_and_there_during_the_run(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("one ", "two")
    await harness.settle()
    items = await child.get_agent_tool_chunks("run-1")
    assert [item.sequence for item in items] == [0, 1, 2, 3]
    assert await child.get_agent_tool_chunks("run-1", after_sequence=0) == items[1:]
    assert await child.get_agent_tool_chunks("run-1", limit=2) == items[:2]
    assert await child.get_agent_tool_chunks("run-9") == []


@pytest.mark.behaviour("AT-108", "AT-109", "AT-111", "AT-116")
async def test_a_tail_gives_what_is_stored_then_what_comes_and_ends_with_the_run(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("one ")
    await harness.settle()
    tail = child.tail_agent_tool_run("run-1")
    following = asyncio.ensure_future(_all(tail))
    child.give("two ")
    await harness.settle()
    child.give("three", END)
    items = await following
    assert _texts(items) == "one two three"
    assert [item.sequence for item in items] == list(range(len(items)))
    assert await _all(child.tail_agent_tool_run("run-1")) == items
    assert await _all(child.tail_agent_tool_run("run-1", after_sequence=1)) == items[2:]
    assert await _all(child.tail_agent_tool_run("run-9")) == []
    await harness.evict(Fed, "run-1")


@pytest.mark.behaviour("AT-113", "AT-114", "AT-115", "AT-121", "AT-088")
async def test_letting_go_of_one_tail_leaves_the_run_and_other_tails(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    controller, early = AbortController(), AbortController()
    early.abort()
    staying = asyncio.ensure_future(_all(child.tail_agent_tool_run("run-1")))
    closed = child.tail_agent_tool_run("run-1")
    aborted = asyncio.ensure_future(
        _all(child.tail_agent_tool_run("run-1", signal=controller.signal))
    )
    assert await _all(child.tail_agent_tool_run("run-1", signal=early.signal)) == []
    child.give("one ")
    await harness.settle()
    await closed.aclose()
    controller.abort("enough")
    assert _texts(await aborted) == "one "
    assert controller.signal.listener_count == 0
    child.give("two", END)
    assert _texts(await staying) == "one two"
    assert (await _inspected(child)).status == "completed"


@pytest.mark.behaviour("D14")
async def test_an_open_tail_keeps_the_child_in_memory(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    child.give("one", END)
    await child.start_agent_tool_run("bees", run_id="run-1")
    await harness.settle()
    tail = child.tail_agent_tool_run("run-1")
    with pytest.raises(Exception, match="a run is being followed"):
        await harness.evict(Fed, "run-1")
    await tail.aclose()
    await harness.evict(Fed, "run-1")


@pytest.mark.behaviour("D10", "AT-093", "D4")
async def test_a_run_that_was_killed_is_an_error_even_when_there_is_a_message(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("nearly all")
    await harness.settle()
    await harness.crash()
    await harness.restart()
    child = await harness.agent(Fed, "run-1")
    run = await _inspected(child)
    assert (run.status, run.error) == (
        "error",
        "The run was interrupted before the child could finish.",
    )
    assert child.messages[-1]["parts"] == [said("nearly all")]
    assert _texts(await child.get_agent_tool_chunks("run-1")) == "nearly all"


@pytest.mark.behaviour("D10")
async def test_a_run_killed_between_its_turns_end_and_its_own_is_completed_later(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("all of it", END)
    await harness.settle()
    child.sql(
        "UPDATE cf_agent_tool_child_runs SET status = 'running', completed_at = NULL, "
        "summary = NULL, output_json = NULL"
    )
    await harness.crash()
    await harness.restart()
    run = await _inspected(await harness.agent(Fed, "run-1"))
    assert (run.status, run.summary) == ("completed", "all of it")


@pytest.mark.behaviour("D3", "RS-012")
async def test_the_log_of_a_run_is_kept_and_that_of_another_turn_swept(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    child.give("run", END, "turn", END)
    await child.start_agent_tool_run("bees", run_id="run-1")
    await harness.settle()
    await child.save_messages([user("u1", "more")])
    await harness.advance(601)
    child.give("later", END)
    await child.save_messages([user("u2", "more")])
    await harness.settle()
    requests = harness.rows(Fed, "run-1", "SELECT request_id FROM cf_ai_chat_stream_metadata")
    assert len(requests) == 2
    assert _texts(await child.get_agent_tool_chunks("run-1")) == "run"


async def test_a_person_cannot_write_into_a_child_at_work_and_is_told_so(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run-1")
    client = await harness.connect(Fed, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    await client.send(request("r9", [user("u9", "hello?")]))
    (ending,) = endings(client, "r9")
    assert (ending["error"], ending["body"]) == (
        True,
        "This agent is working on a run for its parent; write again when that has ended.",
    )
    assert [message["id"] for message in child.messages] == ["agent-tool-run-1-input"]
    assert transcripts(client)[-1] == child.messages


async def test_an_agent_may_let_people_write_while_it_works(tmp_path: Path) -> None:
    async with Harness(agents=[Queueing], data_dir=tmp_path) as harness:
        child = await harness.agent(Queueing, "run-1")
        client = await harness.connect(Queueing, "run-1")
        await child.start_agent_tool_run("bees", run_id="run-1")
        await harness.settle()
        await client.send(request("r9", [*child.messages, user("u9", "hello?")]))
        child.give("run", END, "talk", END)
        await harness.settle()
        assert [end["outcome"] for end in endings(client, "r9")] == ["completed"]
        run = await child.inspect_agent_tool_run("run-1")
        assert run is not None
        assert run.summary == "run"


async def test_who_opens_the_child_during_its_run_sees_it_as_a_chat(harness: Harness) -> None:
    child = await harness.agent(Fed, "run-1")
    started = await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("one ")
    await harness.settle()
    client = await harness.connect(Fed, "run-1")
    assert started.request_id is not None
    assert client.frames[0] == {"type": types.STREAM_RESUMING, "id": started.request_id}
    await ack(client, started.request_id)
    child.give("two", END)
    await harness.settle()
    assert text_of(client, started.request_id) == "one two"


async def _inspected(child: Fed) -> Inspection:
    run = await child.inspect_agent_tool_run("run-1")
    assert run is not None
    return run


async def _all(tail: AsyncIterator[StoredChunk]) -> list[StoredChunk]:
    return [item async for item in tail]


def _texts(items: list[StoredChunk]) -> str:
    chunks: list[JsonObject] = [loads_object(item.body) or {} for item in items]
    return "".join(str(chunk.get("delta", "")) for chunk in chunks)
