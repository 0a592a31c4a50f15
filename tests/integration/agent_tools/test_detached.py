"""Runs that nobody waits for: dispatched, delivered once, found again after a crash."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.core.signals import AbortController
from ramet.errors import InvalidArguments, MethodNotFound, RunBelongsToAnother
from tests.integration.agent_tools.children import HandChild, Parent
from tests.integration.agent_tools.conftest import kinds, numbers
from tests.integration.agent_tools.detached_stage import (
    Boss,
    CappedBoss,
    NoTail,
    Office,
    Reporter,
    listening,
    opened_office,
)


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async for opened in opened_office(tmp_path):
        yield opened


@pytest.mark.behaviour("AT-005", "AT-229", "AT-236", "AT-244", "AT-267", "D36")
async def test_a_run_that_was_let_go_of_reports_back_once(office: Office) -> None:
    client = await office.client()
    handle = await office.let_go()
    assert handle == ramet.DetachedRun(run_id="r", agent_type="Reporter", status="running")
    assert office.ticks() == [(5, {"cadenceIndex": 0})]
    assert (office.row()["status"], office.row()["detached"]) == ("running", 1)

    child = await office.child()
    child.say("one")
    child.end(output={"n": 1}, summary="all done")
    await office.settle()

    assert Boss.log == ["start r", "finish r", "done r completed"]
    [(run, result)] = (await office.boss()).results
    assert (run.run_id, run.status, result.summary) == ("r", "completed", "all done")
    assert result.output == {"n": 1}
    assert kinds(client) == ["started", "chunk", "finished"]
    assert numbers(client) == [0, 1, 2]
    assert office.row()["finish_delivered_at"] is not None
    assert office.ticks() == []
    await office.advance(300)
    assert office.calls() == ["done r completed"]


@pytest.mark.behaviour("AT-019", "AT-232")
async def test_true_wires_no_callback_and_still_tells_everybody(office: Office) -> None:
    client = await office.client()
    boss = await office.boss()
    await boss.run_agent_tool(Reporter, run_id="r", detached=True)
    (await office.child()).end(summary="s")
    await office.settle()

    assert Boss.log == ["start r", "finish r"]
    assert kinds(client) == ["started", "finished"]
    assert office.row()["detached_on_finish"] is None


@pytest.mark.behaviour("AT-230", "AT-234")
async def test_what_was_asked_for_stands_in_the_row(office: Office) -> None:
    now = office.harness.clock.now_ms()
    await office.let_go(
        "all",
        max_budget=60,
        no_progress_budget=7,
        notify=ramet.Notify(source="nightly"),
    )
    await office.let_go("none", max_budget=math.inf, no_progress_budget=math.inf)
    await office.let_go("zero", no_progress_budget=0)

    row = office.row("all")
    assert row["detached_on_finish"] == "done"
    assert row["detached_notify_source"] == "nightly"
    assert row["detached_max_budget_at"] == now + 60_000
    assert row["detached_no_progress_budget_ms"] == 7_000
    none = office.row("none")
    assert none["detached_max_budget_at"] is None
    assert none["detached_no_progress_budget_ms"] is None
    assert none["detached_on_milestones"] is None
    zero = office.row("zero")
    assert zero["detached_max_budget_at"] == now + 7_200_000
    assert zero["detached_no_progress_budget_ms"] == 0
    await office.restart()
    runs = {run.run_id: run for run in (await office.boss()).list_agent_tool_runs()}
    assert runs["all"].notify_source == "nightly"
    assert runs["none"].notify_source is None


@pytest.mark.behaviour("AT-233", "AT-279")
@pytest.mark.parametrize("asked", [{"on_finish": None, "notify": True}, {"on_milestones": ["a"]}])
async def test_what_needs_a_chat_is_refused_where_there_is_none(
    office: Office, asked: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArguments, match="has a chat told, and this agent has none"):
        await office.let_go("plain", **asked)
    assert (await office.boss()).list_agent_tool_runs() == []
    assert office.ticks() == []


@pytest.mark.behaviour("AT-231")
@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"on_finish": "nothing"}, MethodNotFound, "Boss has no method 'nothing'"),
        ({"on_finish": lambda run, result: None}, InvalidArguments, "only a name can be stored"),
        ({"on_finish": "_cfDetachedNotifyFinish"}, MethodNotFound, "_cfDetachedNotifyFinish"),
        ({"max_budget": -1}, ValueError, "max_budget must be a positive number of seconds, not -1"),
        ({"max_budget": 0}, ValueError, "max_budget must be a positive number of seconds, not 0"),
        ({"max_budget": math.nan}, ValueError, "max_budget .* not nan"),
        ({"max_budget": "1h"}, InvalidArguments, "max_budget .* not '1h'"),
        ({"no_progress_budget": -0.5}, ValueError, "no_progress_budget .* not -0.5"),
        ({"no_progress_budget": math.nan}, ValueError, "no_progress_budget .* not nan"),
        ({"notify": "yes"}, InvalidArguments, "notify is True, False or .* not 'yes'"),
        ({"notify": ramet.Notify(source="")}, InvalidArguments, "source of a notice .* not ''"),
        ({"on_milestones": [""]}, InvalidArguments, "A milestone must have a name, not ''"),
        ({"on_milestones": ["a", " "]}, InvalidArguments, "A milestone must have a name"),
        ({"on_milestones": [None]}, InvalidArguments, "must have a name, not None"),
        ({"on_milestones": "ready"}, InvalidArguments, "list of names .* not 'ready'"),
        (
            {"on_milestones": ramet.Milestones(["a"], mode="shout")},  # type: ignore[arg-type] # what users may do
            InvalidArguments,
            "narrate, react, not 'shout'",
        ),
    ],
)
async def test_what_cannot_be_is_refused_at_the_call_and_nothing_is_written(
    office: Office, asked: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        await office.let_go(**asked)
    boss = await office.boss()
    assert boss.list_agent_tool_runs() == []
    assert not boss.has_sub_agent(Reporter, "r")
    assert office.ticks() == []
    assert Boss.log == []


async def test_an_input_preview_that_is_not_json_is_refused_before_anything_is_written(
    office: Office,
) -> None:
    boss = await office.boss()
    with pytest.raises(ValueError, match="object"):
        await boss.run_agent_tool(Reporter, run_id="r", display=object(), detached=True)
    assert boss.list_agent_tool_runs() == []
    assert office.ticks() == []


async def test_a_type_for_the_output_is_for_those_who_wait(office: Office) -> None:
    boss: Any = await office.boss()
    with pytest.raises(InvalidArguments, match="leave out output=<class 'int'>"):
        await boss.run_agent_tool(Reporter, run_id="r", output=int, detached=True)


@pytest.mark.behaviour("AT-190")
async def test_the_signal_of_a_detached_run_is_ignored_with_a_warning(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    controller = AbortController()
    controller.abort("no")
    boss = await office.boss()
    with caplog.at_level(logging.WARNING):
        handle = await boss.run_agent_tool(
            Reporter, run_id="r", signal=controller.signal, detached=True
        )
    assert handle.status == "running"
    assert "signal of a detached run is ignored" in caplog.text
    (await office.child()).end()
    await office.settle()
    assert office.row()["status"] == "completed"


@pytest.mark.behaviour("AT-229", "QK-005", "D32")
async def test_what_the_start_raises_is_raised_at_the_call_and_ends_the_run(
    office: Office,
) -> None:
    client = await office.client()
    Parent.start_error = PermissionError("not today")
    with pytest.raises(PermissionError, match="not today"):
        await office.let_go()
    await office.settle()
    assert (office.row()["status"], office.row()["error_message"]) == ("error", "not today")
    assert kinds(client) == ["started", "error"]
    assert office.calls() == []
    assert office.ticks() == []

    Parent.start_error = None
    HandChild.fails_on["start"] = ValueError("broken child")
    with pytest.raises(ValueError, match="broken child"):
        await office.let_go("s")
    await office.settle()
    assert office.row("s")["status"] == "error"
    await office.advance(300)
    assert office.calls() == []


@pytest.mark.behaviour("D12")
async def test_cancelling_the_caller_changes_nothing_of_the_run(office: Office) -> None:
    HandChild.stalls_on.add("start")
    boss = await office.boss()
    loop = asyncio.get_running_loop()
    call = loop.create_task(
        boss.run_agent_tool(Reporter, run_id="r", detached=ramet.Detached(on_finish=boss.done))
    )
    await office.settle()
    call.cancel()
    await office.settle()
    assert office.row()["status"] == "starting"
    cancel = loop.create_task(boss.cancel_agent_tool("r"))
    await office.advance(30)
    await cancel
    assert office.calls() == ["done r aborted"]


@pytest.mark.behaviour("AT-198")
async def test_a_run_over_the_cap_is_refused_and_not_looked_after(office: Office) -> None:
    office.root = CappedBoss
    await office.let_go("first")
    handle = await office.let_go("second")
    again = await office.let_go("second")

    assert (handle.status, handle.error) == ("error", "maxConcurrentAgentTools (1) exceeded")
    assert again == handle  # QK-012
    row = office.row("second")
    assert (row["detached"], row["detached_on_finish"]) == (0, None)
    (await office.child("first")).end()
    await office.settle()
    assert office.ticks() == []
    assert office.calls() == ["done first completed"]


@pytest.mark.behaviour("AT-265", "AT-237", "QK-012", "D32")
async def test_dispatching_the_same_run_again_gives_the_same_run(office: Office) -> None:
    client = await office.client()
    await office.let_go()
    await office.advance(6)
    assert office.ticks()[0][1] == {"cadenceIndex": 1}
    armed = office.ticks()
    again = await office.let_go()
    assert again.status == "running"
    assert office.ticks() == armed
    assert HandChild.calls.count("start") == 1
    (await office.child()).end(summary="s")
    await office.settle()
    over = await office.let_go()
    assert (over.status, office.calls()) == ("completed", ["done r completed"])
    assert kinds(client) == ["started", "finished"]


async def test_a_run_that_is_awaited_cannot_be_let_go_of_under_its_id(office: Office) -> None:
    boss = await office.boss()
    task = asyncio.get_running_loop().create_task(boss.run_agent_tool(Reporter, run_id="r"))
    await office.settle()
    with pytest.raises(RunBelongsToAnother, match="'r' is awaited"):
        await office.let_go()
    (await office.child()).end(summary="s")
    assert (await task).summary == "s"
    assert office.ticks() == []


@pytest.mark.behaviour("QK-010", "D12")
async def test_who_waits_for_a_detached_run_only_observes(office: Office) -> None:
    await office.let_go()
    boss, loop = await office.boss(), asyncio.get_running_loop()
    controller = AbortController()
    dropped = loop.create_task(boss.run_agent_tool(Reporter, run_id="r"))
    left = loop.create_task(boss.run_agent_tool(Reporter, run_id="r", signal=controller.signal))
    waiting = loop.create_task(boss.run_agent_tool(Reporter, run_id="r"))
    await office.settle()
    dropped.cancel()
    controller.abort("enough")
    result = await left
    assert (result.status, result.error) == ("interrupted", None)
    await office.settle()
    child = await office.child()
    assert (office.row()["status"], child.cancel_reasons) == ("running", [])
    child.end(summary="s")
    result = await waiting
    assert (result.status, result.summary) == ("completed", "s")
    await office.settle()
    assert Boss.log == ["start r", "finish r", "done r completed"]
    late = await boss.run_agent_tool(Reporter, run_id="r")
    assert late.summary == "s"


@pytest.mark.behaviour("AT-237", "AT-238")
async def test_however_many_are_dispatched_there_is_one_tick(office: Office) -> None:
    await asyncio.gather(*(office.let_go(f"r{n}") for n in range(5)))
    assert office.ticks() == [(5, {"cadenceIndex": 0})]
    await office.advance(6)
    assert office.ticks() == [(14, {"cadenceIndex": 1})]
    await office.let_go("late")
    assert office.ticks() == [(5, {"cadenceIndex": 0})]


@pytest.mark.behaviour("AT-239", "AT-240", "AT-020")
async def test_ticks_come_less_and_less_often_while_something_is_outstanding(
    office: Office,
) -> None:
    await office.let_go()
    seen = []
    for seconds in (5, 15, 30, 120, 120):
        await office.advance(seconds)
        [(due, payload)] = office.ticks()
        seen.append((due, payload["cadenceIndex"]))
    assert seen == [(15, 1), (30, 2), (120, 3), (120, 3), (120, 3)]
    (await office.child()).end()
    await office.settle()
    assert office.ticks() == []


@pytest.mark.behaviour("AT-266", "OB-004")
async def test_very_many_live_runs_are_reported_once(office: Office) -> None:
    with listening() as told:
        for n in range(51):
            await office.let_go(f"r{n}")
        for n in range(3):
            (await office.child(f"r{n}")).end()
        await office.settle()
        await office.let_go("below")
        await office.let_go("again")
    warned = [event.payload for event in told if event.type.endswith("live_count_warning")]
    assert warned == [{"liveCount": 50, "threshold": 50}] * 2


@pytest.mark.behaviour("AT-282", "AT-209")
async def test_signs_of_life_are_noted_in_the_row_of_a_detached_run_only(office: Office) -> None:
    await office.let_go()
    boss = await office.boss()
    task = asyncio.get_running_loop().create_task(boss.run_agent_tool(Reporter, run_id="w"))
    await office.advance(3)
    (await office.child()).progress(0.5)
    (await office.child("w")).progress(0.5)
    await office.settle()
    assert office.row()["last_progress_at"] == office.harness.clock.now_ms()
    assert office.row("w")["last_progress_at"] is None
    assert [progress.fraction for progress in boss.seen_progress] == [0.5, 0.5]
    (await office.child("w")).end()
    await task


@pytest.mark.behaviour("AT-267", "D13")
async def test_a_callback_runs_as_the_agent_and_may_start_the_next_run(office: Office) -> None:
    await office.let_go(on_finish="goes_on")
    (await office.child()).end(summary="first")
    await office.settle()
    following = await office.child("next")
    assert following.inputs == ["first"]
    assert office.row()["finish_delivered_at"] is None
    following.end(summary="second")
    await office.settle()
    assert (await office.boss()).state == "second"
    assert office.row()["finish_delivered_at"] is not None


@pytest.mark.behaviour("AT-331", "AT-327")
async def test_a_run_that_is_cleared_while_it_runs_calls_nobody(office: Office) -> None:
    await office.let_go()
    boss = await office.boss()
    waiting = asyncio.get_running_loop().create_task(boss.run_agent_tool(Reporter, run_id="r"))
    await office.settle()
    assert await boss.clear_agent_tool_runs() == 1
    await office.advance(300)
    assert office.calls() == []
    assert (await waiting).status == "aborted"
    assert boss.list_agent_tool_runs() == []
    assert office.ticks() == []


@pytest.mark.behaviour("AT-241", "AT-048", "AT-133")
async def test_a_child_that_cannot_be_followed_is_found_by_the_tick(office: Office) -> None:
    client = await office.client()
    await office.let_go(cls=NoTail)
    child = await office.child(cls=NoTail)
    child.say("one")
    await office.advance(5)
    assert office.calls() == []
    child.end(summary="s")
    await office.advance(15)
    assert office.calls() == ["done r completed"]
    assert kinds(client) == ["started", "chunk", "finished"]
    assert numbers(client) == [0, 1, 2]


@pytest.mark.behaviour("AT-296", "D14")
async def test_the_parent_can_leave_memory_and_is_woken_for_a_child_nobody_follows(
    office: Office,
) -> None:
    await office.let_go(cls=NoTail)
    await office.settle()
    await office.harness.evict(Boss, "b", force=True)
    (await office.child(cls=NoTail)).end()
    await office.harness.evict(Boss, "b", force=True)
    await office.advance(20)
    assert office.calls() == ["done r completed"]


async def test_a_run_under_way_keeps_its_parent_in_memory(office: Office) -> None:
    await office.let_go()
    with pytest.raises(ramet.RametError, match="run is under way"):
        await office.harness.evict(Boss, "b")
    (await office.child()).end()
    await office.settle()
    await office.harness.evict(Boss, "b", sub=[(Reporter, "r")])
    await office.harness.evict(Boss, "b")
    assert office.calls() == ["done r completed"]
