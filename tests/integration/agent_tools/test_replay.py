"""What a client that comes later is sent: the same frames and numbers, without a seam."""

import pytest

import ramet
from ramet.core.json import JsonObject
from ramet.core.options import HostOptions
from ramet.testing import Harness, TestClient
from tests.integration.agent_tools.children import (
    AskedChild,
    HandChild,
    NoTailChild,
    Parent,
    events,
)
from tests.integration.agent_tools.conftest import PageReader, Stage, event_of, kinds, numbers


def told(client: TestClient | PageReader) -> list[tuple[object, JsonObject]]:
    """What a client knows, without how it came to know it."""
    return [(frame["sequence"], event_of(frame)) for frame in events(client.frames)]


async def worked(stage: Stage, run_id: str) -> HandChild:
    """A run with everything in it, still under way."""
    await stage.dispatch(run_id=run_id, parent_tool_call_id="call", display_order=3)
    child = await stage.child(run_id)
    child.progress(0.1)
    child.say("one", "two")
    child.milestone("half", 0)
    child.progress(0.6)
    child.say("three")
    await stage.settle()
    return child


@pytest.mark.behaviour("AT-134", "AT-135", "AT-122", "D2", "D22")
async def test_a_finished_run_is_replayed_under_its_numbers(stage: Stage) -> None:
    live = await stage.client()
    (await worked(stage, "r")).end(summary="s")
    await stage.settle()
    late = await stage.client()

    transient = {1, 5}
    assert [number for number, _ in told(live)] == list(range(8))
    assert told(late) == [each for each in told(live) if each[0] not in transient]
    assert all(frame["replay"] is True for frame in events(late.frames))
    assert all(frame["parentToolCallId"] == "call" for frame in events(late.frames))
    assert "replay" not in events(live.frames)[0]


@pytest.mark.behaviour("AT-136", "D22")
async def test_an_unfinished_run_is_replayed_with_its_last_progress(stage: Stage) -> None:
    live = await stage.client()
    child = await worked(stage, "r")
    late = await stage.client()

    assert told(late) == [each for each in told(live) if each[0] != 1]
    child.say("four")
    child.end()
    await stage.settle()
    assert told(late)[-2:] == told(live)[-2:]
    assert kinds(late)[-1] == "finished"
    assert "replay" not in events(late.frames)[-1]


@pytest.mark.behaviour("D21", "D2")
@pytest.mark.parametrize("child_class", [HandChild, AskedChild])
async def test_a_refresh_in_the_middle_shows_neither_gap_nor_overlap(
    stage: Stage, child_class: type[HandChild]
) -> None:
    live = await stage.client()
    await stage.dispatch(child_class, run_id="r")
    child = await stage.child("r", child_class)
    filling = "x" * 500
    for word in range(400):
        child.say(f"{word}{filling}")
        if word % 50 == 0:
            child.milestone(f"m{word}", word)
    await stage.settle()

    late = await stage.page_reader()
    for word in range(400, 600):
        child.say(f"{word}{filling}")
        if word % 20 == 0:
            child.milestone(f"m{word}", word)
            late.take()
        await stage.settle()
    child.end()
    await stage.settle()
    while late.take():
        await stage.settle()

    assert told(late) == told(live)
    assert numbers(late) == list(range(len(told(live))))
    assert late.link.behind == set()


@pytest.mark.behaviour("D21")
async def test_only_the_frames_of_a_run_wait_for_its_replay(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    child = await stage.child("r")
    child.say("one")
    await stage.settle()
    late = await stage.page_reader()
    child.say("two")
    await stage.dispatch(run_id="s")
    (await stage.child("s")).say("other")
    await stage.settle()
    late.take_all()
    child.say("three")
    await stage.settle()
    late.take_all()

    assert [(event_of(f)["runId"], f["sequence"]) for f in events(late.frames)] == [
        ("s", 0),
        ("s", 1),
        ("r", 0),
        ("r", 1),
        ("r", 2),
        ("r", 3),
    ]


@pytest.mark.behaviour("AT-134")
async def test_runs_are_replayed_in_the_order_they_were_started(stage: Stage) -> None:
    for run_id in ("z", "a", "m"):
        await stage.dispatch(run_id=run_id)
    (await stage.child("a")).end()
    await stage.settle()

    started = [event_of(f)["runId"] for f in events((await stage.client()).frames)]
    assert started == ["z", "a", "a", "m"]


@pytest.mark.behaviour("AT-137")
async def test_a_run_whose_chunks_cannot_be_read_is_replayed_without_them(stage: Stage) -> None:
    await stage.dispatch(AskedChild, run_id="r")
    child = await stage.child("r", AskedChild)
    child.say("lost")
    child.end(summary="kept")
    await stage.dispatch(NoTailChild, run_id="s")
    await stage.settle()
    HandChild.fails_on["chunks"] = ValueError("unreadable")

    client = await stage.client()

    assert [(event_of(f)["runId"], event_of(f)["kind"]) for f in events(client.frames)] == [
        ("r", "started"),
        ("r", "finished"),
        ("s", "started"),
        *[("s", "chunk")] * 3,
        ("s", "finished"),
    ]


@pytest.mark.behaviour("AT-137", "D21")
async def test_a_run_whose_chunks_never_come_does_not_hold_up_the_replay_of_others(
    stage: Stage,
) -> None:
    await stage.dispatch(AskedChild, run_id="r")
    child = await stage.child("r", AskedChild)
    child.say("lost")
    child.end(summary="kept")
    await stage.dispatch(NoTailChild, run_id="s")
    await stage.settle()
    HandChild.stalls_on.add("chunks")

    client = await stage.client()
    assert kinds(client) == ["started"]
    await stage.harness.advance(10)

    assert [(event_of(f)["runId"], event_of(f)["kind"]) for f in events(client.frames)] == [
        ("r", "started"),
        ("r", "finished"),
        ("s", "started"),
        *[("s", "chunk")] * 3,
        ("s", "finished"),
    ]
    assert client.link.behind == set()
    errors = (await stage.parent()).errors
    assert [str(error) for error in errors] == ["The child did not answer in 10 seconds."]


@pytest.mark.behaviour("AT-138", "AT-323")
async def test_an_interrupted_run_is_replayed_with_its_reason(stage: Stage) -> None:
    live = await stage.client()
    await stage.dispatch(run_id="r")
    (await stage.child("r")).cut()
    await stage.settle()

    assert told(await stage.client()) == told(live)
    assert event_of(events(live.frames)[-1])["reason"] == "no-progress"


@pytest.mark.behaviour("AT-139", "AT-208")
async def test_a_replay_tells_no_hook_and_changes_no_row(stage: Stage) -> None:
    await worked(stage, "r")
    rows = stage.rows()
    parent = await stage.parent()
    noted = (len(parent.started), len(parent.finished), len(parent.seen_progress))

    await stage.client()

    assert stage.rows() == rows
    assert noted == (len(parent.started), len(parent.finished), len(parent.seen_progress))


@pytest.mark.behaviour("AT-121", "AT-140", "AT-026")
async def test_frames_of_a_run_go_to_the_parents_own_clients(stage: Stage) -> None:
    await stage.dispatch(run_id="r")
    inside = await stage.harness.connect(stage.root, "p", [(HandChild, "r")])
    (await stage.child("r")).say("one")
    await stage.settle()

    assert events(inside.frames) == []


async def test_what_on_connect_sends_follows_the_replay(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worked(stage, "r")

    def greet(self: Parent, connection: ramet.Connection, request: ramet.Request) -> None:
        connection.send({"type": "welcome"})

    monkeypatch.setattr(Parent, "on_connect", greet)
    client = await stage.client()

    assert [frame["type"] for frame in client.frames][-1] == "welcome"


class Guarded(Parent):
    """A parent that shows runs only to some clients."""

    def can_view_agent_tool_run(self, connection: ramet.Connection, run: ramet.RunInfo) -> bool:
        return connection.query.get("may") == run.run_id


async def test_a_client_sees_only_the_runs_that_it_may(tmp_path: object, stage: Stage) -> None:
    del tmp_path
    harness = stage.harness
    async with Harness(
        agents=[Guarded], sub_agents=[HandChild], data_dir=harness.host.files.path / "guarded"
    ) as guarded:
        admitted = await guarded.connect(Guarded, "p", query={"may": "r"})
        other = await guarded.connect(Guarded, "p", query={"may": "s"})
        inner = Stage(guarded, set())
        inner.root = Guarded
        caller = await inner.dispatch(run_id="r")
        (await inner.child("r")).say("one")
        await inner.settle()
        late = await guarded.connect(Guarded, "p", query={"may": "s"})
        caller.cancel()
        await inner.settle()

        assert kinds(admitted) == ["started", "chunk", "aborted"]
        assert kinds(other) == kinds(late) == []


@pytest.mark.behaviour("D22")
async def test_replay_is_limited_to_the_newest_runs_and_what_is_unfinished(
    stage: Stage,
) -> None:
    async with Harness(
        agents=[Parent],
        sub_agents=[HandChild],
        data_dir=stage.harness.host.files.path / "limited",
        options=HostOptions(replay_runs=2),
    ) as limited:
        inner = Stage(limited, set())
        callers = [await inner.dispatch(run_id=f"r{n}") for n in range(5)]
        for n in (1, 2, 3, 4):
            (await inner.child(f"r{n}")).end()
        await inner.settle()
        client = await inner.client()
        callers[0].cancel()

        started = [f for f in events(client.frames) if event_of(f)["kind"] == "started"]
        assert [event_of(f)["runId"] for f in started] == ["r0", "r3", "r4"]


@pytest.mark.behaviour("D21", "D14")
async def test_a_replay_that_a_forced_eviction_cut_is_taken_up(stage: Stage) -> None:
    child = await worked(stage, "r")
    child.end()
    await stage.settle()
    client = await stage.client()
    complete = told(client)
    cut = await stage.client()
    cut.frames.clear()
    stalled = await stage.harness.connect(stage.root, "p")
    stalled.frames.clear()
    stalled.link.behind.add("run:r")
    await stage.harness.evict(stage.root, "p", force=True)
    await stalled.send({"type": "hello"})

    assert told(stalled) == complete
    assert events(cut.frames) == []
    assert stalled.link.behind == set()
