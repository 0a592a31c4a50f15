"""What a chat agent promises its parent: the adapter, whose items are a run's, and after a kill."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ramet
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.core.json import JsonObject, loads_object
from ramet.protocol.run_events import ABSENT
from ramet.testing.harness import Harness
from tests.integration.chat.support import END, Fed, chunks_of, request, user


class Lasting(Fed):
    """A child whose turns go on after a crash."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()
    live: ClassVar[list["Lasting"]] = []

    def __init__(self) -> None:
        super().__init__()
        self.live.append(self)


class Boss(ramet.Agent[None]):
    """A parent that asks a lasting child."""

    finished: ClassVar[list[str]] = []

    def on_agent_tool_finish(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        self.finished.append(result.status)

    async def ask(self) -> ramet.RunResult[Any]:
        return await self.run_agent_tool(Lasting, input="bees", run_id="run")


@pytest.fixture
async def lasting(tmp_path: Path) -> AsyncIterator[Harness]:
    Lasting.live.clear()
    async with Harness(agents=[Lasting, Boss], sub_agents=[], data_dir=tmp_path) as harness:
        yield harness


@pytest.mark.behaviour("AT-071", "AT-023", "AT-015")
@pytest.mark.parametrize("family", [ramet.AIChatAgent, ramet.Think])
def test_both_families_have_the_methods_of_the_adapter_and_the_helpers_of_a_parent(
    family: type,
) -> None:
    def named(method: str) -> list[str]:
        return list(inspect.signature(getattr(family, method)).parameters)[1:]

    assert named("start_agent_tool_run") == ["input", "run_id", "signal"]
    assert named("cancel_agent_tool_run") == ["run_id", "reason"]
    assert named("inspect_agent_tool_run") == ["run_id"]
    assert named("get_agent_tool_chunks") == ["run_id", "after_sequence", "limit"]
    assert named("tail_agent_tool_run") == ["run_id", "after_sequence", "signal"]
    progress = ["fraction", "message", "phase", "milestone", "data", "persist"]
    assert named("report_progress") == progress
    assert named("format_agent_tool_input") == ["input", "run"]
    assert named("get_agent_tool_output") == ["run_id"]
    assert named("get_agent_tool_summary") == ["run_id", "output"]
    assert named("cancel_agent_tool") == ["run_id", "reason"]
    assert named("has_agent_tool_run") == ["cls", "run_id"]
    assert named("clear_agent_tool_runs") == ["older_than", "status"]
    for hook in ("on_agent_tool_start", "on_agent_tool_finish", "on_progress"):
        assert callable(getattr(family, hook))


@pytest.mark.behaviour("AT-072")
async def test_an_inspection_says_where_the_run_is_and_no_more_than_there_is(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run")
    await child.start_agent_tool_run("bees", run_id="run")
    child.give("six")
    await harness.settle()
    found = await _inspected(child)
    assert (found.run_id, found.status) == ("run", "running")
    assert found.request_id is not None
    assert found.stream_id is not None
    assert found.started_at == harness.clock.now_ms()
    assert (found.output, found.summary, found.error, found.completed_at) == (
        ABSENT,
        None,
        None,
        None,
    )
    assert (found.progress, list(found.milestones)) == (None, [])


@pytest.mark.behaviour("AT-034", "AT-035")
async def test_the_tables_of_runs_are_there_from_the_first_moment(harness: Harness) -> None:
    await harness.agent(Fed, "run")

    def columns(table: str) -> list[object]:
        rows = harness.rows(Fed, "run", f"PRAGMA table_info({table})")
        return [row["name"] for row in rows]

    assert columns("cf_agent_tool_child_runs") == [
        "run_id",
        "request_id",
        "stream_id",
        "status",
        "summary",
        "output_json",
        "error_message",
        "started_at",
        "completed_at",
        "progress_json",
        "last_signal_at",
        "input_json",
        "request_ids",
    ]
    assert columns("cf_agent_tool_milestones") == [
        "run_id",
        "sequence",
        "name",
        "data_json",
        "at",
        "position",
        "fraction",
        "message",
        "phase",
    ]


@pytest.mark.behaviour("AT-075", "AT-354")
async def test_a_run_is_bound_to_its_request_before_a_frame_of_it_goes_out(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run")
    client = await harness.connect(Fed, "run")
    turn = asyncio.ensure_future(child.save_messages([user("u1", "hello")]))
    await harness.settle()
    started = await child.start_agent_tool_run("bees", run_id="run")
    await harness.settle()
    (row,) = harness.rows(Fed, "run", "SELECT * FROM cf_agent_tool_child_runs")
    assert row["request_id"] == started.request_id
    assert chunks_of(client, str(row["request_id"])) == [], "it waits for its place in the queue"
    child.give("first", END, "bound", END)
    await turn
    await harness.settle()
    assert _text(await child.get_agent_tool_chunks("run")) == "bound"


@pytest.mark.behaviour("AT-077", "AT-096", "AT-076")
async def test_after_a_kill_the_items_of_the_turn_that_goes_on_are_the_runs(
    lasting: Harness,
) -> None:
    child = await _killed_at(lasting, "par")
    found = await _inspected(child)
    client = await lasting.connect(Lasting, "run")
    child.give("tial", END, "talk", END)
    await lasting.settle()
    await client.send(request("r9", [*child.messages, user("u9", "and?")]))
    assert _text(await child.get_agent_tool_chunks("run")) == "partial"
    (row,) = lasting.rows(Lasting, "run", "SELECT request_ids FROM cf_agent_tool_child_runs")
    assert str(found.request_id) in str(row["request_ids"])
    assert "r9" not in str(row["request_ids"])


@pytest.mark.behaviour("AT-092", "D10")
async def test_a_message_that_is_there_does_not_complete_a_killed_run(lasting: Harness) -> None:
    child = await _killed_at(lasting, "nearly all of it")
    await lasting.advance(60)
    assert (await _inspected(child)).status == "running"
    child.give(RuntimeError("stung"))
    await lasting.settle()
    found = await _inspected(child)
    assert (found.status, found.error) == ("error", "stung")


@pytest.mark.behaviour("AT-097", "AT-183", "AT-182")
async def test_a_run_that_is_cancelled_while_its_turn_is_recovered_stays_cancelled(
    lasting: Harness,
) -> None:
    child = await _killed_at(lasting, "par")
    before = (await _inspected(child)).request_id
    await child.cancel_agent_tool_run("run", "not needed")
    assert (await _inspected(child)).status == "aborted"
    child.give("tial", END)
    await lasting.settle()
    assert (await _inspected(child)).request_id == before
    assert [live.is_cancelled() for live in child._ramet_chat.turns] == []
    (turn,) = lasting.rows(
        Lasting,
        "run",
        "SELECT outcome FROM cf_chat_turns ORDER BY created_at DESC, rowid DESC LIMIT 1",
    )
    assert turn["outcome"] == "aborted"

    await lasting.crash()
    await lasting.restart()
    again = await lasting.agent(Lasting, "run")
    await lasting.settle()
    assert again.turns == []
    found = await _inspected(again)
    assert (found.status, found.request_id) == ("aborted", before)


@pytest.mark.behaviour("AT-098", "AT-094")
async def test_each_of_several_open_runs_is_bound_to_the_turn_that_goes_on_for_it(
    lasting: Harness,
) -> None:
    child = await lasting.agent(Lasting, "c")
    for run_id in ("one", "two"):
        await child.start_agent_tool_run(run_id, run_id=run_id)
    child.give("first ")
    await lasting.settle()
    await lasting.crash()
    await lasting.restart()
    child = await lasting.agent(Lasting, "c")
    child.give(RuntimeError("the first breaks"))
    await lasting.settle()
    found = {run_id: await child.inspect_agent_tool_run(run_id) for run_id in ("one", "two")}
    assert [each.status for each in found.values() if each is not None] == ["error", "running"]
    child.give("second", END)
    await lasting.settle()
    assert _text(await child.get_agent_tool_chunks("one")) == "first "
    assert _text(await child.get_agent_tool_chunks("two")) == "second"
    second = await child.inspect_agent_tool_run("two")
    assert second is not None
    assert (second.status, second.summary) == ("completed", "second")


@pytest.mark.behaviour("AT-078", "AT-088", "AT-220")
async def test_nothing_is_kept_in_memory_of_runs_that_have_ended(harness: Harness) -> None:
    child = await harness.agent(Fed, "run")
    for run_id in ("run", "next"):
        await child.start_agent_tool_run("bees", run_id=run_id)
    following = asyncio.ensure_future(_all(child.tail_agent_tool_run("run")))
    child.give("one", END, "two", END)
    await harness.settle()
    assert _text(await following) == "one"
    chat = child._ramet_chat
    assert (chat.child.busy(), chat.turns.busy(), list(chat.turns)) == (None, None, [])
    await harness.evict(Fed, "run")


@pytest.mark.behaviour("AT-101", "AT-099")
async def test_what_has_streamed_can_be_read_at_once(harness: Harness) -> None:
    child = await harness.agent(Fed, "run")
    await child.start_agent_tool_run("bees", run_id="run")
    words = [f"word{n} " for n in range(30)]
    for word in words:
        child.give(word)
        await harness.settle()
        assert _text(await child.get_agent_tool_chunks("run")).endswith(word)
    bodies = [loads_object(item.body) for item in await child.get_agent_tool_chunks("run")]
    assert None not in bodies


@pytest.mark.behaviour("AT-117")
async def test_a_backlog_that_cannot_be_read_raises_in_its_reader_and_leaves_the_run(
    harness: Harness,
) -> None:
    child = await harness.agent(Fed, "run")
    await child.start_agent_tool_run("bees", run_id="run")
    child.give("one ")
    await harness.settle()
    child.sql("ALTER TABLE cf_ai_chat_stream_chunks RENAME TO elsewhere")
    tail = child.tail_agent_tool_run("run")
    with pytest.raises(Exception, match="no such table"):
        await anext(tail)
    await tail.aclose()
    child.sql("ALTER TABLE elsewhere RENAME TO cf_ai_chat_stream_chunks")
    child.give("two", END)
    await harness.settle()
    assert (await _inspected(child)).summary == "one two"
    await harness.evict(Fed, "run")


@pytest.mark.behaviour("AT-118", "AT-119", "AT-120")
async def test_clients_are_sent_the_same_whether_a_parent_follows_or_not(
    harness: Harness,
) -> None:
    seen: list[list[JsonObject]] = []
    for name in ("watched", "alone"):
        child = await harness.agent(Fed, name)
        client = await harness.connect(Fed, name)
        started = await child.start_agent_tool_run("bees", run_id="run")
        tail = child.tail_agent_tool_run("run") if name == "watched" else None
        following = None if tail is None else asyncio.ensure_future(_all(tail))
        child.give("one", {"type": "error", "errorText": "stung"})
        await harness.settle()
        if following is not None:
            assert _text(await following) == "one"
        found = await child.inspect_agent_tool_run("run")
        assert found is not None
        assert (found.status, found.error) == ("error", "stung")
        texts = [
            loads_object(text.replace(str(started.request_id), "R")) or {} for text in client.texts
        ]
        seen.append([_without_ids(frame) for frame in texts if frame.get("id") == "R"])
    assert seen[0] == seen[1]
    assert seen[0][-1]["error"] is True


@pytest.mark.behaviour("AT-296", "AT-095", "AT-321", "AT-320")
async def test_a_look_at_the_child_after_a_kill_wakes_it_and_it_goes_on(tmp_path: Path) -> None:
    Lasting.live.clear()
    async with Harness(agents=[Boss], sub_agents=[Lasting], data_dir=tmp_path) as harness:
        boss = await harness.agent(Boss, "b")
        asking = asyncio.ensure_future(boss.ask())
        await harness.settle()
        Lasting.live[-1].give("par")
        await harness.settle()
        await harness.crash()
        asking.cancel()
        await harness.restart()
        boss = await harness.agent(Boss, "b")
        await harness.settle()
        assert len(Lasting.live) == 2, "only the parent was opened by the test"
        await harness.advance(100)
        Lasting.live[-1].give("ti")
        await harness.advance(100)
        Lasting.live[-1].give("al", END)
        await harness.settle()

        (run,) = boss.list_agent_tool_runs()
        assert run.status == "completed"
        looked = await boss.inspect_agent_tool("run")
        assert looked is not None
        assert looked.result is not None
        assert (looked.result.summary, looked.result.error) == ("partial", None)


@pytest.mark.behaviour("AT-093", "AT-207")
async def test_looking_at_a_run_that_a_kill_has_ended_tells_of_it_no_second_time(
    tmp_path: Path,
) -> None:
    Boss.finished.clear()
    async with Harness(agents=[Boss], sub_agents=[Fed], data_dir=tmp_path) as harness:
        boss = await harness.agent(Boss, "b")
        asking = asyncio.ensure_future(boss.run_agent_tool(Fed, input="x", run_id="r"))
        await harness.settle()
        await harness.crash()
        asking.cancel()
        await harness.restart()
        boss = await harness.agent(Boss, "b")
        await harness.settle()
        for _ in range(2):
            found = await boss.inspect_agent_tool("r")
            assert found is not None
            assert found.run.status == "interrupted"
        await harness.settle()
        assert Boss.finished == ["interrupted"]


async def _killed_at(harness: Harness, text: str) -> Lasting:
    """A child that was killed in its run after it had said so much, opened again."""
    child = await harness.agent(Lasting, "run")
    await child.start_agent_tool_run("bees", run_id="run")
    child.give(text)
    await harness.settle()
    await harness.crash()
    await harness.restart()
    again = await harness.agent(Lasting, "run")
    await harness.settle()
    return again


async def _inspected(child: Fed) -> Inspection:
    found = await child.inspect_agent_tool_run("run")
    assert found is not None
    return found


async def _all(tail: AsyncIterator[StoredChunk]) -> list[StoredChunk]:
    return [item async for item in tail]


def _text(items: list[StoredChunk]) -> str:
    chunks: list[JsonObject] = [loads_object(item.body) or {} for item in items]
    return "".join(str(chunk.get("delta", "")) for chunk in chunks)


def _without_ids(frame: JsonObject) -> JsonObject:
    body = loads_object(str(frame.get("body"))) or {}
    kept = {key: value for key, value in body.items() if key not in {"id", "messageId"}}
    return {**frame, "body": kept, "ts": None, "messageId": None}
