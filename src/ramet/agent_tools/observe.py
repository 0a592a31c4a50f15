"""Watches the child of a run: its items go to the feed, its last word is how the run ended."""

from collections.abc import AsyncIterator, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.agent_tools.children import CHILD_PATIENCE, Child, in_time
from ramet.agent_tools.feed import Feed
from ramet.agent_tools.live_run import CancelPosted, LiveRun
from ramet.agent_tools.patience import Patience
from ramet.agent_tools.policy import (
    CHILD_GONE,
    WINDOW_OVER,
    Ending,
    ending_of,
    failure,
    interruption,
    silence,
)
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.agent_tools.tail_lines import TailLines
from ramet.errors import AgentNotRegistered, InstanceGone

ITEMS_AT_ONCE = 256
"""Items of a tail after which clients get a chance to be sent them."""
MOST_DEATHS = 3
"""How often in a row a child's instance may die before anything comes of it."""

Cut: TypeAlias = Literal["ended", "out-of-patience", "failed", "gone"]
"""How following a child came to an end: its tail closed, it took too long, raised, or its instance
died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Follows children for one parent."""

    ports: AgentToolPorts

    async def watch(
        self, live: LiveRun, first: Inspection | None, *, patience: Patience | None = None
    ) -> Ending:
        """Follow a child until its run has ended, or until nothing more comes of it (QK-001).

        A tail that closes early is taken up again as long as items came through it; one that was
        cut by the death of the child's instance is so too, a few times in a row (D14).

        Args:
            live: The run.
            first: What the child said when it was started, for when it says nothing later (AT-044).
            patience: The limits of a run that is followed again; None waits without end, and lets
                what the tail raises fail the run.

        Raises:
            CancelPosted: The run was cancelled.
            Exception: What the child raised while it was followed or asked.
        """
        deaths = 0
        while True:
            before = live.feed.activity
            with live.interruptible(0.0):
                cut = await self._follow(live, patience)
            try:
                async with self.ports.clock.timeout(CHILD_PATIENCE if patience else None):
                    ending = await self._asked(live, first)
            except TimeoutError:
                if patience is None:
                    raise
                return interruption("inspect-timeout")
            if ending is not None:
                return ending
            came = live.feed.activity > before
            deaths = 0 if came or cut != "gone" else deaths + 1
            if patience is not None and patience.spent() == "window-exceeded":
                return await self._torn_down(live)
            again = came or 0 < deaths <= MOST_DEATHS
            if cut in {"out-of-patience", "failed"} or not again:
                lost = silence(tailable=live.child.tailable)
                return interruption(lost, child_still_running=None if first is None else True)

    async def collect(self, child: Child, feed: Feed, *, in_seconds: bool = False) -> None:
        """Pass on what a child has stored and the feed has not seen; progress is not stored."""
        while True:
            before = feed.next_chunk
            async with in_time(self.ports.clock) if in_seconds else nullcontext():
                items = await child.chunks(feed.last_sequence)
            for item in items:
                if item.kind != "progress":
                    feed.take(item)
            if feed.next_chunk == before:
                return

    async def _asked(self, live: LiveRun, first: Inspection | None) -> Ending | None:
        """What the child says after its tail has ended; None while it is still at work (AT-074)."""
        if live.cancel_reason is not None:
            raise CancelPosted
        path = live.child.path.leaf
        if not self.ports.registry.has(path.class_name, path.name):
            return failure(CHILD_GONE)
        try:
            with live.interruptible(CHILD_PATIENCE):
                ending = ending_of(await live.child.inspect() or first)
                if ending is not None:
                    await self.collect_what_can_be(live)
        except InstanceGone:
            self.ports.fence.check()
            return interruption("inspect-failed")
        return ending

    async def collect_what_can_be(self, live: LiveRun) -> bool:
        """Collect, and say whether that worked: a run ends also without its chunks (AT-295)."""
        try:
            await self.collect(live.child, live.feed, in_seconds=True)
        except AgentNotRegistered:
            return False  # whoever asked for the child's end has said so already
        except Exception as error:  # noqa: BLE001 - whatever the child raised, the run has ended
            self.ports.fence.check()
            self.ports.errors.report(error)
            return False
        return True

    async def _torn_down(self, live: LiveRun) -> Ending:
        """End a child that may take no more time (AT-314, AT-317)."""
        stopped = True
        try:
            async with self.ports.clock.timeout(CHILD_PATIENCE):
                await live.child.cancel(WINDOW_OVER)
        except Exception as error:  # noqa: BLE001 - the run is over whatever the child raised
            self.ports.fence.check()
            self.ports.errors.report(error)
            stopped = False
        return interruption("window-exceeded", child_still_running=not stopped)

    async def _follow(self, live: LiveRun, patience: Patience | None) -> Cut:
        """Pass items on until the child's tail ends or is given up."""
        if not live.child.tailable:
            await self.collect(live.child, live.feed)
            return "ended"
        try:
            if patience is None:
                await self._tail(live, None)
                return "ended"
            return await self._tail_for_a_while(live, patience)
        except InstanceGone:
            self.ports.fence.check()
            return "gone"

    async def _tail_for_a_while(self, live: LiveRun, patience: Patience) -> Cut:
        """Follow a tail within limits; what it raises only ends this attempt (AT-310)."""
        patience.beat()
        try:
            with patience.limiting():
                await self._tail(live, patience)
        except InstanceGone:
            raise
        except Exception as error:  # noqa: BLE001 - the child is asked before its run is given up
            self.ports.fence.check()
            if patience.spent() is not None:
                return "out-of-patience"
            self.ports.errors.report(error)
            return "failed"
        return "ended"

    async def _tail(self, live: LiveRun, patience: Patience | None) -> None:
        async with live.child.tail(live.feed.last_sequence) as items:
            await self._forward(items, live, patience)

    async def _forward(
        self, items: AsyncIterator[object], live: LiveRun, patience: Patience | None
    ) -> None:
        """Pass on everything, and let others work in between when very much comes at once."""
        feed = live.feed
        lines = TailLines()
        taken, seen = 0, feed.activity
        async for item in items:
            if type(item) is StoredChunk:
                feed.take(item)
            else:
                _take(item, lines, live)
            if patience is not None and feed.activity != seen:
                seen = feed.activity
                patience.beat()
            taken += 1
            if taken % ITEMS_AT_ONCE == 0:
                await self.ports.clock.sleep(0)
        _take_all(lines.end(), live)


def _take(item: object, lines: TailLines, live: LiveRun) -> None:
    """Pass one item of a tail on: a chunk as it is, bytes line by line."""
    if isinstance(item, StoredChunk):
        live.feed.take(item)
    elif isinstance(item, bytes | bytearray | memoryview):
        _take_all(lines.feed(bytes(item)), live)
    else:
        raise live.child.wrong_item(item)


def _take_all(chunks: Iterable[StoredChunk], live: LiveRun) -> None:
    for chunk in chunks:
        live.feed.take(chunk)
