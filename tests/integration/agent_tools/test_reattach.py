"""Runs that are followed again: how long, from where, and what each way of giving up leaves."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ramet
from ramet.agent_tools.records import StoredChunk
from ramet.core.tail import Tail
from ramet.observability.channels import Event, subscribe
from ramet.testing import Harness
from tests.integration.agent_tools.children import (
    BusyNoTailChild,
    HandChild,
    Parent,
    events,
)
from tests.integration.agent_tools.conftest import Stage, event_of, kinds, numbers


class Hurried(Parent):
    """A parent that gives a child ten seconds in all."""

    options = ramet.AgentOptions(agent_tool_reattach_max_window=10)


class Unhurried(Parent):
    """A parent that waits for a silent child, but not for ever."""

    options = ramet.AgentOptions(
        agent_tool_reattach_no_progress_timeout=math.inf, agent_tool_reattach_max_window=500
    )


class Patient(Parent):
    """A parent that waits without end: a window of nothing is none."""

    options = ramet.AgentOptions(
        agent_tool_reattach_no_progress_timeout=math.inf, agent_tool_reattach_max_window=0
    )


class Strict(Parent):
    """A parent that follows nothing again."""

    options = ramet.AgentOptions(agent_tool_reattach_no_progress_timeout=0)


class Failing(Parent):
    """A parent that cannot start."""

    fails: ClassVar[bool] = False

    def on_start(self) -> None:
        if self.fails:
            raise ValueError("not today")


class ThrowingChild(HandChild):
    """A child whose tails raise, once they are told to."""

    throws: ClassVar[bool] = False

    def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1, signal: ramet.AbortSignal | None = None
    ) -> AsyncIterator[StoredChunk]:
        if self.throws:
            self.calls.append("tail")
            raise ValueError("no tail to be had")
        return super().tail_agent_tool_run(run_id, after_sequence=after_sequence, signal=signal)


class JoinedChild(HandChild):
    """A child of which somebody asks for the run just as its tail is opened."""

    joining: ClassVar[list[asyncio.Task[Any]]] = []
    join: ClassVar[bool] = False

    async def tail_agent_tool_run(  # type: ignore[override] # may be async as well
        self, run_id: str, *, after_sequence: int = -1, signal: ramet.AbortSignal | None = None
    ) -> AsyncIterator[StoredChunk]:
        if self.join and self.status() is None:
            parent = await self.parent_agent(Parent)
            asking = parent.run_agent_tool(JoinedChild, input="why?", run_id=run_id)
            self.joining.append(asyncio.ensure_future(asking))
            for _ in range(10):
                await asyncio.sleep(0)  # noqa: TID251 - until the other has joined
        return super().tail_agent_tool_run(run_id, after_sequence=after_sequence, signal=signal)


class HangingTailChild(HandChild):
    """A child whose tail never opens, once it is told to."""

    hangs: ClassVar[bool] = False

    async def tail_agent_tool_run(  # type: ignore[override] # may be async as well
        self, run_id: str, *, after_sequence: int = -1, signal: ramet.AbortSignal | None = None
    ) -> AsyncIterator[StoredChunk]:
        if self.hangs:
            self.calls.append("tail")
            await asyncio.get_running_loop().create_future()
        return super().tail_agent_tool_run(run_id, after_sequence=after_sequence, signal=signal)


@pytest.fixture
async def again(tmp_path: Path) -> AsyncIterator[Stage]:
    tasks: set[asyncio.Task[Any]] = set()
    async with Harness(
        agents=[Parent, Hurried, Unhurried, Patient, Strict, Failing],
        sub_agents=[HandChild, BusyNoTailChild, ThrowingChild, HangingTailChild, JoinedChild],
        data_dir=tmp_path,
    ) as harness:
        yield Stage(harness, tasks)
        for task in tasks:
            task.cancel()
        await harness.settle()
    ThrowingChild.throws = HangingTailChild.hangs = Failing.fails = JoinedChild.join = False
    JoinedChild.joining.clear()


async def reopened(stage: Stage) -> None:
    """Kill the server, start it again and open the parent."""
    await stage.harness.crash()
    HandChild.calls.clear()
    await stage.harness.restart()
    await stage.parent()
    await stage.settle()


def verdict(stage: Stage) -> tuple[object, object, object]:
    """How a run stands: status, reason and whether its child goes on."""
    row = stage.row("r")
    return row["status"], row["interrupted_reason"], row["child_still_running"]


@pytest.mark.behaviour("AT-314", "AT-316", "AT-317", "AT-008")
async def test_the_window_ends_a_child_that_keeps_streaming_over_all_attempts(
    again: Stage,
) -> None:
    again.root = Hurried
    await again.dispatch(run_id="r")
    await reopened(again)
    client = await again.client()
    child = await again.child("r")
    for _ in range(9):
        await again.harness.advance(1)
        child.say("word")
        child.cut()
        await again.settle()
    assert again.row("r")["status"] == "running"
    assert HandChild.calls.count("tail") == 10

    await again.harness.advance(1)

    assert verdict(again) == ("interrupted", "window-exceeded", 0)
    assert child.status() == "aborted"
    assert child.cancel_reasons == ["The run took longer than it may."]
    assert event_of(events(client.frames)[-1])["childStillRunning"] is False


@pytest.mark.behaviour("AT-314")
@pytest.mark.parametrize("trouble", ["raises", "hangs"])
async def test_a_child_that_the_window_could_not_end_is_said_to_go_on(
    again: Stage, trouble: str
) -> None:
    again.root = Hurried
    await again.dispatch(run_id="r")
    await reopened(again)
    if trouble == "raises":
        HandChild.fails_on["cancel"] = ValueError("busy")
    else:
        HandChild.stalls_on.add("cancel")
    await again.harness.advance(21)

    assert verdict(again) == ("interrupted", "window-exceeded", 1)


@pytest.mark.behaviour("AT-311", "AT-314")
async def test_a_child_that_has_ended_in_time_is_collected_although_the_window_is_over(
    again: Stage,
) -> None:
    again.root = Hurried
    await again.dispatch(run_id="r")
    await reopened(again)
    child = await again.child("r")
    await again.harness.advance(9)
    child.sql("UPDATE outcome SET status = 'completed', summary = 'just in time'")
    await again.harness.advance(1)

    assert verdict(again) == ("completed", None, None)
    assert again.row("r")["summary"] == "just in time"
    assert "cancel" not in HandChild.calls


@pytest.mark.behaviour("AT-311")
async def test_a_silent_child_that_has_ended_is_collected_and_not_given_up(again: Stage) -> None:
    await again.dispatch(run_id="r")
    await reopened(again)
    (await again.child("r")).sql("UPDATE outcome SET status = 'completed', summary = 'quietly'")
    await again.harness.advance(121)

    assert again.row("r")["summary"] == "quietly"


@pytest.mark.behaviour("AT-313")
async def test_with_an_endless_budget_only_the_window_ends_a_silence(again: Stage) -> None:
    again.root = Unhurried
    await again.dispatch(run_id="r")
    await reopened(again)
    await again.harness.advance(499)
    assert again.row("r")["status"] == "running"
    await again.harness.advance(2)

    assert verdict(again) == ("interrupted", "window-exceeded", 0)
    assert HandChild.calls.count("tail") == 1


@pytest.mark.behaviour("AT-315", "AT-313", "D31")
async def test_a_window_of_nothing_is_none(again: Stage) -> None:
    again.root = Patient
    await again.dispatch(run_id="r")
    await reopened(again)
    await again.harness.advance(10 * 86_400)
    assert again.row("r")["status"] == "running"
    (await again.child("r")).end(summary="at last")
    await again.settle()

    assert again.row("r")["summary"] == "at last"


@pytest.mark.behaviour("AT-315", "D31")
@pytest.mark.parametrize("wrong", [-1, math.nan])
def test_a_negative_window_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="agent_tool_reattach_max_window must be zero or more"):
        ramet.AgentOptions(agent_tool_reattach_max_window=wrong)


@pytest.mark.behaviour("AT-312")
async def test_with_no_budget_a_child_at_work_is_given_up_at_once_and_left_alone(
    again: Stage,
) -> None:
    again.root = Strict
    await again.dispatch(run_id="r")
    await again.dispatch(run_id="over")
    (await again.child("r")).say("one")
    child_file = again.harness.path(Strict, "p", [(HandChild, "over")])
    await again.settle()
    await again.harness.crash()
    database = again.harness.host.files.open_existing(child_file)
    assert database is not None
    database.run("UPDATE outcome SET status = 'completed', summary = 'done'")
    database.close()
    HandChild.calls.clear()
    await again.harness.restart()
    await again.client()

    assert verdict(again) == ("interrupted", "no-progress", 1)
    assert again.row("over")["summary"] == "done"
    assert "tail" not in HandChild.calls
    assert HandChild.calls.count("inspect") == 2
    assert (await again.child("r")).status() == "running"


@pytest.mark.behaviour("AT-308", "AT-306")
async def test_after_a_silence_there_is_no_second_attempt_though_chunks_came_before(
    again: Stage,
) -> None:
    await again.dispatch(run_id="r")
    await reopened(again)
    (await again.child("r")).say("one", "two")
    await again.harness.advance(121)

    assert verdict(again) == ("interrupted", "no-progress", 1)
    assert HandChild.calls.count("tail") == 1
    assert "cancel" not in HandChild.calls


@pytest.mark.behaviour("AT-305")
async def test_what_is_sent_again_is_no_progress(again: Stage) -> None:
    await again.dispatch(run_id="r")
    child = await again.child("r")
    child.say("one")
    await again.settle()
    await reopened(again)
    child = await again.child("r")
    for _ in range(4):
        await again.harness.advance(31)
        for tail in child.tails:
            tail.push(child.stored()[0])

    assert verdict(again) == ("interrupted", "no-progress", 1)


@pytest.mark.behaviour("AT-310")
async def test_a_tail_that_raises_leads_to_one_more_question_to_the_child(again: Stage) -> None:
    await again.dispatch(ThrowingChild, run_id="r")
    ThrowingChild.throws = True
    await reopened(again)

    assert verdict(again) == ("interrupted", "no-progress", 1)
    assert HandChild.calls[-2:] == ["tail", "inspect"]
    assert [str(error) for error in (await again.parent()).errors] == ["no tail to be had"]


@pytest.mark.behaviour("AT-310", "AT-306")
async def test_a_tail_that_never_opens_is_a_silence(again: Stage) -> None:
    await again.dispatch(HangingTailChild, run_id="r")
    HangingTailChild.hangs = True
    await reopened(again)
    await again.harness.advance(121)

    assert verdict(again) == ("interrupted", "no-progress", 1)


async def test_a_child_that_hangs_when_asked_at_the_end_of_its_tail_is_given_up(
    again: Stage,
) -> None:
    await again.dispatch(run_id="r")
    await reopened(again)
    HandChild.stalls_on.add("inspect")
    (await again.child("r")).cut()
    await again.harness.advance(10)

    assert verdict(again) == ("interrupted", "inspect-timeout", None)


@pytest.mark.behaviour("AT-318", "AT-317", "AT-088")
async def test_giving_up_lets_go_of_the_childs_stream_and_of_nothing_else(again: Stage) -> None:
    await again.dispatch(run_id="r")
    await reopened(again)
    child = await again.child("r")
    watching: Tail[StoredChunk] = Tail()
    child.tails.append(watching)
    await again.harness.advance(121)

    assert child.tails == [watching]
    child.say("goes on")
    assert [item.sequence for item in watching.take_now()] == [0]
    assert child.status() == "running"
    assert child.cancel_reasons == []


@pytest.mark.behaviour("AT-319", "AT-298")
async def test_a_child_that_cannot_be_followed_is_given_up_without_an_attempt(
    again: Stage,
) -> None:
    caller = await again.dispatch(BusyNoTailChild, run_id="r")
    assert (await caller).reason == "not-tailable"
    BusyNoTailChild.calls.clear()

    result = await (await again.dispatch(BusyNoTailChild, run_id="r"))

    assert (result.status, result.reason) == ("interrupted", "not-tailable")
    assert (result.output, result.summary) == (None, None)
    assert BusyNoTailChild.calls == ["inspect", "chunks"]


@pytest.mark.behaviour("AT-304", "D2", "QK-002")
async def test_a_new_tail_begins_after_what_is_stored(again: Stage) -> None:
    await again.dispatch(run_id="r")
    (await again.child("r")).say("one", "two")
    await again.settle()
    await again.harness.crash()
    stored = again.harness.host.files.open_existing(
        again.harness.path(Parent, "p", [(HandChild, "r")])
    )
    assert stored is not None
    stored.run("INSERT INTO items VALUES (2, '{}', 'chunk')")
    stored.close()
    await again.harness.restart()
    client = await again.client()
    child = await again.child("r")
    child.say("four")
    child.end()
    await again.settle()

    assert numbers(client) == [0, 1, 2, 3, 4, 5]
    assert kinds(client) == ["started", *["chunk"] * 4, "finished"]


@pytest.mark.behaviour("D2", "D22", "AT-107")
async def test_progress_among_what_a_child_has_stored_is_passed_over(again: Stage) -> None:
    await again.dispatch(run_id="r")
    await again.harness.crash()
    stored = again.harness.host.files.open_existing(
        again.harness.path(Parent, "p", [(HandChild, "r")])
    )
    assert stored is not None
    body = '{"type":"data-agent-progress","id":"p","transient":true,"data":{"fraction":0.5}}'
    stored.run("INSERT INTO items VALUES (0, '{\"n\":0}', 'chunk')")
    stored.run("INSERT INTO items VALUES (0, ?, 'progress')", body)
    stored.run("INSERT INTO items VALUES (1, '{\"n\":1}', 'chunk')")
    stored.run("UPDATE outcome SET status = 'completed'")
    stored.close()
    await again.harness.restart()
    client = await again.client()

    bodies = [event_of(frame).get("body") for frame in events(client.frames)]
    assert bodies == [None, '{"n":0}', '{"n":1}', None]
    assert (await again.parent()).seen_progress == []
    late = await again.client()
    assert [event_of(frame).get("body") for frame in events(late.frames)] == bodies


@pytest.mark.behaviour("AT-301", "AT-291", "AT-303", "AT-300")
async def test_following_takes_its_own_time_and_starts_when_all_were_asked(again: Stage) -> None:
    told: list[Event] = []
    unsubscribe = subscribe("agent_tool", told.append)
    for n in range(3):
        await again.dispatch(run_id=f"r{n}")
    await reopened(again)
    await again.harness.advance(100)
    for n in range(3):
        (await again.child(f"r{n}")).end(summary="later")
    await again.settle()
    unsubscribe()

    assert [row["status"] for row in again.rows()] == ["completed"] * 3
    steps = [event.type.rpartition(":")[2] for event in told]
    assert steps == ["begin", *["reattach"] * 3, *["row"] * 3, "complete"]
    assert told[-1].payload == {"runCount": 3, "elapsedMs": 100_000}
    assert told[-2].payload["elapsedMs"] == 100_000


@pytest.mark.behaviour("AT-285")
async def test_a_parent_that_cannot_start_recovers_nothing_yet(again: Stage) -> None:
    again.root = Failing
    await again.dispatch(run_id="r")
    await again.harness.crash()
    HandChild.calls.clear()
    Failing.fails = True
    await again.harness.restart()
    with pytest.raises(ValueError, match="not today"):
        await again.parent()
    await again.harness.advance(300)
    assert (again.row("r")["status"], HandChild.calls) == ("running", [])

    Failing.fails = False
    await again.parent()
    await again.harness.advance(121)
    assert verdict(again) == ("interrupted", "no-progress", 1)


@pytest.mark.behaviour("AT-289", "OB-004")
async def test_a_recovery_that_fails_is_reported_and_the_parent_answers(again: Stage) -> None:
    told: list[Event] = []
    again.root = Strict
    await again.dispatch(run_id="r")
    parent = await again.parent()
    parent.sql(
        "CREATE TRIGGER full BEFORE UPDATE ON cf_agent_tool_runs "
        "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    unsubscribe = subscribe("agent_tool", told.append)
    await reopened(again)
    unsubscribe()

    assert [event.type for event in told][-1] == "agent_tool:recovery:failed"
    parent = await again.parent()
    assert [type(error).__name__ for error in parent.errors] == ["IntegrityError"]
    assert parent.list_agent_tool_runs()[0].status == "running"
    parent.sql("DROP TRIGGER full")
    assert (await (await again.dispatch(run_id="r"))).reason == "no-progress"


@pytest.mark.behaviour("AT-054", "AT-297", "D9")
@pytest.mark.parametrize("asked", ["before", "while it is looked at", "afterwards", "never"])
async def test_a_child_that_was_never_started_is_started_as_soon_as_its_input_is_known(
    again: Stage, asked: str
) -> None:
    HandChild.stalls_on.add("start")
    await again.dispatch(JoinedChild, run_id="r", input="why?")
    await again.harness.crash()
    HandChild.stalls_on.clear()
    HandChild.calls.clear()
    JoinedChild.join = asked == "while it is looked at"
    await again.harness.restart()
    callers = JoinedChild.joining
    if asked == "before":
        callers.append(await again.dispatch(JoinedChild, run_id="r", input="why?"))
    await again.parent()
    await again.settle()
    if asked == "afterwards":
        callers.append(await again.dispatch(JoinedChild, run_id="r", input="why?"))
    if asked == "never":
        assert verdict(again) == ("interrupted", "no-progress", None)
        assert HandChild.calls == ["inspect", "chunks", "inspect", "tail", "inspect"]
        return
    child = await again.child("r", JoinedChild)
    assert child.inputs == ["why?"]
    child.end(summary="because")
    await again.settle()

    assert [(await caller).summary for caller in callers] == ["because"]
    assert verdict(again) == ("completed", None, None)


@pytest.mark.behaviour("AT-312", "AT-054")
async def test_a_child_that_was_never_started_is_started_although_it_is_not_to_be_followed(
    again: Stage,
) -> None:
    again.root = Strict
    HandChild.stalls_on.add("start")
    await again.dispatch(run_id="r", input="why?")
    await again.harness.crash()
    HandChild.stalls_on.clear()
    HandChild.stalls_on.add("inspect")
    await again.harness.restart()
    parent = await again.parent()
    HandChild.stalls_on.clear()
    asking = asyncio.ensure_future(parent.run_agent_tool(HandChild, run_id="r", input="why?"))
    await again.settle()
    await again.harness.advance(2)
    first = await asking
    again_asked = await (await again.dispatch(run_id="r", input="why?"))

    assert (first.reason, again_asked.reason) in {
        ("inspect-timeout", "no-progress"),
        ("no-progress", "no-progress"),
    }
    assert (await again.child("r")).inputs == ["why?"]


@pytest.mark.behaviour("AT-312", "AT-054")
async def test_a_child_whose_input_becomes_known_while_it_is_looked_at_is_started_at_once(
    again: Stage,
) -> None:
    again.root = Strict
    HandChild.stalls_on.add("start")
    await again.dispatch(run_id="r", input="why?")
    await again.harness.crash()
    HandChild.stalls_on.clear()
    HandChild.stalls_on.add("chunks")
    await again.harness.restart()
    caller = await again.dispatch(run_id="r", input="why?")
    HandChild.stalls_on.clear()
    await again.harness.advance(2)

    assert (await again.child("r")).inputs == ["why?"]
    result = await caller
    assert (result.status, result.child_still_running) == ("interrupted", True)


@pytest.mark.behaviour("AT-295", "AT-046")
async def test_a_run_ends_even_if_its_child_says_nothing_of_its_last_chunks(again: Stage) -> None:
    caller = await again.dispatch(run_id="r")
    child = await again.child("r")
    HandChild.stalls_on.add("chunks")
    child.end(summary="kept")
    await again.settle()
    assert not caller.done()
    await again.harness.advance(10)

    assert (await caller).summary == "kept"


@pytest.mark.behaviour("AT-055", "AT-059", "AT-054", "AT-207")
async def test_an_interrupted_run_is_repaired_after_a_restart_by_dispatching_it_again(
    again: Stage,
) -> None:
    await again.dispatch(run_id="r", input="why?")
    await reopened(again)
    await again.harness.advance(121)
    assert verdict(again) == ("interrupted", "no-progress", 1)
    await again.harness.crash()
    await again.harness.restart()
    (await again.child("r")).end(summary="after all", output=[1])

    result = await (await again.dispatch(run_id="r", input="why?"))

    assert (result.status, result.summary, result.output) == ("completed", "after all", [1])
    assert verdict(again) == ("completed", None, None)
    assert (await again.child("r")).inputs == []
    assert [run.status for run, _ in (await again.parent()).finished] == ["completed"]


@pytest.mark.behaviour("AT-059", "AT-207")
async def test_an_interrupted_run_is_repaired_by_looking_at_it(again: Stage) -> None:
    client = await again.client()
    await again.dispatch(run_id="r")
    child = await again.child("r")
    child.cut()
    await again.settle()
    parent = await again.parent()
    looked = await parent.inspect_agent_tool("r")
    assert looked is not None
    assert (looked.run.status, kinds(client)[-1]) == ("interrupted", "interrupted")
    child.say("late")
    child.end(summary="after all")

    looked = await parent.inspect_agent_tool("r")
    await again.settle()

    assert looked is not None
    assert looked.result is not None
    assert (looked.run.status, looked.result.summary) == ("completed", "after all")
    assert kinds(client) == ["started", "interrupted", "chunk", "finished"]
    assert [run.status for run, _ in parent.finished] == ["interrupted", "completed"]


@pytest.mark.behaviour("AT-054", "AT-287", "QK-008")
async def test_dispatching_again_after_a_restart_joins_the_recovery(again: Stage) -> None:
    client = await again.client()
    await again.dispatch(run_id="r", input="why?")
    await again.harness.crash()
    HandChild.calls.clear()
    await again.harness.restart()
    client = await again.client()
    joined = [await again.dispatch(run_id="r", input="why?") for _ in range(2)]
    (await again.child("r")).end(summary="one answer")
    await again.settle()

    assert [(await each).summary for each in joined] == ["one answer"] * 2
    assert "start" not in HandChild.calls
    assert kinds(client) == ["started", "finished"]
    parent = await again.parent()
    assert (len(parent.started), len(parent.finished)) == (0, 1)


@pytest.mark.behaviour("AT-056", "AT-057", "AT-323")
async def test_a_re_dispatch_that_gives_up_seals_and_tells_the_run_again(again: Stage) -> None:
    client = await again.client()
    await again.dispatch(run_id="r")
    child = await again.child("r")
    child.cut()
    await again.settle()
    child.say("one")
    caller = await again.dispatch(run_id="r")
    await again.harness.advance(121)

    result = await caller
    assert (result.status, result.reason, result.child_still_running) == (
        "interrupted",
        "no-progress",
        True,
    )
    assert kinds(client) == ["started", "interrupted", "chunk", "interrupted"]
    assert numbers(client) == [0, 1, 2, 3]
    assert len((await again.parent()).finished) == 2
