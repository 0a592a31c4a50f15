"""An awaited run from dispatch to result: rows, frames and hooks in their order."""

import asyncio

import pytest

import ramet
from ramet.agent_tools.records import StoredChunk
from ramet.errors import AgentNotRegistered, NotAnAgentTool
from tests.integration.agent_tools.children import (
    BusyNoTailChild,
    HandChild,
    NoAdapter,
    NoTailChild,
    Parent,
    events,
)
from tests.integration.agent_tools.conftest import CappedParent, Stage, event_of, kinds, numbers


@pytest.mark.behaviour("AT-001", "AT-003", "AT-123", "AT-125", "AT-130", "AT-131", "AT-203")
async def test_a_run_streams_its_child_and_gives_its_result(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(input="why?", run_id="r")
    child = await stage.child("r")

    child.say("one", "two", "three", "four", "five")
    child.end(summary="all", output={"n": 5})
    await stage.settle()

    assert await caller == ramet.RunResult(
        run_id="r", agent_type="HandChild", status="completed", summary="all", output={"n": 5}
    )
    assert kinds(client) == ["started", *["chunk"] * 5, "finished"]
    assert numbers(client) == list(range(7))
    assert events(client.frames)[0]["event"] == {
        "kind": "started",
        "runId": "r",
        "agentType": "HandChild",
        "inputPreview": "why?",
        "order": 0,
    }
    assert events(client.frames)[-1]["event"] == {
        "kind": "finished",
        "runId": "r",
        "summary": "all",
    }
    assert child.inputs == ["why?"]


@pytest.mark.behaviour("AT-037", "AT-038", "AT-039", "AT-040", "D19")
async def test_the_row_stands_before_the_hook_and_the_hook_before_the_child(stage: Stage) -> None:
    HandChild.stalls_on.add("start")
    client = await stage.client()
    await stage.dispatch(input={"q": 1}, run_id="r", display={"name": "R"}, display_order=2)

    parent = await stage.parent()
    assert stage.row("r")["status"] == "starting"
    assert parent.has_sub_agent(HandChild, "r")
    assert parent.started == [
        ramet.RunInfo(
            run_id="r",
            agent_type="HandChild",
            status="starting",
            input_preview={"q": 1},
            display={"name": "R"},
            display_order=2,
            started_at=stage.harness.clock.now_ms(),
        )
    ]
    assert kinds(client) == ["started"]
    assert HandChild.calls == ["start"]


async def test_the_run_is_running_while_its_child_works(stage: Stage) -> None:
    await stage.dispatch(run_id="r")

    assert stage.row("r")["status"] == "running"
    assert stage.row("r")["completed_at"] is None


@pytest.mark.behaviour("AT-202", "AT-049")
async def test_the_finish_hook_is_told_once_after_row_and_frame(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    (await stage.child("r")).end("error", error="broke")
    await stage.settle()

    parent = await stage.parent()
    [(run, result)] = parent.finished
    assert (run.run_id, run.status) == ("r", "error")
    assert run.completed_at == stage.harness.clock.now_ms()
    assert (result.status, result.error) == ("error", "broke")
    assert result == await caller
    assert kinds(client) == ["started", "error"]


@pytest.mark.behaviour("AT-002", "AT-006")
async def test_a_run_without_an_id_gets_a_random_one(stage: Stage) -> None:
    await stage.dispatch()
    await stage.dispatch()

    first, second = (str(row["run_id"]) for row in stage.rows())
    assert first != second
    assert len(first) == len(second) == 12
    assert [row["display_order"] for row in stage.rows()] == [0, 0]
    assert (await stage.parent()).has_agent_tool_run(HandChild, first)


@pytest.mark.behaviour("AT-028", "AT-070")
async def test_only_a_preview_of_the_input_is_stored(stage: Stage) -> None:
    await stage.dispatch(run_id="r", input="x" * 600)
    await stage.dispatch(run_id="s", input={"secret": 1}, input_preview="a question")

    assert stage.row("r")["input_preview"] == f'"{"x" * 500}"'
    assert stage.row("r")["input_redacted"] == 1
    assert stage.row("s")["input_preview"] == '"a question"'


@pytest.mark.behaviour("AT-042", "AT-043")
async def test_a_class_that_cannot_be_a_child_is_refused_before_anything_is_written(
    stage: Stage,
) -> None:
    parent = await stage.parent()

    with pytest.raises(NotAnAgentTool, match=r"NoAdapter .* start_agent_tool_run, .*adapter"):
        await parent.run_agent_tool(NoAdapter)
    with pytest.raises(AgentNotRegistered):
        await parent.run_agent_tool(type("Stranger", (HandChild,), {}))

    assert stage.rows() == []


async def test_a_preview_or_display_that_is_not_json_is_refused(stage: Stage) -> None:
    parent = await stage.parent()

    with pytest.raises(ValueError, match="serializable"):
        await parent.run_agent_tool(HandChild, display={"icon": object()})
    with pytest.raises(ValueError, match="serializable"):
        await parent.run_agent_tool(HandChild, input_preview=object())

    assert stage.rows() == []


@pytest.mark.behaviour("QK-005", "D32", "AT-041")
async def test_a_start_hook_that_raises_ends_the_run_and_raises(stage: Stage) -> None:
    Parent.start_error = ValueError("not today")
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")

    with pytest.raises(ValueError, match="not today"):
        await caller
    assert (stage.row("r")["status"], stage.row("r")["error_message"]) == ("error", "not today")
    assert kinds(client) == ["started", "error"]
    assert numbers(client) == [0, 1]
    assert HandChild.calls == []


@pytest.mark.behaviour("QK-005")
async def test_a_child_that_cannot_be_started_ends_the_run_and_raises(stage: Stage) -> None:
    HandChild.fails_on["start"] = ValueError("no disk")
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")

    with pytest.raises(ValueError, match="no disk"):
        await caller
    assert stage.row("r")["error_message"] == "no disk"
    assert kinds(client) == ["started", "error"]


@pytest.mark.behaviour("QK-011", "AT-204")
async def test_a_finish_hook_that_raises_changes_nothing(stage: Stage) -> None:
    Parent.finish_error = ValueError("hook")
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    (await stage.child("r")).end(summary="fine")
    await stage.settle()

    assert (await caller).status == "completed"
    assert kinds(client) == ["started", "finished"]
    parent = await stage.parent()
    assert len(parent.finished) == 1
    assert [str(error) for error in parent.errors] == ["hook"]


@pytest.mark.behaviour("AT-048")
async def test_a_child_without_a_tail_is_read_once(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(NoTailChild, run_id="r")

    assert (await caller).summary == "done"
    assert kinds(client) == ["started", "chunk", "chunk", "chunk", "finished"]
    assert numbers(client) == [0, 1, 2, 3, 4]


@pytest.mark.behaviour("AT-298", "QK-001")
async def test_a_child_at_work_that_cannot_be_followed_is_lost_sight_of(stage: Stage) -> None:
    caller = await stage.dispatch(BusyNoTailChild, run_id="r")

    result = await caller
    assert (result.status, result.reason) == ("interrupted", "not-tailable")
    assert result.child_still_running is True


@pytest.mark.behaviour("AT-047", "D26")
async def test_a_child_that_raises_when_asked_fails_the_run(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r")
    HandChild.fails_on["inspect"] = ValueError("lost my notes")
    (await stage.child("r")).cut()
    await stage.settle()

    result = await caller
    assert (result.status, result.error) == ("error", "lost my notes")
    assert len((await stage.parent()).finished) == 1


@pytest.mark.behaviour("AT-004", "AT-046")
async def test_an_error_without_a_text_gets_a_general_one(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r")
    (await stage.child("r")).end("error")
    await stage.settle()

    result = await caller
    assert result.error == "The agent tool run failed."
    assert (result.reason, result.child_still_running) == (None, None)


@pytest.mark.behaviour("QK-001", "AT-307")
async def test_a_tail_that_closes_early_is_taken_up_again_while_chunks_flow(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.say("one")
    child.cut()
    await stage.settle()
    child.say("two")
    child.end(summary="both")
    await stage.settle()

    assert (await caller).summary == "both"
    assert kinds(client) == ["started", "chunk", "chunk", "finished"]
    assert numbers(client) == [0, 1, 2, 3]


@pytest.mark.behaviour("QK-001", "AT-309", "AT-129", "AT-045")
async def test_a_tail_that_closes_without_a_chunk_interrupts_the_run(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    (await stage.child("r")).cut()
    await stage.settle()

    result = await caller
    assert (result.status, result.reason) == ("interrupted", "no-progress")
    assert result.child_still_running is True
    assert stage.row("r")["child_still_running"] == 1
    event = event_of(events(client.frames)[-1])
    assert (event["reason"], event["childStillRunning"]) == ("no-progress", True)
    assert event["error"] == result.error


@pytest.mark.behaviour("D11", "QK-001")
async def test_a_child_whose_instance_was_stopped_is_asked_again(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    (await stage.child("r")).say("one")
    await stage.settle()
    (await stage.parent()).abort_sub_agent(HandChild, "r")
    await stage.settle()

    child = await stage.child("r")
    child.say("two")
    child.end(summary="made it")
    await stage.settle()

    assert (await caller).summary == "made it"
    assert kinds(client) == ["started", "chunk", "chunk", "finished"]


@pytest.mark.behaviour("AT-109")
async def test_a_chunk_that_a_tail_gives_twice_is_sent_once(stage: Stage) -> None:
    client = await stage.client()
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.say("one", "two")
    for item in child.stored():
        child.tails[0].push(item)
    child.say("three")
    await stage.settle()

    assert numbers(client) == [0, 1, 2, 3]


@pytest.mark.behaviour("D14")
async def test_a_tail_that_the_childs_death_has_cut_is_taken_up_without_a_chunk_too(
    stage: Stage,
) -> None:
    caller = await stage.dispatch(run_id="r")
    (await stage.parent()).abort_sub_agent(HandChild, "r")
    await stage.settle()
    assert stage.row("r")["status"] == "running"

    (await stage.child("r")).end(summary="made it")
    await stage.settle()
    assert (await caller).summary == "made it"


async def test_a_child_that_dies_again_and_again_is_lost_sight_of(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r")
    for _ in range(4):
        assert not caller.done()
        (await stage.parent()).abort_sub_agent(HandChild, "r")
        await stage.settle()

    assert (await caller).reason == "no-progress"


async def test_clients_are_sent_chunks_while_a_burst_of_them_comes(stage: Stage) -> None:
    reader = await stage.page_reader()
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    most_waiting: list[int] = []

    async def read() -> None:
        while stage.row("r")["status"] == "running":
            most_waiting.append(reader.link.outbox.waiting_bytes)
            reader.take_all()
            await asyncio.sleep(0)  # noqa: TID251 - gives way once, as a socket's writer does

    task = asyncio.get_running_loop().create_task(read())
    for tail in child.tails:
        for sequence in range(4_000):
            tail.push(StoredChunk(sequence=sequence, body="{}"))
    child.end()
    await stage.settle()
    await task
    reader.take_all()

    assert numbers(reader) == list(range(4_002))
    assert max(most_waiting) < 100_000


async def test_a_child_that_was_deleted_fails_the_run(stage: Stage) -> None:
    caller = await stage.dispatch(run_id="r")
    await (await stage.parent()).delete_sub_agent(HandChild, "r")
    await stage.settle()

    result = await caller
    assert (result.status, result.error) == ("error", "The child of this run was deleted.")
    assert not (await stage.parent()).has_sub_agent(HandChild, "r")


@pytest.mark.behaviour("AT-192", "AT-193", "AT-194", "AT-132", "AT-196", "AT-195")
async def test_the_run_over_the_cap_is_refused_at_once(stage: Stage) -> None:
    stage.root = CappedParent
    client = await stage.client()
    first = await stage.dispatch(run_id="a")
    await stage.dispatch(run_id="b")
    refused = await (await stage.dispatch(run_id="c"))

    assert (refused.status, refused.error) == ("error", "maxConcurrentAgentTools (2) exceeded")
    row = stage.row("c")
    assert (row["status"], row["completed_at"]) == ("error", row["started_at"])
    of_refused = [frame for frame in events(client.frames) if event_of(frame)["runId"] == "c"]
    assert [event_of(frame)["kind"] for frame in of_refused] == ["started", "error"]
    assert [frame["sequence"] for frame in of_refused] == [0, 1]
    parent = await stage.parent()
    assert [run.run_id for run in parent.started] == ["a", "b"]
    assert parent.finished == []
    assert not parent.has_sub_agent(HandChild, "c")

    (await stage.child("a")).end()
    await stage.settle()
    assert (await first).status == "completed"
    await stage.dispatch(run_id="d")
    assert stage.row("d")["status"] == "running"


@pytest.mark.behaviour("AT-199", "AT-200")
async def test_a_refused_run_stays_refused_and_a_known_one_needs_no_slot(stage: Stage) -> None:
    stage.root = CappedParent
    await stage.dispatch(run_id="a")
    await stage.dispatch(run_id="b")
    await stage.dispatch(run_id="c")
    joined = await stage.dispatch(run_id="a")
    for run_id in ("a", "b"):
        (await stage.child(run_id)).end(summary=run_id)
    await stage.settle()

    assert (await joined).summary == "a"
    assert (await (await stage.dispatch(run_id="c"))).status == "error"


@pytest.mark.behaviour("AT-197")
async def test_an_interrupted_run_holds_no_slot(stage: Stage) -> None:
    stage.root = CappedParent
    for run_id in ("a", "b"):
        await stage.dispatch(run_id=run_id)
        (await stage.child(run_id)).cut()
    await stage.settle()

    await stage.dispatch(run_id="c")
    assert [row["status"] for row in stage.rows()] == ["interrupted", "interrupted", "running"]


@pytest.mark.behaviour("AT-209", "AT-210", "AT-227", "D2", "QK-003", "AT-105")
async def test_progress_and_milestones_have_numbers_and_reach_the_hook(stage: Stage) -> None:
    client = await stage.client()
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.progress(0.1)
    child.say("one")
    child.milestone("half", 0)
    child.say("two")
    child.end()
    await stage.settle()

    assert kinds(client) == ["started", *["chunk"] * 4, "finished"]
    assert numbers(client) == [0, 1, 2, 3, 4, 5]
    progress, milestone = (await stage.parent()).seen_progress
    assert (progress.fraction, progress.milestone) == (0.1, None)
    assert (milestone.milestone, milestone.at) == ("half", stage.harness.clock.now_ms())
