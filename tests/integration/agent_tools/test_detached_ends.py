"""How detached runs end: delivered once, retried, given up, cancelled, over restarts and races."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ramet
from ramet.agent_tools.run_store import RunStore
from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.testing import Gate
from tests.integration.agent_tools.children import HandChild, Parent, events
from tests.integration.agent_tools.conftest import event_of, kinds, numbers
from tests.integration.agent_tools.detached_stage import (
    Boss,
    NoTail,
    Office,
    Reporter,
    listening,
    opened_office,
)

MINUTE = 60.0


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async for opened in opened_office(tmp_path):
        yield opened


# --- one delivery, whoever makes it -----------------------------------------------------------


@pytest.mark.behaviour("AT-245", "AT-246")
async def test_of_two_who_want_to_deliver_one_gets_the_claim(office: Office) -> None:
    await office.let_go()
    runs = RunStore((await office.boss())._ramet.context.database)
    assert runs.claim("r", "finish", now=1_000, lease=60_000)
    assert not runs.claim("r", "finish", now=1_000, lease=60_000)
    assert not runs.claim("r", "finish", now=60_999, lease=60_000)
    assert runs.claim("r", "finish", now=61_000, lease=60_000)
    assert runs.claim("r", "give-up", now=61_000, lease=60_000)
    runs.delivered("r", "finish", 62_000)
    assert not runs.claim("r", "finish", now=900_000, lease=60_000)
    (await office.child()).end()
    await office.settle()
    assert office.calls() == []


@pytest.mark.behaviour("AT-245", "AT-244")
async def test_a_tick_while_the_callback_runs_does_not_call_it_again(office: Office) -> None:
    Boss.gate = Gate()
    await office.let_go()
    (await office.child()).end()
    await office.advance(10 * MINUTE)
    assert office.calls() == ["done r completed"]
    assert office.row()["finish_delivered_at"] is None
    Boss.gate.open()
    await office.settle()
    assert office.row()["finish_delivered_at"] is not None
    await office.advance(10 * MINUTE)
    assert office.calls() == ["done r completed"]


@pytest.mark.behaviour("AT-242", "AT-245")
async def test_the_tick_and_the_follower_that_find_the_same_end_deliver_it_once(
    office: Office,
) -> None:
    client = await office.client()
    await office.let_go()
    child = await office.child()
    HandChild.stalls_on.add("chunks")  # both are about to collect what is stored
    child.sql("UPDATE outcome SET status = 'completed'")
    await office.advance(5)
    HandChild.stalls_on.clear()
    child.cut()
    await office.advance(20)
    assert office.calls() == ["done r completed"]
    assert kinds(client) == ["started", "finished"]


@pytest.mark.behaviour("AT-247", "AT-248", "AT-249", "AT-207", "OB-004")
async def test_a_callback_that_raises_is_called_again_after_the_lease(office: Office) -> None:
    Boss.failures.append(ValueError("not now"))
    with listening() as told:
        await office.let_go()
        (await office.child()).end(summary="s")
        await office.settle()
    [failed] = [event for event in told if event.type.endswith("delivery_failed")]
    assert failed.payload == {
        "runId": "r",
        "kind": "finish",
        "status": "completed",
        "callback": "done",
        "error": "not now",
    }
    boss = await office.boss()
    assert [str(error) for error in boss.errors] == ["not now"]
    assert (office.row()["status"], office.row()["finish_delivered_at"]) == ("completed", None)
    await office.advance(59)
    assert office.calls() == ["done r completed"]
    await office.advance(2)
    assert Boss.log == ["start r", *["finish r", "done r completed"] * 2]
    assert office.row()["finish_delivered_at"] is not None
    await office.advance(10 * MINUTE)
    assert len(office.calls()) == 2
    assert office.ticks() == []


@pytest.mark.behaviour("AT-206")
async def test_a_hook_for_all_runs_that_raises_does_not_keep_the_callback_from_being_called(
    office: Office,
) -> None:
    Parent.finish_error = ValueError("hook")
    await office.let_go()
    (await office.child()).end()
    await office.settle()
    assert Boss.log == ["start r", "finish r", "done r completed"]
    assert office.row()["finish_delivered_at"] is not None
    assert [str(error) for error in (await office.boss()).errors] == ["hook"]


@pytest.mark.behaviour("AT-250")
async def test_a_callback_that_is_gone_is_passed_over(office: Office) -> None:
    await office.let_go()
    boss = await office.boss()
    boss.sql("UPDATE cf_agent_tool_runs SET detached_on_finish = 'renamed'")
    (await office.child()).end()
    await office.settle()
    assert Boss.log == ["start r", "finish r"]
    assert office.row()["finish_delivered_at"] is not None
    assert boss.errors == []


# --- after a crash ------------------------------------------------------------------------------


async def test_a_crash_before_the_task_of_a_run_has_begun_leaves_its_row(
    office: Office,
) -> None:
    boss, loop = await office.boss(), asyncio.get_running_loop()
    asked = ramet.Detached(on_finish="done")
    calls = [
        loop.create_task(boss.run_agent_tool(Reporter, run_id="detached", detached=asked)),
        loop.create_task(boss.run_agent_tool(Reporter, run_id="awaited")),
    ]
    loop.call_soon(office.harness.host.crash)  # the tasks of the runs have not begun then
    await office.settle()
    for call in calls:
        call.cancel()
    await office.restart()
    assert office.row("detached")["status"] == "starting"


@pytest.mark.behaviour("AT-280", "AT-281", "QK-019")
async def test_a_restart_leaves_detached_runs_alone_and_goes_on_following_them(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ramet")
    await office.let_go()
    (await office.child()).say("one")
    await office.settle()
    await office.restart()
    client = await office.client()
    assert office.row()["status"] == "running"
    assert len(office.ticks()) == 1
    child = await office.child()
    child.say("two")
    child.progress(0.5)
    await office.settle()
    assert kinds(client) == ["started", *["chunk"] * 3]
    await office.advance(5 * MINUTE)
    assert office.row()["status"] == "running"
    child.end(summary="s")
    await office.settle()
    assert office.calls() == ["done r completed"]
    assert sorted(set(map(str, numbers(client)))) == ["0", "1", "2", "3", "4"]
    told = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert told == ["the run r of Reporter is taken up"]


@pytest.mark.behaviour("AT-242", "AT-278", "AT-341", "D6")
async def test_nobody_has_to_open_the_parent_for_a_run_to_report_back(office: Office) -> None:
    await office.let_go()
    (await office.child()).end(summary="s")
    await office.harness.crash()  # before anything of it reached the parent
    assert office.row()["status"] == "running"
    await office.harness.restart()
    await office.advance(6)
    assert office.calls() == ["done r completed"]
    [(_, result)] = (await office.boss()).results
    assert result.summary == "s"


@pytest.mark.behaviour("AT-247", "D36")
async def test_a_crash_in_the_callback_has_it_called_again_after_the_lease(
    office: Office,
) -> None:
    Boss.gate = Gate()
    await office.let_go()
    (await office.child()).end()
    await office.settle()
    assert office.calls() == ["done r completed"]
    await office.harness.crash()
    Boss.gate = None
    await office.harness.restart()
    await office.advance(50)
    assert office.calls() == ["done r completed"]
    await office.advance(20)
    assert office.calls() == ["done r completed"] * 2
    await office.advance(10 * MINUTE)
    assert office.calls() == ["done r completed"] * 2


@pytest.mark.behaviour("QK-019", "AT-240")
async def test_a_lost_tick_is_armed_again_when_only_a_given_up_run_is_left(
    office: Office,
) -> None:
    HandChild.fails_on["cancel"] = ValueError("no")
    await office.let_go(max_budget=10)
    await office.advance(20)
    assert office.row()["status"] == "interrupted"
    boss = await office.boss()
    boss.sql("DELETE FROM cf_agents_schedules")
    await office.restart()
    await office.boss()
    assert len(office.ticks()) == 1
    HandChild.fails_on.clear()
    (await office.child()).end(summary="late")
    await office.advance(130)
    assert office.calls() == ["done r interrupted", "done r completed"]


async def test_a_child_that_a_crash_kept_from_starting_is_started_by_its_next_dispatch(
    office: Office,
) -> None:
    HandChild.stalls_on.add("start")
    call = asyncio.get_running_loop().create_task(office.let_go())
    await office.settle()
    call.cancel()
    await office.restart()
    HandChild.stalls_on.clear()
    handle = await office.let_go()
    await office.settle()
    assert (handle.status, office.row()["status"]) == ("running", "running")
    child = await office.child()
    assert child.inputs == ["go"]
    child.end()
    await office.settle()
    assert office.calls() == ["done r completed"]


@pytest.mark.behaviour("AT-243")
async def test_a_run_whose_child_was_never_begun_fails_after_two_minutes(office: Office) -> None:
    HandChild.stalls_on.add("start")
    call = asyncio.get_running_loop().create_task(office.let_go())
    await office.settle()
    call.cancel()
    await office.restart()
    HandChild.stalls_on.clear()
    await office.advance(110)
    assert office.row()["status"] == "starting"
    await office.advance(130)
    assert office.row()["error_message"] == (
        "The process ended before the child of this run was started."
    )
    assert office.calls() == ["done r error"]


@pytest.mark.behaviour("AT-243", "AT-254")
async def test_a_run_that_was_given_up_before_its_child_ever_began_ends_too(
    office: Office,
) -> None:
    HandChild.stalls_on.add("start")
    call = asyncio.get_running_loop().create_task(office.let_go(max_budget=5))
    await office.settle()
    call.cancel()
    await office.restart()
    await office.advance(5 * MINUTE)
    assert office.calls() == ["done r interrupted", "done r error"]
    assert office.ticks() == []


@pytest.mark.behaviour("D2", "AT-133")
@pytest.mark.parametrize("end", ["cancel", "budget"])
@pytest.mark.parametrize("child", ["readable", "unreadable"])
async def test_the_end_of_a_run_that_was_just_taken_up_has_a_number_of_its_own(
    office: Office, end: str, child: str
) -> None:
    await office.let_go(max_budget=30)
    (await office.child()).say("one", "two")
    await office.settle()
    HandChild.stalls_on.add("inspect")  # it is asked, and not followed yet
    await office.restart()
    boss = await office.boss()
    if child == "unreadable":
        HandChild.fails_on["chunks"] = ConnectionError("away")
    if end == "cancel":
        asyncio.get_running_loop().create_task(boss.cancel_agent_tool("r")).add_done_callback(
            lambda _: None
        )
    await office.advance(45)
    seen = numbers(await office.client())
    assert seen[:3] == [0, 1, 2]
    assert len(seen) == 4
    last = seen[-1]
    assert isinstance(last, int)
    assert last == 3 if child == "readable" else last > 1_000_000


@pytest.mark.behaviour("AT-243")
async def test_a_child_that_cannot_be_reached_is_still_at_work(office: Office) -> None:
    await office.let_go(cls=NoTail)
    HandChild.fails_on["inspect"] = ConnectionError("away")
    await office.advance(10 * MINUTE)
    assert (office.row()["status"], office.calls()) == ("running", [])
    HandChild.fails_on.clear()
    HandChild.stalls_on.add("inspect")
    await office.advance(10 * MINUTE)
    assert (office.row()["status"], office.calls()) == ("running", [])
    HandChild.stalls_on.clear()
    (await office.child(cls=NoTail)).end()
    await office.advance(3 * MINUTE)
    assert office.calls() == ["done r completed"]


async def test_a_child_that_was_deleted_ends_its_run(office: Office) -> None:
    await office.let_go(cls=NoTail)
    await (await office.boss()).delete_sub_agent(NoTail, "r")
    await office.advance(30)
    assert office.calls() == ["done r error"]
    assert office.row()["error_message"] == "The child of this run was deleted."


# --- budgets ------------------------------------------------------------------------------------


@pytest.mark.behaviour("AT-252", "AT-254", "AT-263", "AT-264", "QK-018", "AT-253", "AT-251")
async def test_a_run_over_its_budget_is_given_up_and_then_ends_as_cancelled(
    office: Office,
) -> None:
    client = await office.client()
    await office.let_go(max_budget=MINUTE)
    await office.advance(59)
    assert (office.row()["status"], office.calls()) == ("running", [])
    await office.advance(2)

    row = office.row()
    assert (row["status"], row["interrupted_reason"]) == ("interrupted", "budget-exceeded")
    assert row["child_still_running"] == 0
    [(run, result)] = (await office.boss()).results
    assert (run.status, result.reason, result.child_still_running) == (
        "interrupted",
        "budget-exceeded",
        False,
    )
    assert kinds(client) == ["started", "interrupted"]
    assert event_of(events(client.frames)[-1])["childStillRunning"] is False
    assert len(office.ticks()) == 1

    await office.advance(2 * MINUTE + 1)
    assert office.calls() == ["done r interrupted", "done r aborted"]
    assert kinds(client) == ["started", "interrupted", "aborted"]
    assert office.row()["status"] == "aborted"
    assert office.ticks() == []


@pytest.mark.behaviour("AT-252", "AT-251", "AT-254", "AT-253")
async def test_a_child_that_goes_on_after_it_was_given_up_still_reports_its_end(
    office: Office,
) -> None:
    HandChild.fails_on["cancel"] = ConnectionError("away")
    client = await office.client()
    await office.let_go(max_budget=MINUTE)
    await office.advance(10 * MINUTE)
    assert office.calls() == ["done r interrupted"]
    assert office.row()["child_still_running"] == 1
    child = await office.child()
    child.say("more")
    child.end(summary="after all")
    await office.settle()
    assert office.calls() == ["done r interrupted", "done r completed"]
    row = office.row()
    assert (row["status"], row["interrupted_reason"], row["child_still_running"]) == (
        "completed",
        None,
        None,
    )
    assert kinds(client) == ["started", "interrupted", "chunk", "finished"]
    assert office.ticks() == []


@pytest.mark.behaviour("AT-253", "AT-247", "AT-264")
async def test_that_a_run_was_given_up_is_told_again_after_the_lease_when_the_callback_raised(
    office: Office,
) -> None:
    HandChild.fails_on["cancel"] = ConnectionError("away")
    Boss.failures.append(ValueError("not now"))
    client = await office.client()
    await office.let_go(max_budget=MINUTE)
    await office.advance(65)
    assert office.calls() == ["done r interrupted"]
    await office.advance(10 * MINUTE)
    assert office.calls() == ["done r interrupted"] * 2
    assert kinds(client) == ["started", "interrupted"]


@pytest.mark.behaviour("AT-251")
async def test_a_callback_that_hangs_on_a_give_up_does_not_keep_the_end_from_coming(
    office: Office,
) -> None:
    Boss.gate = Gate()
    await office.let_go(max_budget=10)
    await office.advance(15)
    assert office.calls() == ["done r interrupted"]
    await office.advance(5 * MINUTE)
    assert office.calls() == ["done r interrupted", "done r aborted"]


@pytest.mark.behaviour("AT-242")
async def test_children_that_do_not_answer_hold_up_the_others_only_once(office: Office) -> None:
    for n in range(5):
        await office.let_go(f"r{n}", cls=NoTail)
    (await office.child("r4", cls=NoTail)).sql("UPDATE outcome SET status = 'completed'")
    HandChild.stalls_on.add("inspect")
    await office.advance(6)
    HandChild.stalls_on.clear()
    await office.advance(24)
    assert office.calls() == ["done r4 completed"]


@pytest.mark.behaviour("AT-255")
async def test_without_an_absolute_budget_a_run_may_take_for_ever(office: Office) -> None:
    await office.let_go(max_budget=float("inf"), no_progress_budget=0)
    (await office.child()).progress(0.1)
    await office.advance(86_400)
    assert (office.row()["status"], office.calls()) == ("running", [])


@pytest.mark.behaviour("AT-256", "AT-259", "AT-257")
async def test_a_run_that_goes_silent_is_given_up_and_one_that_signals_is_not(
    office: Office,
) -> None:
    await office.let_go("silent")
    await office.let_go("lively")
    (await office.child("silent")).progress(0.1)
    lively = await office.child("lively")
    for n in range(5):
        await office.advance(5 * MINUTE)
        lively.milestone(f"m{n}", n)
        await office.settle()
    assert office.row("lively")["status"] == "running"
    assert office.calls() == ["done silent interrupted", "done silent aborted"]
    [(_, result), _] = (await office.boss()).results
    assert result.reason == "no-progress"


@pytest.mark.behaviour("AT-257")
@pytest.mark.parametrize("kind", ["progress", "milestone"])
async def test_signs_that_only_the_child_knows_of_count(office: Office, kind: str) -> None:
    await office.let_go(cls=NoTail)
    child = await office.child(cls=NoTail)
    await office.advance(8 * MINUTE)
    if kind == "progress":
        child.progress(0.1)
    else:
        _stored_milestone(child)
    await office.advance(5 * MINUTE)
    assert office.row()["status"] == "running"
    await office.advance(12 * MINUTE)
    assert (await office.boss()).results[0][1].reason == "no-progress"


@pytest.mark.behaviour("AT-258")
async def test_silence_alone_never_ends_a_run_that_has_never_signalled(office: Office) -> None:
    await office.let_go()
    (await office.child()).say("text is no sign")
    await office.advance(115 * MINUTE)
    assert office.row()["status"] == "running"
    await office.advance(10 * MINUTE)
    assert (await office.boss()).results[0][1].reason == "budget-exceeded"


@pytest.mark.behaviour("AT-260")
async def test_a_silence_budget_of_zero_is_none(office: Office) -> None:
    await office.let_go(no_progress_budget=0)
    (await office.child()).progress(0.1)
    await office.advance(110 * MINUTE)
    assert office.row()["status"] == "running"


@pytest.mark.behaviour("AT-261")
async def test_when_both_budgets_are_over_the_absolute_one_is_the_reason(office: Office) -> None:
    await office.let_go(max_budget=10, no_progress_budget=5)
    (await office.child()).progress(0.1)
    await office.settle()
    await office.harness.crash()
    await office.harness.restart()
    await office.boss()
    HandChild.stalls_on.add("inspect")
    await office.advance(30)
    assert office.row()["interrupted_reason"] == "budget-exceeded"


@pytest.mark.behaviour("AT-262")
async def test_a_child_that_has_finished_is_delivered_whatever_its_budget(office: Office) -> None:
    await office.let_go(max_budget=3)
    (await office.child()).end(summary="in time")
    await office.harness.crash()
    await office.harness.restart()
    await office.advance(60)
    assert office.calls() == ["done r completed"]


@pytest.mark.behaviour("AT-017")
async def test_budgets_that_are_left_out_come_from_the_class(office: Office) -> None:
    now = office.harness.clock.now_ms()
    await office.let_go()
    assert office.row()["detached_max_budget_at"] == now + 7_200_000
    assert office.row()["detached_no_progress_budget_ms"] == 600_000


# --- cancelled ----------------------------------------------------------------------------------


@pytest.mark.behaviour("AT-185", "AT-264", "AT-189")
async def test_a_run_that_is_cancelled_by_its_id_is_delivered_before_the_call_returns(
    office: Office,
) -> None:
    client = await office.client()
    await office.let_go("named")
    await office.let_go("bare")
    boss = await office.boss()
    await boss.cancel_agent_tool("named", "changed my mind")
    await boss.cancel_agent_tool("bare")
    assert office.calls() == ["done named aborted", "done bare aborted"]
    assert [result.error for _, result in boss.results] == [
        "changed my mind",
        "cancelled by parent",
    ]
    assert (await office.child("named")).cancel_reasons == ["changed my mind"]
    await office.settle()
    assert kinds(client).count("aborted") == 2
    await boss.cancel_agent_tool("named")
    await boss.cancel_agent_tool("unknown")
    await office.advance(10 * MINUTE)
    assert len(office.calls()) == 2
    assert office.ticks() == []


@pytest.mark.behaviour("AT-187")
async def test_a_run_that_was_given_up_can_still_be_cancelled(office: Office) -> None:
    HandChild.fails_on["cancel"] = ConnectionError("away")
    await office.let_go(max_budget=10)
    await office.advance(20)
    HandChild.fails_on.clear()
    await (await office.boss()).cancel_agent_tool("r", "enough")
    assert office.calls() == ["done r interrupted", "done r aborted"]
    assert office.row()["error_message"] == "enough"


@pytest.mark.behaviour("AT-188")
@pytest.mark.parametrize("cls", [Reporter, NoTail])
async def test_a_cancel_counts_also_when_the_child_cannot_be_reached(
    office: Office, cls: type[Reporter]
) -> None:
    await office.let_go(cls=cls)
    await office.settle()
    HandChild.fails_on["cancel"] = ConnectionError("away")
    await (await office.boss()).cancel_agent_tool("r", "enough")
    assert office.calls() == ["done r aborted"]
    assert office.row()["error_message"] == "enough"


@pytest.mark.behaviour("AT-269", "AT-249")
async def test_who_cancels_gets_what_the_callback_raised(office: Office) -> None:
    Boss.failures.append(ValueError("not now"))
    await office.let_go()
    with pytest.raises(ValueError, match="not now"):
        await (await office.boss()).cancel_agent_tool("r")
    assert office.row()["status"] == "aborted"
    await office.advance(65)
    assert office.calls() == ["done r aborted"] * 2


async def test_a_tick_that_meets_a_cancel_leaves_the_end_to_it(office: Office) -> None:
    await office.let_go(cls=NoTail)
    HandChild.stalls_on.add("cancel")
    boss = await office.boss()
    cancel = asyncio.get_running_loop().create_task(boss.cancel_agent_tool("r", "enough"))
    await office.settle()
    (await office.child(cls=NoTail)).end("aborted", error="the child's own words")
    await office.advance(5)
    assert office.calls() == []
    await office.advance(10)
    await cancel
    assert office.calls() == ["done r aborted"]
    assert office.row()["error_message"] == "enough"


@pytest.mark.behaviour("AT-341")
async def test_a_parent_that_is_a_child_has_its_tick_kept_by_the_root(office: Office) -> None:
    top = await office.harness.agent(Parent, "top")
    await top.sub_agent(Boss, "below")
    boss: object = await office.harness.agent(Parent, "top", [(Boss, "below")])
    assert isinstance(boss, Boss)
    await boss.run_agent_tool(Reporter, run_id="r", detached=ramet.Detached(on_finish=boss.done))
    rows = office.harness.rows(Parent, "top", "SELECT callback FROM cf_agents_schedules")
    assert rows == [{"callback": "_cfDetachedReconcileTick"}]
    child: object = await office.harness.agent(Parent, "top", [(Boss, "below"), (Reporter, "r")])
    assert isinstance(child, Reporter)
    child.end()
    await office.harness.crash()
    await office.harness.restart()
    await office.advance(6)
    assert office.calls() == ["done r completed"]
    assert office.harness.rows(Parent, "top", "SELECT callback FROM cf_agents_schedules") == []


def _stored_milestone(child: Reporter) -> None:
    data: JsonObject = {"name": "m", "sequence": 0, "at": child.now()}
    body = chunks.chunk_body(chunks.milestone(data))
    child.sql("INSERT INTO items VALUES (-1, ?, 'milestone')", body)
