"""Hooks of interrupted fibers that take long while their agent opens (FB-010, FB-021)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.testing import Harness

NOTES: list[str] = []


class Miner(ramet.Agent[None]):
    """Digs for ever; its hook takes until it is let go."""

    gate: ClassVar[asyncio.Event] = asyncio.Event()
    raises: ClassVar[bool] = False

    def on_start(self) -> None:
        NOTES.append("start")

    async def dig(self) -> None:
        await self.start_fiber("dig", self.work, fiber_id="f")

    async def work(self, fiber: ramet.FiberContext) -> None:
        await asyncio.get_running_loop().create_future()

    async def on_fiber_recovered(self, fiber: ramet.InterruptedFiber) -> None:
        await self.gate.wait()
        NOTES.append("recovered")
        if self.raises:
            raise ValueError("no")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    """A miner that has died while it dug."""
    Miner.gate, Miner.raises = asyncio.Event(), False
    async with Harness(agents=[Miner], data_dir=tmp_path) as running:
        await running.stub(Miner, "a").dig()
        await running.crash()
        await running.restart()
        NOTES.clear()
        yield running


def opening(host: Harness) -> "asyncio.Task[Miner]":
    return asyncio.get_running_loop().create_task(host.agent(Miner, "a"))


def fibers(host: Harness) -> list[object]:
    return [row["status"] for row in host.rows(Miner, "a", "SELECT status FROM cf_agents_fibers")]


@pytest.mark.behaviour("FB-010")
async def test_an_agent_starts_after_the_hooks_of_its_fibers(host: Harness) -> None:
    task = opening(host)
    await host.advance(9)
    assert (task.done(), NOTES) == (False, [])
    Miner.gate.set()
    await host.settle()
    await task
    assert NOTES == ["recovered", "start"]


@pytest.mark.behaviour("FB-010", "D14")
async def test_a_hook_that_hangs_does_not_keep_its_agent_from_opening(host: Harness) -> None:
    task = opening(host)
    await host.advance(10)
    await task
    assert NOTES == ["start"]
    assert fibers(host) == ["interrupted"]
    with pytest.raises(ramet.RametError, match="wait for recovery"):
        await host.evict(Miner, "a")
    Miner.gate.set()
    await host.settle()
    assert NOTES == ["start", "recovered"]
    await host.evict(Miner, "a")


@pytest.mark.behaviour("FB-043")
async def test_a_hook_that_raises_late_ends_its_fiber_as_ever(host: Harness) -> None:
    Miner.raises = True
    task = opening(host)
    await host.advance(11)
    await task
    Miner.gate.set()
    await host.settle()
    assert fibers(host) == ["error"]
