"""What a child reports of its progress (AT-211 … AT-227, D23, D24)."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.agent_tools.records import Milestone, Progress, StoredChunk
from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject, NotJson, loads_object
from ramet.testing.client import TestClient
from ramet.testing.harness import Harness
from tests.integration.chat.support import END, ack, chunk_of, responses


class Reporter(AIChatAgent[object]):
    """Streams the texts that it is given, and reports what is a dict."""

    chat_recovery: ramet.ChatRecovery | bool = False

    def __init__(self) -> None:
        self.feed: asyncio.Queue[Any] = asyncio.Queue()
        self.outcomes: list[str] = []

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        while (item := await self.feed.get()) is not END:
            if isinstance(item, str):
                yield item
            else:
                self.outcomes.append(await self.report_progress(**item))

    def give(self, *items: object) -> None:
        for item in items:
            self.feed.put_nowait(item)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Reporter], data_dir=tmp_path) as harness:
        yield harness


@pytest.mark.behaviour("AT-211", "AT-214", "AT-215", "AT-216", "AT-217")
async def test_progress_reaches_clients_and_parent_live_and_is_kept_as_the_last_snapshot(
    harness: Harness,
) -> None:
    child, client, items = await _running(harness)
    child.give("one", {"fraction": 0.25, "message": "1/4", "phase": "read", "data": {"n": 1}})
    await harness.settle()
    assert child.outcomes == ["emitted"]
    (frame,) = _signals(client, "data-agent-progress")
    chunk = chunk_of(frame)
    assert chunk == {
        "type": "data-agent-progress",
        "id": chunk["id"],
        "transient": True,
        "data": {"fraction": 0.25, "message": "1/4", "phase": "read", "data": {"n": 1}},
    }
    assert "seq" not in frame
    assert [(item.kind, item.sequence) for item in items] == [
        ("chunk", 0),
        ("chunk", 1),
        ("chunk", 2),
        ("progress", 2),
    ]
    run = await child.inspect_agent_tool_run("run-1")
    assert run is not None
    now = harness.clock.now_ms()
    assert run.progress == Progress(fraction=0.25, message="1/4", phase="read", at=now)


@pytest.mark.behaviour("AT-217")
async def test_the_data_of_progress_is_stored_when_asked_for(harness: Harness) -> None:
    child, _, _ = await _running(harness)
    child.give({"data": {"n": 1}, "persist": True})
    await harness.settle()
    run = await child.inspect_agent_tool_run("run-1")
    assert run is not None
    assert run.progress is not None
    assert run.progress.data == {"n": 1}


@pytest.mark.behaviour("D24", "AT-218")
async def test_progress_right_after_another_is_held_and_the_last_one_sent_when_it_is_due(
    harness: Harness,
) -> None:
    child, client, _ = await _running(harness)
    child.give({"fraction": 0.1}, {"fraction": 0.2}, {"fraction": 0.3})
    await harness.settle()
    assert child.outcomes == ["emitted", "coalesced", "coalesced"]
    assert _fractions(client) == [0.1]
    await harness.advance(0.21)
    assert _fractions(client) == [0.1, 0.3]
    await harness.advance(1)
    assert _fractions(client) == [0.1, 0.3]


@pytest.mark.behaviour("D24", "AT-219", "AT-221", "AT-223")
async def test_a_milestone_or_the_end_overtakes_held_progress(harness: Harness) -> None:
    child, client, _ = await _running(harness)
    child.give({"fraction": 0.1}, {"fraction": 0.2}, {"milestone": "half"}, {"fraction": 0.3})
    await harness.settle()
    child.give({"fraction": 1.0})
    await harness.advance(1)
    assert child.outcomes == ["emitted", "coalesced", "emitted", "coalesced", "emitted"]
    assert _fractions(client) == [0.1, 1.0]


@pytest.mark.behaviour("D24")
async def test_held_progress_is_sent_before_the_turn_ends(harness: Harness) -> None:
    child, client, items = await _running(harness)
    child.give({"fraction": 0.1}, {"fraction": 0.2}, END)
    await harness.settle()
    assert _fractions(client) == [0.1, 0.2]
    assert [item.kind for item in items] == ["progress", "progress"]
    assert responses(client, _request_of(client))[-1]["done"] is True


@pytest.mark.behaviour("AT-221", "AT-222", "AT-224", "AT-225", "AT-226", "D23")
async def test_milestones_are_numbered_kept_in_order_and_part_of_the_message(
    harness: Harness,
) -> None:
    child, client, items = await _running(harness)
    child.give("one", {"milestone": "ready", "fraction": 0.5, "data": {"seen": 4}})
    child.give("two", {"milestone": "ready"}, END)
    await harness.settle()
    now = harness.clock.now_ms()
    run = await child.inspect_agent_tool_run("run-1")
    assert run is not None
    assert run.progress is None
    assert run.milestones == [
        Milestone(name="ready", sequence=0, at=now, fraction=0.5, data={"seen": 4}),
        Milestone(name="ready", sequence=1, at=now),
    ]
    first, second = [chunk_of(frame) for frame in _signals(client, "data-agent-milestone")]
    assert first["data"] == {
        "name": "ready",
        "sequence": 0,
        "at": now,
        "fraction": 0.5,
        "data": {"seen": 4},
    }
    parts = child.messages[-1]["parts"]
    assert [part["type"] for part in parts] == [
        "text",
        "data-agent-milestone",
        "data-agent-milestone",
    ]
    assert second not in parts[:2]
    assert [item.sequence for item in items if item.kind == "chunk"] == [0, 1, 2, 3, 4]
    assert await child.get_agent_tool_chunks("run-1") == items


@pytest.mark.behaviour("D23", "D21")
async def test_who_replays_a_run_gets_its_milestones_at_their_place(harness: Harness) -> None:
    child, client, _ = await _running(harness)
    child.give("one", {"milestone": "half"}, "two")
    await harness.settle()
    late = await harness.connect(Reporter, "run-1")
    await ack(late, _request_of(client))
    child.give({"milestone": "end"}, END)
    await harness.settle()
    request_id = _request_of(client)
    replayed = [chunk_of(frame) for frame in responses(late, request_id) if frame["body"]]
    assert replayed == [chunk_of(frame) for frame in responses(client, request_id) if frame["body"]]


@pytest.mark.behaviour("D4", "D23")
async def test_milestones_of_a_killed_run_stay_in_the_partial_message(harness: Harness) -> None:
    child, _, items = await _running(harness)
    child.give("one", {"milestone": "half"}, "two")
    await harness.settle()
    seen = list(items)
    await harness.crash()
    await harness.restart()
    child = await harness.agent(Reporter, "run-1")
    assert await child.get_agent_tool_chunks("run-1") == seen
    parts = child.messages[-1]["parts"]
    assert [part.get("text") for part in parts] == ["onetwo", None]


@pytest.mark.behaviour("AT-213")
async def test_outside_of_a_run_nobody_is_told(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    child = await harness.agent(Reporter, "run-1")
    client = await harness.connect(Reporter, "run-1")
    assert await child.report_progress(fraction=0.5) == "inactive"
    child.give({"milestone": "half"}, END)
    await child.save_messages([])
    await harness.settle()
    assert child.outcomes == ["inactive"]
    assert _signals(client, "data-agent-milestone") == []
    assert caplog.text.count("report_progress outside of a run") == 1


@pytest.mark.behaviour("D24")
async def test_what_cannot_be_reported_is_refused(harness: Harness) -> None:
    child = await harness.agent(Reporter, "run-1")
    with pytest.raises(ValueError, match="finite number, not nan"):
        await child.report_progress(fraction=math.nan)
    for nameless in ("", "  "):
        with pytest.raises(ValueError, match=f"A milestone must have a name, not {nameless!r}"):
            await child.report_progress(milestone=nameless)
    with pytest.raises(NotJson):
        await child.report_progress(data={"x": math.inf})
    with pytest.raises(NotJson):
        await child.report_progress(data=object())


@pytest.mark.behaviour("AT-220")
async def test_the_next_runs_first_signal_is_not_held_for_the_last_ones(
    harness: Harness,
) -> None:
    child, _, _ = await _running(harness)
    child.give({"fraction": 0.1}, END)
    await harness.settle()
    await child.start_agent_tool_run("wasps", run_id="run-2")
    child.give({"fraction": 0.1}, END)
    await harness.settle()
    assert child.outcomes == ["emitted", "emitted"]


@pytest.mark.behaviour("AT-227", "D22", "D24")
async def test_who_begins_to_follow_is_told_the_last_progress_once_behind_what_is_stored(
    harness: Harness,
) -> None:
    child = await harness.agent(Reporter, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    child.give("one", {"fraction": 0.2})
    await harness.advance(1)
    child.give({"fraction": 0.4}, {"milestone": "half"}, "two")
    await harness.advance(1)
    items: list[StoredChunk] = []

    async def follow() -> None:
        async for item in child.tail_agent_tool_run("run-1"):
            items.append(item)  # noqa: PERF401 - a test looks at them while they come

    following = asyncio.ensure_future(follow())
    await harness.settle()
    assert [item.kind for item in items].count("progress") == 1
    assert (items[-1].kind, '"fraction":0.4' in items[-1].body) == ("progress", True)
    child.give("three", END)
    await following
    assert [item.kind for item in items].count("progress") == 1
    late = [item.kind async for item in child.tail_agent_tool_run("run-1")]
    assert "progress" not in late, "it was for the moment"


async def _running(harness: Harness) -> tuple[Reporter, TestClient, list[StoredChunk]]:
    """A child with a run, a client that watches it, and the items that its tail gives."""
    child = await harness.agent(Reporter, "run-1")
    client = await harness.connect(Reporter, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    items: list[StoredChunk] = []

    async def follow() -> None:
        async for item in child.tail_agent_tool_run("run-1"):
            items.append(item)  # noqa: PERF401 - a test looks at them while they come

    child.following = asyncio.ensure_future(follow())  # type: ignore[attr-defined] # held here
    await harness.settle()
    return child, client, items


def _signals(client: TestClient, chunk_type: str) -> list[JsonObject]:
    return [
        frame
        for frame in client.of_type("cf_agent_use_chat_response")
        if chunk_of(frame).get("type") == chunk_type
    ]


def _fractions(client: TestClient) -> list[object]:
    data = [chunk_of(frame)["data"] for frame in _signals(client, "data-agent-progress")]
    return [each["fraction"] for each in data if isinstance(each, dict)]


def _request_of(client: TestClient) -> str:
    frames = client.of_type("cf_agent_use_chat_response")
    assert loads_object(str(frames[0]["body"])) is not None
    return str(frames[0]["id"])
