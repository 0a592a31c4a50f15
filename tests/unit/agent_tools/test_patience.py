"""How long a child that is followed again is waited for, and what else may end the wait."""

import asyncio

import pytest

from ramet.agent_tools.patience import Patience
from ramet.testing.manual_clock import ManualClock


async def _waiting(clock: ManualClock) -> "asyncio.Task[None]":
    """A task that waits for ever within limits."""
    begun = asyncio.Event()

    async def wait() -> None:
        with Patience(clock, idle=10, window=0).limiting():
            begun.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.ensure_future(wait())
    await begun.wait()
    return task


async def test_a_wait_is_broken_off_when_its_limit_is_over() -> None:
    clock = ManualClock()
    task = await _waiting(clock)
    clock.move(10)
    with pytest.raises(TimeoutError):
        await task


@pytest.mark.parametrize("first", ["limit", "cancel"])
async def test_a_cancel_at_the_moment_of_the_limit_is_still_a_cancel(first: str) -> None:
    clock = ManualClock()
    task = await _waiting(clock)
    if first == "cancel":
        task.cancel()
    clock.move(10)
    if first == "limit":
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
