"""The alarms of root agents: when they fire, what keeps them from it, and what they cost."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import ramet
from ramet.core.clock import Clock
from ramet.core.paths import AgentPath
from ramet.host.alarms import AT_ONCE, HUNG_SECONDS, PAGE
from ramet.host.schema import SCHEMA
from ramet.host.wakeups import DUE, NEXT, SET_LATER, TAKE_UP, WakeupIndex
from ramet.storage import Row
from ramet.testing import Harness, ManualClock
from tests.support.databases import open_database

DONE: list[str] = []
PLANS = [(DUE, (0, 1)), (NEXT, (0,)), (TAKE_UP, ()), (SET_LATER, (0,))]


class Sleeper(ramet.Agent[None]):
    """Notes that it was called; one with a name that begins with `stuck` never starts again."""

    async def on_start(self) -> None:
        if self.name.startswith("stuck") and self.list_rows():
            await asyncio.get_running_loop().create_future()

    def list_rows(self) -> list[Row]:
        return self.sql("SELECT id FROM cf_agents_schedules")

    async def plan(self, seconds: float) -> None:
        await self.schedule(seconds, self.ring, self.name)

    async def ring(self, name: str) -> None:
        DONE.append(name)


class Renamed(Sleeper):
    """A class that is not there in the next process."""


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def index_of(folder: Path, clock: Clock, on_due: Callable[[], object] = list) -> WakeupIndex:
    return WakeupIndex(open_database(folder / "h.sqlite", SCHEMA), clock, on_due=on_due)


def due_of(h: Harness) -> list[object]:
    database = h.host._database
    assert database is not None
    return [row["due_ms"] for row in database.query("SELECT due_ms FROM ramet_wakeups")]


@pytest.mark.behaviour("D6", "SC-031")
async def test_all_who_are_due_are_opened_however_many_they_are(tmp_path: Path) -> None:
    many = 2 * AT_ONCE + PAGE + 3
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        for number in range(many):
            await h.stub(Sleeper, f"a{number}").plan(60)
        await h.crash()
        await h.restart()
        assert len(h.host.instances) == 0
        await h.advance(61)
        assert sorted(DONE) == sorted(f"a{number}" for number in range(many))
        assert due_of(h) == []


@pytest.mark.behaviour("D6")
async def test_agents_that_hang_while_they_start_hold_nobody_else_up(tmp_path: Path) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        for number in range(AT_ONCE - 1):
            await h.stub(Sleeper, f"stuck{number}").plan(10)
        await h.stub(Sleeper, "later").plan(20)
        await h.stub(Sleeper, "latest").plan(30)
        await h.crash()
        await h.restart()
        await h.advance(21)
        assert DONE == ["later"]
        await h.advance(10)
        assert DONE == ["later", "latest"]


@pytest.mark.behaviour("D6")
async def test_however_many_hang_while_they_start_the_others_wait_a_minute_at_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        for number in range(2 * AT_ONCE):
            await h.stub(Sleeper, f"stuck{number}").plan(10)
        await h.stub(Sleeper, "later").plan(20)
        await h.crash()
        await h.restart()
        await h.advance(21)
        assert DONE == []
        await h.advance(2 * HUNG_SECONDS)
        assert DONE == ["later"]
    hung = [record.message for record in caplog.records if "not started yet" in record.message]
    assert len(hung) == 2 * AT_ONCE
    assert hung[0] == "Sleeper:stuck0 was woken 60 seconds ago and has not started yet"


@pytest.mark.behaviour("D6", "D14")
async def test_a_root_is_not_evicted_while_its_alarm_fires(tmp_path: Path) -> None:
    options = ramet.HostOptions(max_open_agents=1, idle_timeout=60)
    async with Harness(agents=[Sleeper], data_dir=tmp_path, options=options) as h:
        for name in ("a", "b", "c", "d"):
            await h.stub(Sleeper, name).plan(60)
        await h.crash()
        await h.restart()
        await h.advance(61)
        assert sorted(DONE) == ["a", "b", "c", "d"]
        await h.advance(5)
        assert len(h.host.instances) == 1


@pytest.mark.behaviour("D6", "D14")
async def test_a_root_that_was_evicted_between_two_alarms_wakes_for_the_second(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        await h.stub(Sleeper, "a").plan(60)
        await h.stub(Sleeper, "a").plan(120)
        await h.advance(61)
        await h.evict(Sleeper, "a")
        await h.advance(60)
        assert DONE == ["a", "a"]


@pytest.mark.behaviour("D6", "D11")
async def test_a_root_that_is_stopped_while_its_alarm_opens_it_is_tried_again(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        await h.stub(Sleeper, "stuck").plan(10)
        await h.evict(Sleeper, "stuck")
        await h.advance(11)
        assert DONE == []
        await h.evict(Sleeper, "stuck", force=True)
        assert due_of(h) == [h.clock.now_ms() + 30_000]


@pytest.mark.behaviour("D6", "D16")
async def test_the_alarm_of_a_class_that_is_missing_is_kept_for_a_process_that_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Harness(agents=[Sleeper, Renamed], data_dir=tmp_path) as h:
        await h.stub(Renamed, "a").plan(60)
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        h.clock.move(61)
        with caplog.at_level(logging.WARNING, "ramet.host"):
            await h.advance(3600)
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 1
        assert said[0].startswith("Renamed:a has an alarm, but cannot be opened here")
        assert len(due_of(h)) == 1
    async with Harness(agents=[Sleeper, Renamed], data_dir=tmp_path) as h:
        await h.advance(61)
        assert DONE == ["a"]


@pytest.mark.behaviour("D6")
async def test_a_deleted_root_is_not_brought_back_by_its_alarm(tmp_path: Path) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        agent = await h.agent(Sleeper, "a")
        await agent.plan(60)
        task = asyncio.get_running_loop().create_task(agent.destroy())
        await asyncio.wait({task})
        await h.advance(61)
        assert DONE == []
        assert due_of(h) == []
        assert not h.host.files.file_of(h.path(Sleeper, "a")).exists()


@pytest.mark.behaviour("D6")
async def test_starting_a_host_reads_only_who_is_due(tmp_path: Path) -> None:
    clock = ManualClock()
    index = index_of(tmp_path, clock)
    with index._database.transaction():
        for number in range(100_000):
            path = AgentPath.of(("Sleeper", f"a{number}"))
            index.set(path, clock.now_ms() + 1_000_000 + number)
    index.set(AgentPath.of(("Sleeper", "due")), clock.now_ms() - 1)
    began = index_of(tmp_path, clock)
    assert began.due(1000) == [AgentPath.of(("Sleeper", "due"))]
    for statement, values in PLANS:
        plan = began._database.query("EXPLAIN QUERY PLAN " + statement, *values)
        assert plan
        assert all("SCAN" not in row["detail"] for row in plan), statement


@pytest.mark.behaviour("D6")
def test_putting_off_a_moment_leaves_one_that_was_moved_meanwhile(tmp_path: Path) -> None:
    clock = ManualClock()
    index, path = index_of(tmp_path, clock), AgentPath.of(("Sleeper", "a"))
    with index._database.transaction():
        index._database.run(
            "INSERT INTO ramet_wakeups (root, due_ms) VALUES (?, ?)",
            '[["Sleeper","a"]]',
            clock.now_ms() + 5,
        )
    index.put_off(path, clock.now_ms() + 99)
    clock.move(0.005)
    assert index.is_due(path)
    index.put_off(path, clock.now_ms() + 99)
    assert not index.is_due(path)
    index.put_off(AgentPath.of(("Sleeper", "b")), clock.now_ms())
    assert index.due(9) == []
