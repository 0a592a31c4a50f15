"""Something that runs beside a test, until the test wants its outcome."""

import asyncio
from collections.abc import Awaitable
from typing import Generic, TypeVar

T = TypeVar("T")


class Started(Generic[T]):
    """What was started: it has to end within a few turns of the loop when it is asked for."""

    def __init__(self, work: Awaitable[T]) -> None:
        async def run() -> T:
            return await work

        self._task = asyncio.get_running_loop().create_task(run())

    @property
    def done(self) -> bool:
        return self._task.done()

    async def outcome(self) -> T:
        return await self._task

    async def cancel(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


def start(work: Awaitable[T]) -> Started[T]:
    """Run it beside the test."""
    return Started(work)
