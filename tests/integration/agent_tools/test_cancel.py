"""Cancelling runs: by the caller, by a signal, by id; and a death of the parent, which is none."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import pytest

import ramet
from tests.integration.agent_tools.children import HandChild, events
from tests.integration.agent_tools.conftest import Stage, event_of, kinds, numbers

Inspect: TypeAlias = Callable[[HandChild, str], Coroutine[object, object, ramet.Inspection | None]]


@pytest.mark.behaviour("AT-175", "D32", "AT-189")
async def test_a_signal_aborted_before_starts_the_child_and_stops_it(stage: Stage) -> None:
    controller = ramet.AbortController()
    controller.abort("too late")
    client = await stage.client()
    result = await (await stage.dispatch(run_id="r", signal=controller.signal))

    child = await stage.child("r")
    assert (result.status, result.error) == ("aborted", "too late")
    assert kinds(client) == ["started", "aborted"]
    assert numbers(client) == [0, 1]
    assert HandChild.calls[:2] == ["start", "cancel"]
    assert child.cancel_reasons == ["too late"]
    assert len((await stage.parent()).finished) == 1


@pytest.mark.behaviour("AT-176", "AT-177", "AT-128", "AT-180", "AT-191")
async def test_a_signal_stops_a_streaming_child(stage: Stage) -> None:
    controller = ramet.AbortController()
    client = await stage.client()
    caller = await stage.dispatch(run_id="r", signal=controller.signal)
    child = await stage.child("r")
    child.say("one")
    await stage.settle()
    assert controller.signal.listener_count == 1
    controller.abort(ValueError("enough"))
    child.say("two")
    await stage.settle()

    result = await caller
    assert (result.status, result.error) == ("aborted", "enough")
    assert kinds(client) == ["started", "chunk", "aborted"]
    assert event_of(events(client.frames)[-1])["reason"] == "enough"
    assert child.cancel_reasons == ["enough"]
    assert child.tails == []
    assert controller.signal.listener_count == 0


@pytest.mark.behaviour("AT-180", "AT-181")
async def test_an_abort_after_the_end_changes_nothing(stage: Stage) -> None:
    controller = ramet.AbortController()
    caller = await stage.dispatch(run_id="r", signal=controller.signal)
    (await stage.child("r")).end(summary="done")
    await stage.settle()
    controller.abort("late")
    await stage.settle()

    assert (await caller).status == "completed"
    assert stage.row("r")["status"] == "completed"
    assert "cancel" not in HandChild.calls


@pytest.mark.behaviour("AT-181", "AT-058", "QK-008")
async def test_a_late_abort_rewrites_no_row_that_another_path_has_sealed(stage: Stage) -> None:
    controller = ramet.AbortController()
    client = await stage.client()
    caller = await stage.dispatch(run_id="r", signal=controller.signal)
    parent = await stage.parent()
    parent.sql("UPDATE cf_agent_tool_runs SET status = 'completed', summary = 'sealed'")
    controller.abort("late")
    await stage.settle()

    assert (await caller).summary == "sealed"
    assert stage.row("r")["status"] == "completed"
    assert kinds(client) == ["started"]
    assert parent.finished == []


@pytest.mark.behaviour("AT-178")
async def test_a_signal_wins_over_a_child_that_has_just_finished(stage: Stage) -> None:
    controller = ramet.AbortController()
    caller = await stage.dispatch(run_id="r", signal=controller.signal)
    child = await stage.child("r")
    child.end(summary="done")
    controller.abort("stop")
    await stage.settle()

    assert (await caller).status == "aborted"
    assert child.status() == "completed"


@pytest.mark.behaviour("AT-179")
async def test_an_abort_during_the_last_inspection_comes_too_late(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = ramet.AbortController()
    client = await stage.client()
    caller = await stage.dispatch(run_id="r", signal=controller.signal)
    child = await stage.child("r")

    def aborting(inspect: Inspect) -> Inspect:
        async def inspect_and_abort(self: HandChild, run_id: str) -> ramet.Inspection | None:
            controller.abort("late")
            return await inspect(self, run_id)

        return inspect_and_abort

    monkeypatch.setattr(
        HandChild, "inspect_agent_tool_run", aborting(HandChild.inspect_agent_tool_run)
    )
    child.end(summary="done")
    await stage.settle()

    assert (await caller).summary == "done"
    assert kinds(client) == ["started", "finished"]


@pytest.mark.behaviour("D12")
async def test_a_cancelled_caller_leaves_at_once_and_the_run_seals_itself(stage: Stage) -> None:
    HandChild.stalls_on.add("cancel")
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    await stage.settle()
    assert stage.row("r")["status"] == "running"

    await stage.harness.advance(10)
    assert (stage.row("r")["status"], stage.row("r")["error_message"]) == ("aborted", "cancelled")
    assert kinds(client) == ["started", "aborted"]
    assert len((await stage.parent()).finished) == 1


@pytest.mark.behaviour("D12")
async def test_five_overlapping_runs_are_all_cancelled(stage: Stage) -> None:
    parent = await stage.parent()

    async def step() -> None:
        runs = [parent.run_agent_tool(HandChild, run_id=f"r{n}") for n in range(5)]
        await asyncio.gather(*runs)

    task = asyncio.get_running_loop().create_task(step())
    await stage.settle()
    assert [row["status"] for row in stage.rows()] == ["running"] * 5
    task.cancel()
    await stage.settle()

    assert task.cancelled()
    assert [row["status"] for row in stage.rows()] == ["aborted"] * 5
    for n in range(5):
        assert (await stage.child(f"r{n}")).cancel_reasons == ["cancelled"]


@pytest.mark.parametrize("method", ["start", "inspect"])
async def test_a_child_that_hangs_cannot_keep_a_cancelled_run(stage: Stage, method: str) -> None:
    HandChild.stalls_on.add(method)
    caller = await stage.dispatch(run_id="r")
    if method == "inspect":
        (await stage.child("r")).cut()
        await stage.settle()
    caller.cancel()
    await stage.settle()
    assert stage.row("r")["status"] in {"starting", "running"}

    await stage.harness.advance(10)
    assert stage.row("r")["status"] == "aborted"


@pytest.mark.behaviour("AT-184", "AT-191")
async def test_cancelling_by_id_only_tells_the_child(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.stops_when_cancelled = False
    await (await stage.parent()).cancel_agent_tool("r", "not needed")
    await stage.settle()

    assert child.cancel_reasons == ["not needed"]
    assert stage.row("r")["status"] == "running"
    assert not caller.done()

    child.end("aborted", error="as told")
    await stage.settle()
    result = await caller
    assert (result.status, result.error) == ("aborted", "as told")


@pytest.mark.behaviour("AT-186")
async def test_cancelling_an_unknown_or_finished_run_does_nothing(stage: Stage) -> None:
    parent = await stage.parent()
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end()
    await stage.settle()

    await parent.cancel_agent_tool("r")
    await parent.cancel_agent_tool("unknown")

    assert "cancel" not in HandChild.calls


async def test_cancelling_by_id_before_the_child_started_stops_it_then(stage: Stage) -> None:
    parent = await stage.parent()
    caller = asyncio.get_running_loop().create_task(parent.run_agent_tool(HandChild, run_id="r"))
    await asyncio.sleep(0)  # noqa: TID251 - the caller's first step, before the child's
    await parent.cancel_agent_tool("r")
    await stage.settle()

    assert (await caller).status == "aborted"
    assert (await stage.child("r")).cancel_reasons == ["cancelled by parent"]


@pytest.mark.behaviour("D11")
async def test_the_death_of_the_parent_cancels_nothing(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    stage.harness.host.instances.end(
        stage.harness.path(stage.root, "p").root, "crashed", close_sockets=None
    )
    await stage.settle()

    assert stage.row("r")["status"] == "running"
    assert child.cancel_reasons == []


@pytest.mark.behaviour("D14")
async def test_a_parent_with_a_run_is_not_evicted(stage: Stage) -> None:
    await stage.dispatch(run_id="r")

    with pytest.raises(ramet.RametError, match="an agent-tool run is under way"):
        await stage.harness.evict(stage.root, "p")
