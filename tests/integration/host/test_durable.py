"""Schedules, queue and fibers of hosted agents: due whether the agent is open or not."""

import asyncio
from pathlib import Path

import ramet
from ramet.core.options import HostOptions
from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.testing import Harness


class Later(ramet.Agent[None]):
    def __init__(self) -> None:
        self.recovered: list[InterruptedFiber] = []
        self.gate = asyncio.Event()

    def note(self, text: str) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        self.sql("INSERT INTO notes VALUES (?)", text)

    def notes(self) -> list[str]:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        return [row["text"] for row in self.sql("SELECT text FROM notes")]

    async def remind(self, text: str) -> None:
        self.note(text)

    async def remind_below(self, name: str, text: str) -> None:
        below = await self.sub_agent(Below, name)
        await below.plan(text)

    async def work(self, fiber: FiberContext) -> None:
        fiber.stash({"step": 1})
        await self.gate.wait()

    def on_fiber_recovered(self, fiber: InterruptedFiber) -> None:
        self.recovered.append(fiber)


class Below(Later):
    async def plan(self, text: str) -> None:
        await self.schedule(60, self.remind, text)

    async def told(self) -> list[str]:
        return self.notes()


def harness(tmp_path: Path, options: HostOptions | None = None) -> Harness:
    return Harness(agents=[Later], sub_agents=[Below], data_dir=tmp_path, options=options)


async def test_a_schedule_fires_for_an_agent_that_nobody_has_opened(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.schedule(60, agent.remind, "tea")
        await h.crash()
        await h.restart()
        assert h.host.instances.live(h.path(Later, "a")) is None
        await h.advance(59)
        assert h.host.instances.live(h.path(Later, "a")) is None
        await h.advance(2)
        assert h.rows(Later, "a", "SELECT text FROM notes") == [{"text": "tea"}]
        assert (await (await h.agent(Later, "a")).list_schedules()) == []


async def test_what_was_due_while_no_process_ran_is_done_when_one_runs(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.schedule(60, agent.remind, "tea")
        await h.crash()
        h.clock.move(3600)
        await h.restart()
        await h.advance(0)
        assert h.rows(Later, "a", "SELECT text FROM notes") == [{"text": "tea"}]


async def test_a_sub_agents_schedule_runs_in_the_sub_agent(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.remind_below("x", "tea")
        await h.crash()
        await h.restart()
        await h.advance(61)
        below = h.rows(Later, "a", "SELECT text FROM notes", sub=[(Below, "x")])
        assert below == [{"text": "tea"}]
        assert (await h.agent(Later, "a")).notes() == []


async def test_deleting_a_sub_agent_takes_its_schedules_along(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.remind_below("x", "tea")
        await agent.delete_sub_agent(Below, "x")
        assert h.rows(Later, "a", "SELECT * FROM cf_agents_schedules") == []


async def test_the_queue_goes_on_after_a_crash(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.queue(agent.remind, "one")
        await h.crash()
        await h.restart()
        await h.advance(60)
        assert h.rows(Later, "a", "SELECT text FROM notes") == [{"text": "one"}]


async def test_a_fiber_that_a_crash_cut_is_recovered_with_what_it_stashed(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        agent = await h.agent(Later, "a")
        await agent.start_fiber("job", agent.work, fiber_id="f1")
        await h.settle()
        await h.crash()
        await h.restart()
        recovered = (await h.agent(Later, "a")).recovered
        assert [(f.id, f.snapshot, f.status) for f in recovered] == [
            ("f1", {"step": 1}, "interrupted")
        ]


async def test_an_idle_agent_leaves_memory_and_a_busy_one_stays(tmp_path: Path) -> None:
    async with harness(tmp_path, HostOptions(idle_timeout=60)) as h:
        await h.agent(Later, "idle")
        busy = await h.agent(Later, "busy")
        await busy.start_fiber("job", busy.work)
        client = await h.connect(Later, "idle")
        await h.advance(130)
        assert h.host.instances.live(h.path(Later, "idle")) is None
        assert h.host.instances.live(h.path(Later, "busy")) is not None
        assert client.closed is None
        busy.gate.set()
        await h.advance(130)
        assert h.host.instances.live(h.path(Later, "busy")) is None


async def test_no_more_agents_stay_in_memory_than_may(tmp_path: Path) -> None:
    async with harness(tmp_path, HostOptions(max_open_agents=3)) as h:
        for i in range(6):
            await h.agent(Later, f"a{i}")
        live = [instance.path.leaf.name for instance in h.host.instances]
        assert live == ["a3", "a4", "a5"]
