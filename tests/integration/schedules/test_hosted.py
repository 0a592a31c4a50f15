"""Schedules and queues of hosted agents: eviction, deletion, destruction, connections, retries."""

import asyncio
import logging
from pathlib import Path

import pytest

import ramet
from ramet.core.current import current
from ramet.core.options import AgentOptions, HostOptions, RetryOptions
from ramet.errors import InstanceGone
from ramet.observability import Event, subscribe
from ramet.schedules.records import Schedule
from ramet.testing import Harness
from ramet.testing.manual_clock import START_MS

IDLE = 60.0


class Notes(ramet.Agent[None]):
    options = AgentOptions(retry=RetryOptions(max_attempts=2))

    def on_start(self) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        self.note("started")

    def note(self, text: object) -> None:
        self.sql("INSERT INTO notes VALUES (?)", str(text))

    def notes(self) -> list[str]:
        return [row["text"] for row in self.sql("SELECT text FROM notes ORDER BY rowid")]

    async def remind(self, text: str, schedule: Schedule) -> None:
        self.note(f"{text} in {self.name}")

    async def later(self, text: str) -> str:
        return (await self.schedule(90, self.remind, text)).id

    async def cancel(self, id: str) -> bool:
        return await self.cancel_schedule(id)

    async def fail(self) -> None:
        self.note("fail")
        raise ValueError("no tea")

    async def end(self) -> None:
        await self.destroy()

    async def wait(self) -> None:
        self.note("waiting")
        await asyncio.get_running_loop().create_future()

    @ramet.rpc
    async def queue_whose(self) -> None:
        await self.queue(self.whose)

    async def whose(self) -> None:
        found = current()
        self.note(found.connection.id if found and found.connection else None)


class Below(Notes):
    async def deeper(self, name: str) -> str:
        below = await self.sub_agent(Below, name)
        return await below.later(name)


def harness(tmp_path: Path, idle: float = IDLE) -> Harness:
    return Harness(
        agents=[Notes],
        sub_agents=[Below],
        data_dir=tmp_path,
        options=HostOptions(idle_timeout=idle),
    )


@pytest.mark.behaviour("SC-015", "SC-033", "D14")
async def test_an_evicted_agent_is_opened_for_what_is_due_and_started_before(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        await agent.later("tea")
        await h.evict(Notes, "a")
        assert h.host.instances.live(h.path(Notes, "a")) is None
        await h.advance(90)
        assert [row["text"] for row in h.rows(Notes, "a", "SELECT text FROM notes")] == [
            "started",
            "started",
            "tea in a",
        ]


@pytest.mark.behaviour("SC-044", "SC-040")
async def test_an_evicted_tree_is_opened_hop_by_hop(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        below = await agent.sub_agent(Below, "b")
        await below.deeper("c")
        await h.crash()
        await h.restart()
        await h.advance(91)
        sub = [(Below, "b"), (Below, "c")]
        rows = h.rows(Notes, "a", "SELECT text FROM notes", sub=sub)
        assert [row["text"] for row in rows] == ["started", "started", "c in c"]


@pytest.mark.behaviour("SC-041", "SC-045", "SC-048")
async def test_deleting_a_sub_agent_cancels_what_it_and_those_below_it_had_scheduled(
    tmp_path: Path,
) -> None:
    cancelled: list[tuple[str, object]] = []

    def listen(event: Event) -> None:
        if event.type == "schedule:cancel":
            cancelled.append((event.name, event.payload["id"]))

    unsubscribe = subscribe("schedule", listen)
    try:
        async with harness(tmp_path) as h:
            agent = await h.agent(Notes, "a")
            below = await agent.sub_agent(Below, "b")
            ids = {await below.later("b"), await below.deeper("c")}
            assert not await agent.cancel(next(iter(ids)))
            await agent.delete_sub_agent(Below, "b")
            assert cancelled == [("a", id) for _, id in cancelled]
            assert {id for _, id in cancelled} == ids
            await h.advance(50)
            assert agent.notes() == ["started"]
    finally:
        unsubscribe()


@pytest.mark.behaviour("SC-032")
@pytest.mark.parametrize("below", [[], [(Below, "b")]])
async def test_a_callback_may_destroy_its_agent(
    tmp_path: Path, below: list[tuple[type, str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with harness(tmp_path) as h:
        await (await h.agent(Notes, "kept")).later("tea")
        await (await h.agent(Notes, "a")).sub_agent(Below, "b")
        live = await h.agent(Notes, "a", below)
        await live.schedule(5, live.end)
        await live.schedule(80, live.remind, "never")
        await h.advance(300)
        assert "tea in kept" in (await h.agent(Notes, "kept")).notes()
        assert h.rows(Notes, "a", "SELECT * FROM notes", sub=below) == []
        assert h.rows(Notes, "a", "SELECT * FROM cf_agents_schedules") == []
        assert caplog.messages == []


@pytest.mark.behaviour("SC-032")
async def test_a_destroyed_root_is_not_opened_again_for_what_it_had_scheduled(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        await agent.later("tea")
        with pytest.raises(InstanceGone, match="it was deleted"):
            await h.stub(Notes, "a").end()
        await h.advance(300)
        assert h.host.instances.live(h.path(Notes, "a")) is None
        assert h.rows(Notes, "a", "SELECT * FROM notes") == []


@pytest.mark.behaviour("D14")
async def test_an_agent_stays_while_a_callback_runs_and_runs_it_again_when_forced_out(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        await agent.schedule(5, agent.wait)
        await h.advance(5 * IDLE)
        assert h.host.instances.live(h.path(Notes, "a")) is not None
        assert agent.notes() == ["started", "waiting"]
        await h.evict(Notes, "a", force=True)
        await h.advance(60)
        assert (await h.agent(Notes, "a")).notes() == ["started", "waiting", "started", "waiting"]


@pytest.mark.behaviour("D14", "QU-007")
async def test_an_agent_stays_while_its_queue_is_worked_off(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        await agent.queue(agent.wait)
        await h.advance(5 * IDLE)
        assert agent.notes() == ["started", "waiting"]
        await h.evict(Notes, "a", force=True)
        await h.advance(60)
        assert (await h.agent(Notes, "a")).notes() == ["started", "waiting", "started", "waiting"]


@pytest.mark.behaviour("QU-004")
async def test_a_queued_call_knows_the_client_for_which_it_was_queued(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Notes, "a", query={"_pk": "me"})
        await client.send({"type": "rpc", "id": "1", "method": "queue_whose", "args": []})
        agent = await h.agent(Notes, "a")
        assert agent.notes() == ["started", "me"]


@pytest.mark.behaviour("SC-023", "RT-001")
async def test_what_fails_goes_to_on_error_after_the_retries_of_the_class(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        await agent.schedule(5, agent.fail)
        await h.advance(10)
        assert agent.notes() == ["started", "fail", "fail"]
        assert "no tea" in caplog.text
        seen: list[int] = []

        async def flaky(attempt: int) -> str:
            seen.append(attempt)
            raise OSError("down")

        task = asyncio.get_running_loop().create_task(agent.retry(flaky))
        await h.advance(10)
        assert isinstance(task.exception(), OSError)
        assert seen == [1, 2]


async def test_an_interval_goes_on_over_evictions(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Notes, "a")
        made = await agent.schedule_every(600, agent.remind, "tick")
        assert made.time == START_MS // 1000 + 600
        await h.advance(2_000)
        assert h.host.instances.live(h.path(Notes, "a")) is None
        rows = h.rows(Notes, "a", "SELECT text FROM notes WHERE text LIKE 'tick%'")
        assert len(rows) == 3
