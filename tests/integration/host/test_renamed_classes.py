"""Classes that have another name than before: what was planned under the former one comes true."""

import asyncio
from pathlib import Path

import pytest

import ramet
from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.testing import Harness

pytestmark = pytest.mark.behaviour("D16")

DONE: list[str] = []


class Planner(ramet.Agent[None]):
    async def plan(self) -> None:
        await self.schedule(40, self.note, f"{self.name} once")
        await self.schedule_every(60, self.note, f"{self.name} again")

    async def note(self, text: str) -> None:
        DONE.append(text)

    async def texts(self) -> list[object]:
        return [found.payload for found in await self.list_schedules()]

    async def dig(self) -> None:
        await self.start_fiber("dig", self.digging)

    async def digging(self, fiber: FiberContext) -> None:
        await asyncio.get_running_loop().create_future()

    async def on_fiber_recovered(self, fiber: InterruptedFiber) -> None:
        DONE.append(f"{self.name} recovered {fiber.name}")


class OldKid(Planner):
    pass


class OldTop(Planner):
    kid: type[Planner] = OldKid

    async def plan_all(self) -> None:
        await self.plan()
        below = await self.sub_agent(self.kid, "kid")
        await below.plan()

    async def dig_below(self) -> None:
        below = await self.sub_agent(self.kid, "kid")
        await below.dig()

    async def below(self) -> list[object]:
        below = await self.sub_agent(self.kid, "kid")
        return [len(self.list_sub_agents()), *await below.texts()]


class NewKid(Planner):
    options = ramet.AgentOptions(former_names=("OldKid",))


class NewTop(OldTop):
    options = ramet.AgentOptions(former_names=("OldTop",))
    kid: type[Planner] = NewKid


def before(tmp_path: Path) -> Harness:
    return Harness(agents=[OldTop], sub_agents=[OldKid], data_dir=tmp_path)


def after(tmp_path: Path) -> Harness:
    return Harness(agents=[NewTop], sub_agents=[NewKid], data_dir=tmp_path)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


async def test_what_was_planned_comes_true_though_nobody_opens_the_agents(tmp_path: Path) -> None:
    async with before(tmp_path) as h:
        await h.stub(OldTop, "top").plan_all()
        await h.crash()
    async with after(tmp_path) as h:
        await h.advance(61)
        assert sorted(DONE) == ["kid again", "kid once", "top again", "top once"]
        await h.advance(61)
        assert sorted(DONE[4:]) == ["kid again", "top again"]


async def test_a_sub_agent_is_found_with_its_schedules(tmp_path: Path) -> None:
    async with before(tmp_path) as h:
        await h.stub(OldTop, "top").plan_all()
        await h.crash()
    async with after(tmp_path) as h:
        assert await h.stub(NewTop, "top").below() == [1, "kid once", "kid again"]


async def test_a_sub_agents_fiber_is_recovered(tmp_path: Path) -> None:
    async with before(tmp_path) as h:
        await h.stub(OldTop, "top").dig_below()
        await h.crash()
    async with after(tmp_path) as h:
        await h.advance(61)
        assert DONE == ["kid recovered dig"]
        leases = h.rows(NewTop, "top", "SELECT run_id FROM cf_agents_facet_runs")
        assert leases == []


async def test_a_schedule_whose_owners_class_is_not_registered_waits_for_a_process_that_has_it(
    tmp_path: Path,
) -> None:
    async with before(tmp_path) as h:
        await h.stub(OldTop, "top").plan_all()
        await h.crash()
    async with Harness(agents=[OldTop], data_dir=tmp_path) as h:
        await h.advance(600)
        assert "kid once" not in DONE
    async with before(tmp_path) as h:
        await h.advance(1200)
        assert DONE.count("kid once") == 1


async def test_a_renamed_agent_that_is_deleted_is_gone(tmp_path: Path) -> None:
    async with before(tmp_path) as h:
        await h.stub(OldTop, "top").plan_all()
    async with after(tmp_path) as h:
        agent = await h.agent(NewTop, "top")
        await agent.delete_sub_agent(NewKid, "kid")
        assert await h.stub(NewTop, "top").below() == [1]
        await agent.destroy()
        await h.settle()
        assert await h.stub(NewTop, "top").texts() == []
