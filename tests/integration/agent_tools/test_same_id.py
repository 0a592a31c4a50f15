"""The same run id again: the stored result, the live run, or the child that went on."""

import asyncio

import pytest
from pydantic import BaseModel

import ramet
from ramet.core.current import within, working_for
from ramet.errors import RunBelongsToAnother
from tests.integration.agent_tools.children import HandChild, OtherChild, events
from tests.integration.agent_tools.conftest import Stage, event_of, kinds, numbers


class Answer(BaseModel):
    n: int


@pytest.mark.behaviour("AT-050", "AT-051", "AT-052", "AT-208")
async def test_a_finished_run_is_not_run_again(stage: Stage) -> None:
    first = await stage.dispatch(run_id="r", input="first")
    child = await stage.child("r")
    child.end(summary="s", output={"deep": [1]})
    await stage.settle()
    client = await stage.client()
    seen = len(client.frames)

    second = await stage.dispatch(run_id="r", input="second")

    assert await second == await first
    assert child.inputs == ["first"]
    assert len(client.frames) == seen
    parent = await stage.parent()
    assert (len(parent.started), len(parent.finished)) == (1, 1)


@pytest.mark.behaviour("AT-053")
async def test_a_completed_run_without_output_is_filled_up_by_its_child(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.end()
    await stage.settle()
    child.sql("UPDATE outcome SET output = '[1]', summary = 'late'")

    result = await (await stage.dispatch(run_id="r"))

    assert (result.output, result.summary) == ([1], "late")
    assert (stage.row("r")["output_json"], stage.row("r")["summary"]) == ("[1]", "late")


@pytest.mark.behaviour("AT-053", "AT-060")
async def test_a_stored_result_stands_when_its_child_cannot_be_asked(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="kept")
    await stage.settle()
    HandChild.fails_on["inspect"] = ValueError("gone")

    assert (await (await stage.dispatch(run_id="r"))).summary == "kept"


@pytest.mark.behaviour("AT-053")
async def test_a_stored_result_stands_when_its_child_does_not_answer(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="kept")
    await stage.settle()
    HandChild.stalls_on.add("inspect")
    caller = await stage.dispatch(run_id="r")
    assert not caller.done()
    await stage.harness.advance(10)

    assert (await caller).summary == "kept"


@pytest.mark.behaviour("AT-054", "D12")
async def test_a_live_run_is_joined(stage: Stage) -> None:
    client = await stage.client()
    first = await stage.dispatch(run_id="r")
    second = await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="one answer")
    await stage.settle()

    assert await first == await second
    assert HandChild.calls.count("start") == 1
    assert kinds(client) == ["started", "finished"]
    parent = await stage.parent()
    assert (len(parent.started), len(parent.finished)) == (1, 1)


@pytest.mark.behaviour("AT-055", "AT-059", "D2")
async def test_an_interrupted_run_is_repaired_by_its_child(stage: Stage) -> None:
    client = await stage.client()
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.say("one")
    child.cut()
    await stage.settle()
    child.cut()
    await stage.settle()
    assert stage.row("r")["status"] == "interrupted"
    child.say("two")
    child.end(summary="made it")

    result = await (await stage.dispatch(run_id="r"))

    assert (result.status, result.summary, result.reason) == ("completed", "made it", None)
    row = stage.row("r")
    assert (row["status"], row["interrupted_reason"], row["child_still_running"]) == (
        "completed",
        None,
        None,
    )
    assert kinds(client) == ["started", "chunk", "interrupted", "chunk", "finished"]
    assert numbers(client) == [0, 1, 2, 3, 4]
    assert len((await stage.parent()).started) == 1


@pytest.mark.behaviour("AT-054", "AT-305", "AT-306", "AT-317")
async def test_a_run_that_is_followed_again_may_not_stay_silent_for_ever(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.cut()
    await stage.settle()
    again = await stage.dispatch(run_id="r")

    await stage.harness.advance(119)
    child.say("still here")
    await stage.harness.advance(119)
    assert not again.done()
    await stage.harness.advance(2)

    result = await again
    assert (result.status, result.reason) == ("interrupted", "no-progress")
    assert child.status() == "running"


@pytest.mark.behaviour("AT-057")
async def test_a_run_that_cannot_be_reached_again_stays_interrupted(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).cut()
    await stage.settle()
    HandChild.fails_on["inspect"] = ValueError("unreachable")

    result = await (await stage.dispatch(run_id="r"))

    assert (result.status, result.reason, result.child_still_running) == ("interrupted", None, True)
    assert "still running" in str(result.error)


@pytest.mark.behaviour("D9", "AT-012")
async def test_the_runs_of_a_tool_call_get_ids_by_call_and_position(stage: Stage) -> None:
    parent = await stage.parent()

    async def tool() -> None:
        runs = [parent.run_agent_tool(HandChild, display_order=n) for n in range(3)]
        await asyncio.gather(*runs)

    with working_for(parent), within(tool_call_id="T"):
        first = asyncio.get_running_loop().create_task(tool())
        await stage.settle()
    with working_for(parent), within(tool_call_id="T"):
        again = asyncio.get_running_loop().create_task(tool())
        await stage.settle()
    for n, run_id in enumerate(["agent-tool:T", "agent-tool:T:1", "agent-tool:T:2"]):
        row = stage.row(run_id)
        assert (row["parent_tool_call_id"], row["display_order"]) == ("T", n)
        assert row["call_position"] == n
        (await stage.child(run_id)).end()
    await asyncio.gather(first, again)

    assert len(stage.rows()) == 3


async def test_a_run_id_of_another_class_is_refused(stage: Stage) -> None:
    await stage.dispatch(run_id="r")

    with pytest.raises(RunBelongsToAnother, match="'r' is a run of HandChild, not of OtherChild"):
        await (await stage.parent()).run_agent_tool(OtherChild, run_id="r")


@pytest.mark.behaviour("AT-165", "AT-174", "D29")
async def test_a_typed_output_is_validated(stage: Stage) -> None:
    parent = await stage.parent()
    await stage.dispatch(run_id="r", output=Answer)
    (await stage.child("r")).end(output={"n": 5})
    await stage.settle()

    result = await parent.run_agent_tool(HandChild, run_id="r", output=Answer)

    assert result.output == Answer(n=5)
    assert (await parent.run_agent_tool(HandChild, run_id="r")).output == {"n": 5}
    assert stage.row("r")["output_json"] == '{"n":5}'


@pytest.mark.behaviour("D29", "AT-167")
async def test_an_output_that_does_not_fit_fails_the_run(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r", output=Answer)
    (await stage.child("r")).end(output={"n": "five"}, summary="s")
    await stage.settle()

    result = await caller
    assert result.status == "error"
    assert "does not fit its type: n: " in str(result.error)
    assert stage.row("r")["status"] == "error"
    assert event_of(events(client.frames)[-1])["error"] == result.error


@pytest.mark.behaviour("D29", "AT-166")
async def test_an_output_that_is_missing_fails_the_run(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r", output=Answer)
    (await stage.child("r")).end(summary="only words")
    await stage.settle()

    result = await caller
    assert result.status == "error"
    assert "without the structured output" in str(result.error)


@pytest.mark.behaviour("D29")
async def test_a_stored_row_stands_when_a_later_caller_wants_another_type(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    (await stage.child("r")).end(output=[1])
    await stage.settle()

    result = await (await stage.dispatch(run_id="r", output=Answer))

    assert result.status == "error"
    assert stage.row("r")["status"] == "completed"


@pytest.mark.behaviour("AT-003")
async def test_none_is_an_output(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r", output=int | None)
    (await stage.child("r")).end(output=None)
    await stage.settle()

    assert await caller == ramet.RunResult(run_id="r", agent_type="HandChild", status="completed")
    assert stage.row("r")["output_json"] == "null"
