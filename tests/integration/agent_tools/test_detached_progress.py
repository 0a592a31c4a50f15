"""What a child reports is seen everywhere: live, in hooks, in inspection, after a kill."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic_ai.models import Model

import ramet
from ramet import from_thread
from ramet.protocol import apply_agent_tool_event
from ramet.protocol.run_state import AgentToolState, RunState
from ramet.testing import Gate, Harness, ScriptedModel, TestClient, ToolCall


class Builder(ramet.Think):
    """Builds in a synchronous tool, which runs in a thread."""

    threads: ClassVar[list[str]] = []
    gate: ClassVar[Gate] = Gate()

    def get_model(self) -> Model:
        def answer(messages: object, tools: object) -> object:
            return ToolCall("build") if "ToolReturn" not in str(messages) else "Built."

        return ScriptedModel.by_rule(answer)  # type: ignore[arg-type] # a rule gives either

    def get_tools(self) -> list[Callable[..., object]]:
        return [self.build]

    def build(self) -> str:
        """Build."""
        self.threads.append(threading.current_thread().name)
        from_thread.report_progress(milestone="begun", data={"files": 2})
        return from_thread.report_progress(fraction=1.0, message="compiling", phase="build")

    async def before_step(self, step: int) -> None:
        if step == 1:
            await self.gate.wait()


class Counter(ramet.AIChatAgent):
    """Answers from a synchronous generator, which runs in a thread as well."""

    def on_chat_message(self, turn: ramet.Turn) -> Iterator[str]:
        yield "one"
        from_thread.report_progress(fraction=0.5)
        yield " two"


class Site(ramet.Agent[None]):
    """Lets go of a build and watches it."""

    def __init__(self) -> None:
        self.seen: list[ramet.Progress] = []

    def on_progress(self, run: ramet.RunInfo, progress: ramet.Progress) -> None:
        self.seen.append(progress)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Builder.gate = Gate()
    Builder.threads.clear()
    async with Harness(agents=[Site], sub_agents=[Builder, Counter], data_dir=tmp_path) as running:
        yield running
        Builder.gate.open()


def run_seen_by(client: TestClient, now_ms: int) -> RunState:
    """The run as a page would show it."""
    state = AgentToolState()
    for frame in client.frames:
        state = apply_agent_tool_event(state, frame, now_ms=now_ms)
    return state.runs_by_id["r"]


@pytest.mark.behaviour("AT-209", "AT-210", "AT-216", "AT-221", "AT-282", "D22")
async def test_what_a_synchronous_tool_reports_is_seen_everywhere_after_a_kill_too(
    harness: Harness,
) -> None:
    client = await harness.connect(Site, "s")
    site = await harness.agent(Site, "s")
    await site.run_agent_tool(Builder, run_id="r", input="go", detached=True)
    await harness.settle()

    assert Builder.threads
    assert Builder.threads[0] != threading.current_thread().name
    now = harness.clock.now_ms()
    assert [(each.milestone, each.fraction) for each in site.seen] == [("begun", None), (None, 1.0)]
    shown = run_seen_by(client, now)
    assert shown.progress is not None
    assert (shown.progress.fraction, shown.progress.message, shown.progress.phase) == (
        1.0,
        "compiling",
        "build",
    )
    assert [milestone.name for milestone in shown.milestones] == ["begun"]
    await _is_known(site)

    refreshed = run_seen_by(await harness.connect(Site, "s"), now)
    assert refreshed.progress is not None
    assert (refreshed.progress.fraction, refreshed.status) == (1.0, "running")
    assert refreshed.milestones == shown.milestones

    await harness.crash()
    await harness.restart()
    client = await harness.connect(Site, "s")
    after = run_seen_by(client, now)
    assert after.progress is not None
    assert (after.progress.fraction, after.status) == (1.0, "running")
    assert after.milestones == shown.milestones
    site = await harness.agent(Site, "s")
    await _is_known(site)
    Builder.gate.open()
    await harness.advance(60)
    assert run_seen_by(client, now).status == "completed"
    [run] = site.list_agent_tool_runs()
    assert run.status == "completed"


async def _is_known(site: Site) -> None:
    found = await site.inspect_agent_tool("r")
    assert found is not None
    assert found.result is None
    assert found.child is not None
    assert found.child.progress is not None
    assert (found.child.progress.fraction, found.child.progress.phase) == (1.0, "build")
    assert [(each.name, each.data) for each in found.child.milestones] == [("begun", {"files": 2})]


async def test_a_synchronous_answer_reports_from_its_thread_too(harness: Harness) -> None:
    site = await harness.agent(Site, "s")
    await site.run_agent_tool(Counter, run_id="r", input="go", detached=True)
    await harness.settle()
    assert [progress.fraction for progress in site.seen] == [0.5]
    [run] = site.list_agent_tool_runs()
    assert run.status == "completed"
