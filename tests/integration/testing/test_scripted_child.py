"""The scripted child: what a test programs is what the parent and its clients see."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.core.json import JsonObject, loads_object
from ramet.testing import (
    Cut,
    Delay,
    Ending,
    Gate,
    Harness,
    ScriptedChild,
    ScriptedError,
    TestClient,
)


class Boss(ramet.Agent[None]):
    """A parent that notes the progress of its children."""

    def __init__(self) -> None:
        self.seen: list[float | str | None] = []

    def on_progress(self, run: ramet.RunInfo, progress: ramet.Progress) -> None:
        self.seen.append(progress.milestone or progress.fraction)


class Stage:
    """A parent with scripted children."""

    def __init__(self, harness: Harness, boss: Boss, client: TestClient) -> None:
        self.harness = harness
        self.boss = boss
        self.client = client

    def dispatch(self, cls: type, **options: Any) -> asyncio.Task[ramet.RunResult[Any]]:
        """Run a child as a caller that waits for it."""
        work = self.boss.run_agent_tool(cls, run_id="r", **options)
        return asyncio.get_running_loop().create_task(work)

    async def child(self, cls: type[ScriptedChild]) -> ScriptedChild:
        """The live child of the run."""
        agent: object = await self.harness.agent(Boss, "b", [(cls, "r")])
        assert isinstance(agent, ScriptedChild)
        return agent

    def texts(self) -> list[object]:
        """The texts that a client was sent."""
        found: list[object] = []
        for frame in self.client.of_type("agent-tool-event"):
            event = frame["event"]
            assert isinstance(event, dict)
            chunk: JsonObject | None = loads_object(str(event.get("body")))
            if chunk is not None and chunk.get("type") == "text-delta":
                found.append(chunk["delta"])
        return found

    def kinds(self) -> list[object]:
        """The kinds of the events that a client was sent."""
        events = [frame["event"] for frame in self.client.of_type("agent-tool-event")]
        return [event["kind"] for event in events if isinstance(event, dict)]


Staged = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def staged(tmp_path: Path) -> AsyncIterator[Staged]:
    """Opens a stage with the children that a test gives."""
    async with _stages(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def _stages(data_dir: Path) -> AsyncIterator[Staged]:
    opened: list[Harness] = []

    async def open_stage(*children: type) -> Stage:
        harness = Harness(agents=[Boss], sub_agents=children, data_dir=data_dir)
        await harness.__aenter__()
        opened.append(harness)
        client = await harness.connect(Boss, "b")
        return Stage(harness, await harness.agent(Boss, "b"), client)

    yield open_stage
    for harness in opened:
        await harness.__aexit__(None, None, None)


async def test_by_itself_it_completes_at_once(staged: Staged) -> None:
    stage = await staged(ScriptedChild)

    assert (await stage.dispatch(ScriptedChild)).status == "completed"


async def test_it_streams_its_pieces_and_ends_as_scripted(staged: Staged) -> None:
    child = ScriptedChild.script(
        "Reader",
        [
            "one",
            ramet.Progress(fraction=0.5),
            ramet.Milestone(name="half", sequence=0, at=7),
            {"type": "text-delta", "id": "t", "delta": "two"},
        ],
        ending=Ending(output={"n": 2}, summary="read"),
    )
    stage = await staged(child)
    result = await stage.dispatch(child, input="what?")
    await stage.harness.settle()

    assert (result.status, result.output, result.summary) == ("completed", {"n": 2}, "read")
    assert stage.texts() == ["one", "two"]
    assert child.inputs == ["what?"]
    assert child.calls[0] == "start"


async def test_a_gate_holds_the_rest_back_until_it_is_opened(staged: Staged) -> None:
    gate = Gate()
    child = ScriptedChild.script(
        "Waiter", ["one", gate, ramet.Progress(fraction=0.5), "two"], ending=Ending(summary="both")
    )
    stage = await staged(child)
    running = stage.dispatch(child)
    await gate.reached()
    await stage.harness.settle()
    assert stage.texts() == ["one"]
    assert not running.done()

    gate.open()
    assert (await running).summary == "both"
    await stage.harness.settle()
    assert stage.texts() == ["one", "two"]
    assert stage.boss.seen == [0.5]


async def test_a_delay_is_on_the_clock_of_the_harness(staged: Staged) -> None:
    child = ScriptedChild.script("Sleeper", [Delay(60), "late"])
    stage = await staged(child)
    running = stage.dispatch(child)
    await stage.harness.advance(59)
    assert not running.done()

    await stage.harness.advance(1)
    assert (await running).status == "completed"
    assert stage.texts() == ["late"]


async def test_several_children_play_scripts_of_their_own(staged: Staged) -> None:
    good = ScriptedChild.script("Good", ending=Ending(summary="fine"))
    bad = ScriptedChild.script("Bad", ending=Ending(status="error", error="broke"))
    stage = await staged(good, bad)

    first = await stage.boss.run_agent_tool(good, run_id="g")
    second = await stage.boss.run_agent_tool(bad, run_id="b")
    assert (first.status, first.summary) == ("completed", "fine")
    assert (second.status, second.error) == ("error", "broke")
    assert good.calls.count("start") == bad.calls.count("start") == 1


async def test_an_adapter_call_raises_what_is_scripted(staged: Staged) -> None:
    child = ScriptedChild.script("Broken", raises={"start": ScriptedError("no paper")})
    stage = await staged(child)

    with pytest.raises(ScriptedError, match="no paper"):
        await stage.dispatch(child)
    await stage.harness.settle()
    assert stage.kinds() == ["started", "error"]


async def test_an_adapter_call_waits_at_its_gate(staged: Staged) -> None:
    gate = Gate()
    child = ScriptedChild.script("Slow", ["one"], gates={"tail": gate})
    stage = await staged(child)
    running = stage.dispatch(child)
    await gate.reached()
    await stage.harness.settle()
    assert stage.texts() == []

    gate.open()
    assert (await running).status == "completed"
    await stage.harness.settle()
    assert stage.texts() == ["one"]


async def test_a_cut_tail_is_taken_up_where_it_was(staged: Staged) -> None:
    first, second = Gate(), Gate()
    child = ScriptedChild.script("Cutter", [first, "one", Cut(), second, "two"])
    stage = await staged(child)
    running = stage.dispatch(child)
    await stage.harness.settle()
    first.open()
    await stage.harness.settle()
    second.open()

    assert (await running).status == "completed"
    await stage.harness.settle()
    assert stage.texts() == ["one", "two"]
    assert child.calls.count("tail") == 2


async def test_a_cancelled_run_is_aborted_and_plays_no_more(staged: Staged) -> None:
    gate = Gate()
    child = ScriptedChild.script("Stopped", ["one", gate, "two"])
    stage = await staged(child)
    running = stage.dispatch(child)
    await gate.reached()
    await stage.boss.cancel_agent_tool("r", "enough")
    gate.open()

    result = await running
    assert (result.status, child.cancel_reasons) == ("aborted", ["enough"])
    await stage.harness.settle()
    assert stage.texts() == ["one"]


async def test_a_run_may_ignore_that_it_is_cancelled(staged: Staged) -> None:
    gate = Gate()
    child = ScriptedChild.script("Stubborn", [gate, "two"], ignores_cancel=True)
    stage = await staged(child)
    stage.dispatch(child).add_done_callback(lambda _: None)
    await gate.reached()
    await stage.boss.cancel_agent_tool("r", "enough")
    await stage.harness.settle()

    assert child.cancel_reasons == ["enough"]
    one = await stage.child(child)
    inspection = await one.inspect_agent_tool_run("r")
    assert inspection is not None
    assert inspection.status == "running"


async def test_what_was_played_outlives_a_crash(staged: Staged) -> None:
    gate = Gate()
    child = ScriptedChild.script(
        "Stored", ["one", ramet.Milestone(name="m", sequence=0, at=7), gate, "two"]
    )
    stage = await staged(child)
    running = stage.dispatch(child)
    await gate.reached()
    await stage.harness.crash()
    running.cancel()
    await stage.harness.restart()

    one = await stage.child(child)
    stored = await one.get_agent_tool_chunks("r")
    assert [(item.sequence, item.kind) for item in stored] == [(0, "chunk"), (0, "milestone")]
    assert await one.get_agent_tool_chunks("r", after_sequence=0) == stored[1:]
    assert (await one.start_agent_tool_run("again", run_id="r")).status == "running"
    assert child.inputs == [None]
