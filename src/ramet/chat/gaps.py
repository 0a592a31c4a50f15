"""The gaps between turns: what is done there keeps the next turn waiting (AT-268)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from ramet.chat.live_turn import LiveTurn
from ramet.chat.turn_queue import TurnQueue
from ramet.core.clock import Clock, Timer
from ramet.core.fence import Fence

LOOK_AGAIN: Final = 30.0
"""Seconds after which it is looked again whether lost turns have gone on, at the latest."""


class _Gap:
    """A place between two turns, which one piece of code holds at a time, and not for ever."""

    def __init__(
        self,
        queue: TurnQueue[LiveTurn],
        fence: Fence,
        *,
        limit: Callable[[Callable[[], object]], Timer],
        overdue: Callable[[], object],
    ) -> None:
        self._queue = queue
        self._fence = fence
        self._limit = limit
        self._overdue = overdue
        self._timer: Timer | None = None
        self.held = False

    async def enter(self) -> None:
        """Wait until no turn runs; none begins before `leave`."""
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def enter() -> None:
            self.held = True
            if entered.done():
                self.leave()
            else:
                entered.set_result(None)

        self._queue.between(enter)
        try:
            await entered
        except asyncio.CancelledError:
            self.leave()
            raise
        self._timer = self._limit(self._give_back)

    def leave(self) -> None:
        """Let turns begin again; none does when the instance is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.held:
            self.held = False
            if not self._fence.down:
                self._queue.gap_over()

    def _give_back(self) -> None:
        """Let turns begin while the code goes on: it may wait for something that needs one."""
        self.leave()
        self._overdue()


_current: ContextVar[_Gap | None] = ContextVar("ramet_gap", default=None)


class Gaps:
    """The gaps of one chat."""

    def __init__(
        self,
        queue: TurnQueue[LiveTurn],
        *,
        clock: Clock,
        fence: Fence,
        unsettled: Callable[[], bool],
    ) -> None:
        """Begin.

        Args:
            queue: The turns.
            clock: For looking again.
            fence: The instance's.
            unsettled: Whether an answer is still to go on that nothing may come between.
        """
        self._queue = queue
        self._clock = clock
        self._fence = fence
        self._unsettled = unsettled
        self._waiters: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def between_turns(
        self, *, at_most: float, overdue: Callable[[], object]
    ) -> AsyncGenerator[None]:
        """Keep turns from running while the block runs, once all answers that were cut have ended.

        Inside the block code may wait for a turn of the same chat: it steps out for that. What
        takes longer than `at_most` seconds goes on beside the turns, and `overdue` is called.
        """
        gap = _Gap(
            self._queue,
            self._fence,
            limit=lambda give_back: self._clock.call_later(at_most, give_back),
            overdue=overdue,
        )
        await gap.enter()
        while self._unsettled():
            gap.leave()
            await self._next_end()
            await gap.enter()
        token = _current.set(gap)
        try:
            yield
        finally:
            _current.reset(token)
            gap.leave()

    def turn_over(self) -> None:
        """Look again at what waits: a turn has ended, or will not go on."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def until_settled(self, unsettled: Callable[[], bool]) -> None:
        """Wait for ends of turns until nothing is unsettled; turns run meanwhile."""
        while unsettled():
            async with stepped_out():
                await self._next_end()

    async def _next_end(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with self._clock.timeout(LOOK_AGAIN):
                await waiter
        except TimeoutError:
            return


@asynccontextmanager
async def stepped_out() -> AsyncGenerator[None]:
    """Let turns run while the block waits for one, if the running code holds a gap."""
    gap = _current.get()
    if gap is None or not gap.held:
        yield
        return
    gap.leave()
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException:
        await gap.enter()
        raise
    await gap.enter()
