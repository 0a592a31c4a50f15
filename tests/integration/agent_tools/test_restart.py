"""A server that died: ended runs are collected, others sealed, and no number changes."""

import pytest

import ramet
from ramet.observability.channels import Event, subscribe
from tests.integration.agent_tools.children import HandChild, Parent, events
from tests.integration.agent_tools.conftest import Stage, event_of, kinds, numbers


async def crashed(stage: Stage) -> None:
    """Kill the server and start it again; nobody has opened an agent yet."""
    await stage.harness.crash()
    await stage.harness.restart()


@pytest.mark.behaviour("AT-294", "AT-321", "AT-322", "D2", "D9")
async def test_a_child_that_has_ended_is_collected_with_its_chunks(stage: Stage) -> None:
    live = await stage.client()
    await stage.dispatch(run_id="r", parent_tool_call_id="call")
    child = await stage.child("r")
    child.say("one")
    child.progress(0.5)
    child.milestone("half", 0)
    await stage.settle()
    seen = events(live.frames)
    await stage.harness.crash()
    child_file = stage.harness.host.files.open_existing(
        stage.harness.path(stage.root, "p", [(HandChild, "r")])
    )
    assert child_file is not None
    child_file.run("INSERT INTO items VALUES (1, '{\"type\":\"x\"}', 'chunk')")
    child_file.run("UPDATE outcome SET status = 'completed', summary = 'done'")
    child_file.close()
    await stage.harness.restart()

    client = await stage.client()

    assert (stage.row("r")["status"], stage.row("r")["summary"]) == ("completed", "done")
    assert numbers(client) == [0, 1, 3, 4, 5]
    assert kinds(client) == ["started", *["chunk"] * 3, "finished"]
    lasting = [frame for frame in seen if frame["sequence"] != 2]
    assert [(f["sequence"], f["event"]) for f in events(client.frames)[:3]] == [
        (f["sequence"], f["event"]) for f in lasting
    ]
    assert [run.status for run, _ in (await stage.parent()).finished] == ["completed"]


@pytest.mark.behaviour("D2")
async def test_a_milestone_that_the_parent_missed_gets_its_place(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).say("one")
    await stage.settle()
    await stage.harness.crash()
    child_file = stage.harness.host.files.open_existing(
        stage.harness.path(stage.root, "p", [(HandChild, "r")])
    )
    assert child_file is not None
    body = '{"type":"data-agent-milestone","data":{"name":"m","sequence":0,"at":1}}'
    child_file.run("INSERT INTO items VALUES (0, ?, 'milestone')", body)
    child_file.run("INSERT INTO items VALUES (1, '{}', 'chunk')")
    child_file.run("UPDATE outcome SET status = 'completed'")
    child_file.close()
    await stage.harness.restart()

    client = await stage.client()
    again = await stage.client()

    assert numbers(client) == numbers(again) == [0, 1, 2, 3, 4]
    assert event_of(events(again.frames)[2])["body"] == body


@pytest.mark.behaviour("AT-283", "AT-284", "AT-297", "AT-299", "AT-306")
async def test_a_child_that_is_at_work_but_silent_is_sealed_interrupted_in_time(
    stage: Stage,
) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).say("one")
    await stage.settle()
    await crashed(stage)

    client = await stage.client()
    await stage.harness.advance(119)
    assert stage.row("r")["status"] == "running"
    await stage.harness.advance(2)

    row = stage.row("r")
    assert (row["status"], row["interrupted_reason"]) == ("interrupted", "no-progress")
    assert row["child_still_running"] == 1
    assert kinds(client) == ["started", "chunk", "interrupted"]
    assert numbers(client) == [0, 1, 2]
    assert [run.status for run, _ in (await stage.parent()).finished] == ["interrupted"]


@pytest.mark.behaviour("AT-300", "AT-302", "AT-305", "AT-323", "QK-017")
async def test_children_that_are_still_at_work_are_followed_at_once(stage: Stage) -> None:
    for n in range(2):
        await stage.dispatch(run_id=f"r{n}")
    await crashed(stage)
    client = await stage.client()
    lively = await stage.child("r0")
    for _ in range(3):
        await stage.harness.advance(100)
        lively.say("more")
    lively.end(summary="done")
    await stage.settle()

    assert (stage.row("r0")["status"], stage.row("r0")["summary"]) == ("completed", "done")
    assert stage.row("r1")["interrupted_reason"] == "no-progress"
    assert kinds(client).count("finished") == 1
    assert sorted(run.run_id for run, _ in (await stage.parent()).finished) == ["r0", "r1"]


@pytest.mark.behaviour("AT-292", "AT-290")
async def test_a_child_that_does_not_answer_is_given_up_in_time(stage: Stage) -> None:
    client = await stage.client()
    await stage.dispatch(run_id="r")
    (await stage.child("r")).say("one")
    await stage.settle()
    seen = numbers(client)
    HandChild.stalls_on.update({"inspect", "chunks"})
    await crashed(stage)
    client = await stage.client()
    assert stage.row("r")["status"] == "running"

    await stage.harness.advance(2)

    assert stage.row("r")["interrupted_reason"] == "inspect-timeout"
    assert stage.row("r")["child_still_running"] is None
    last = numbers(client)[-1]
    assert isinstance(last, int)
    assert last not in seen
    assert last > 1_000_000


@pytest.mark.behaviour("AT-293")
async def test_a_child_that_cannot_be_asked_is_given_up(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    HandChild.fails_on["inspect"] = ValueError("no")
    await crashed(stage)
    await stage.client()

    assert stage.row("r")["interrupted_reason"] == "inspect-failed"


@pytest.mark.behaviour("AT-291", "AT-018")
async def test_runs_for_which_no_time_is_left_are_given_up(stage: Stage) -> None:
    for n in range(4):
        await stage.dispatch(run_id=f"r{n}")
    HandChild.stalls_on.add("inspect")
    await crashed(stage)
    await stage.client()
    await stage.harness.advance(5)

    reasons = [row["interrupted_reason"] for row in stage.rows()]
    assert reasons == [*["inspect-timeout"] * 3, "recovery-deadline"]


@pytest.mark.behaviour("AT-290", "AT-291")
async def test_children_that_answer_cost_nothing_of_the_time_for_those_that_do_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(8):
        await stage.dispatch(run_id=f"r{n}")
    inspect = HandChild.inspect_agent_tool_run

    async def slowly(self: HandChild, run_id: str) -> ramet.Inspection | None:
        await self._ramet.context.clock.sleep(1.5)
        return await inspect(self, run_id)

    await stage.harness.crash()
    monkeypatch.setattr(HandChild, "inspect_agent_tool_run", slowly)
    await stage.harness.restart()
    await stage.client()
    await stage.harness.advance(30)

    assert [row["status"] for row in stage.rows()] == ["running"] * 8
    assert HandChild.calls.count("tail") == 2 * 8


@pytest.mark.behaviour("AT-295")
async def test_a_run_ends_even_if_its_chunks_cannot_be_had(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="s")
    HandChild.fails_on["chunks"] = ValueError("unreadable")
    await stage.settle()

    assert stage.row("r")["status"] == "completed"


@pytest.mark.behaviour("AT-205", "AT-287", "AT-288", "OB-004")
async def test_finish_hooks_of_recovered_runs_follow_in_order_and_once(stage: Stage) -> None:
    told: list[Event] = []
    unsubscribe = subscribe("agent_tool", told.append)
    for n in range(3):
        await stage.dispatch(run_id=f"r{n}")
    await crashed(stage)
    Parent.log.clear()
    Parent.finish_error = ValueError("hook")
    await stage.client()
    await stage.harness.advance(121)
    unsubscribe()

    assert Parent.log == ["finish r0", "finish r1", "finish r2"]
    assert len((await stage.parent()).errors) == 3
    assert [event.type.rpartition(":")[2] for event in told] == [
        "begin",
        *["reattach"] * 3,
        "row",
        "row",
        "row",
        "complete",
    ]
    assert told[0].payload == {"runCount": 3, "totalTimeoutMs": 5000}
    assert told[1].payload == {"runId": "r0", "agentType": "HandChild", "budgetMs": 120_000}
    assert told[4].payload["status"] == "interrupted"


@pytest.mark.behaviour("QK-008", "AT-287")
async def test_who_asks_for_a_run_while_it_is_recovered_joins_it(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    HandChild.stalls_on.add("inspect")
    await crashed(stage)
    caller = await stage.dispatch(run_id="r")
    await stage.harness.advance(2)

    assert (await caller).reason == "inspect-timeout"
    assert len((await stage.parent()).finished) == 1


@pytest.mark.behaviour("AT-286", "AT-032")
async def test_nothing_is_recovered_where_nothing_was_unfinished(stage: Stage) -> None:
    told: list[Event] = []
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="s")
    await stage.settle()
    unsubscribe = subscribe("agent_tool", told.append)
    await crashed(stage)
    await stage.client()
    unsubscribe()

    assert told == []
    assert (await (await stage.dispatch(run_id="r"))).summary == "s"
