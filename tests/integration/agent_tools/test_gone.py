"""Whoever waits on an agent's object from outside hears of it when the agent goes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ramet.errors import InstanceGone
from ramet.testing import Harness
from tests.integration.agent_tools.children import HandChild, Parent

Waiting = Callable[[Parent], Awaitable[object]]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Parent], sub_agents=[HandChild], data_dir=tmp_path) as harness:
        yield harness
    HandChild.stalls_on.clear()
    HandChild.calls.clear()
    Parent.log.clear()


async def _let_go(parent: Parent) -> object:
    return await parent.run_agent_tool(HandChild, run_id="d", input="x", detached=True)


async def _joined(parent: Parent) -> object:
    await _let_go(parent)
    return await parent.run_agent_tool(HandChild, run_id="d")


async def _let_go_in_vain(parent: Parent) -> object:
    HandChild.stalls_on.add("start")
    return await _let_go(parent)


async def _cancelled(parent: Parent) -> object:
    await _let_go(parent)
    HandChild.stalls_on.add("cancel")
    await parent.cancel_agent_tool("d")
    return None


@pytest.mark.parametrize(
    "waiting",
    [
        lambda parent: parent.run_agent_tool(HandChild, run_id="r", input="x"),
        _joined,
        _let_go_in_vain,
        _cancelled,
    ],
    ids=["awaited", "joined", "let go", "cancelled"],
)
async def test_who_waits_for_a_run_of_an_agent_that_is_destroyed_is_told(
    harness: Harness, waiting: Waiting
) -> None:
    parent = await harness.agent(Parent, "p")
    caller = asyncio.ensure_future(waiting(parent))
    await harness.settle()
    assert not caller.done()
    await parent.destroy()
    await harness.settle()
    assert caller.done()
    with pytest.raises(InstanceGone, match="The instance of Parent:p is gone: it was deleted"):
        await caller


async def test_a_run_that_is_looked_at_when_its_parent_is_destroyed_tells_who_asked(
    harness: Harness,
) -> None:
    parent = await harness.agent(Parent, "p")
    first = asyncio.ensure_future(parent.run_agent_tool(HandChild, run_id="r", input="x"))
    await harness.settle()
    await harness.crash()
    await asyncio.gather(first, return_exceptions=True)
    await harness.restart()
    HandChild.stalls_on.add("inspect")
    parent = await harness.agent(Parent, "p")
    again = asyncio.ensure_future(parent.run_agent_tool(HandChild, run_id="r"))
    clearing = asyncio.ensure_future(parent.clear_agent_tool_runs())
    await harness.settle()
    assert not again.done()
    assert not clearing.done()
    await parent.destroy()
    await harness.settle()
    for caller in (again, clearing):
        assert caller.done()
        assert isinstance(caller.exception(), InstanceGone)
