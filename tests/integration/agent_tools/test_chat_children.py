"""Chat agents as children and parents: streams, progress, nesting, refresh, restart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness
from tests.integration.agent_tools.children import Parent, events
from tests.integration.agent_tools.conftest import event_of, kinds, numbers


class Talker(ramet.AIChatAgent):
    """A child that says two words and waits for its gate in between."""

    chat_recovery: ramet.ChatRecovery | bool = False
    gates: ClassVar[dict[str, asyncio.Event]] = {}

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[JsonObject]:
        await self._gate("begin")
        yield chunks.text_start("t")
        yield chunks.text_delta("t", "hello")
        await self.report_progress(fraction=0.5)
        await self.report_progress(milestone="half")
        await self._gate("middle")
        yield chunks.text_delta("t", " world")
        yield chunks.text_end("t")

    async def _gate(self, place: str) -> None:
        gate = self.gates.get(f"{self.name} {place}")
        if gate is not None:
            await gate.wait()


class Middle(ramet.AIChatAgent):
    """A child that runs children of its own."""

    options = ramet.AgentOptions(max_concurrent_agent_tools=1)

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        results = await asyncio.gather(
            *(self.run_agent_tool(Talker, input="go", run_id=f"inner{n}") for n in range(2))
        )
        yield ", ".join(result.summary or str(result.error) for result in results)


class Asker(ramet.AIChatAgent):
    """A parent that asks a child under an id of its own choice, and says what came of it."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        for _ in range(2):
            try:
                result = await self.run_agent_tool(Talker, input="go", run_id="mine")
                yield f"{result.summary}. "
            except ramet.RametError as error:
                yield f"{type(error).__name__}. "


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(
        agents=[Parent, Asker], sub_agents=[Talker, Middle], data_dir=tmp_path
    ) as started:
        yield started
    Talker.gates.clear()


@pytest.mark.behaviour("AT-130", "D2", "AT-227")
async def test_a_chat_child_streams_into_its_parent(harness: Harness) -> None:
    gate = Talker.gates["r begin"] = asyncio.Event()
    client = await harness.connect(Parent, "p")
    parent = await harness.agent(Parent, "p")
    caller = asyncio.get_running_loop().create_task(
        parent.run_agent_tool(Talker, input="hi", run_id="r")
    )
    await harness.settle()
    gate.set()
    result = await caller
    await harness.settle()

    assert (result.status, result.summary) == ("completed", "hello world")
    assert numbers(client) == list(range(len(kinds(client))))
    assert kinds(client)[0] == "started"
    assert kinds(client)[-1] == "finished"
    bodies = [str(event_of(frame).get("body")) for frame in events(client.frames)]
    order = [
        name for body in bodies for name in ("hello", "progress", "half", "world") if name in body
    ]
    assert order == ["hello", "progress", "half", "world"]
    assert [progress.milestone for progress in parent.seen_progress] == [None, "half"]


@pytest.mark.behaviour("AT-135", "AT-161", "D21", "D3")
@pytest.mark.parametrize("evicted", [[], ["child"], ["child", "parent"]])
async def test_a_finished_chat_child_is_replayed_open_or_closed(
    harness: Harness, evicted: list[str]
) -> None:
    client = await harness.connect(Parent, "p")
    parent = await harness.agent(Parent, "p")
    await parent.run_agent_tool(Talker, input="hi", run_id="r")
    await harness.settle()
    if "child" in evicted:
        await harness.evict(Parent, "p", sub=[(Talker, "r")])
    if "parent" in evicted:
        await client.close()
        await harness.evict(Parent, "p")

    late = await harness.connect(Parent, "p")

    lasting = [
        (frame["sequence"], frame["event"])
        for frame in events(client.frames)
        if "progress" not in str(frame["event"])
    ]
    assert [(frame["sequence"], frame["event"]) for frame in events(late.frames)] == lasting
    opened = harness.host.instances.live(harness.path(Parent, "p", [(Talker, "r")]))
    assert (opened is None) == ("child" in evicted)


@pytest.mark.behaviour("AT-321", "D4", "D10", "AT-294")
async def test_a_chat_child_that_was_killed_with_its_parent_is_collected(harness: Harness) -> None:
    Talker.gates["r middle"] = asyncio.Event()
    client = await harness.connect(Parent, "p")
    parent = await harness.agent(Parent, "p")
    caller = asyncio.get_running_loop().create_task(
        parent.run_agent_tool(Talker, input="hi", run_id="r")
    )
    await harness.settle()
    await harness.crash()
    caller.cancel()
    await harness.restart()

    late = await harness.connect(Parent, "p")

    assert kinds(late)[-1] in {"error", "interrupted"}
    [row] = harness.rows(Parent, "p", "SELECT status, completed_at FROM cf_agent_tool_runs")
    assert row["status"] in {"error", "interrupted"}
    lasting = [f for f in events(client.frames) if "progress" not in str(f["event"])]
    replayed = events(late.frames)[: len(lasting)]
    assert [(f["sequence"], f["event"]) for f in lasting] == [
        (f["sequence"], f["event"]) for f in replayed
    ]


@pytest.mark.behaviour("AT-338", "AT-339", "AT-340", "AT-342", "AT-201")
async def test_a_child_runs_children_of_its_own_under_its_own_cap(harness: Harness) -> None:
    top = await harness.connect(Parent, "p")
    parent = await harness.agent(Parent, "p")
    result = await parent.run_agent_tool(Middle, input="hi", run_id="m")
    await harness.settle()
    middle = await harness.connect(Parent, "p", [(Middle, "m")])

    assert result.summary == "hello world, maxConcurrentAgentTools (1) exceeded"
    assert {event_of(frame)["runId"] for frame in events(top.frames)} == {"m"}
    assert {event_of(frame)["runId"] for frame in events(middle.frames)} == {"inner0", "inner1"}


@pytest.mark.behaviour("D12", "AT-176")
async def test_cancelling_the_parents_call_reaches_the_grandchild(harness: Harness) -> None:
    Talker.gates["inner0 middle"] = asyncio.Event()
    parent = await harness.agent(Parent, "p")
    caller = asyncio.get_running_loop().create_task(
        parent.run_agent_tool(Middle, input="hi", run_id="m")
    )
    await harness.settle()
    caller.cancel()
    await harness.settle()

    inner = "SELECT status FROM cf_agent_tool_runs WHERE run_id = 'inner0'"
    assert harness.rows(Parent, "p", inner, sub=[(Middle, "m")]) == [{"status": "aborted"}]
    below = [(Middle, "m"), (Talker, "inner0")]
    turns = harness.rows(Parent, "p", "SELECT outcome FROM cf_chat_turns", sub=below)
    assert turns == [{"outcome": "aborted"}]


@pytest.mark.behaviour("D8", "D5")
async def test_a_run_id_answers_only_the_question_of_its_turn(harness: Harness) -> None:
    asker = await harness.agent(Asker, "a")
    for question in ("first", "second"):
        message: UIMessage = {"id": question, "role": "user", "parts": []}
        await asker.save_messages([*asker.messages, message])
        await harness.settle()

    first, second = (str(m["parts"]) for m in asker.messages if m["role"] == "assistant")
    assert "hello world. hello world. " in first
    assert "RunBelongsToAnother. RunBelongsToAnother. " in second
    [row] = harness.rows(Asker, "a", "SELECT recovery_root FROM cf_agent_tool_runs")
    assert row["recovery_root"] is not None
