"""What waits to be sent to one client: bounded, never waited for, refilled by replays as it drains.

Three ways in: `push` for what is live, `follow` for a replay that is pulled page by page only when
everything else has been sent, `push_after` for frames that must not overtake the replays. A client
that does not read is closed with 1013 and everything that waited is dropped: it comes back and is
replayed (D21).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Frame: TypeAlias = str | bytes

TRY_AGAIN_LATER = 1013
TOO_SLOW = "Too slow: reconnect to catch up"
PAGE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Close:
    """The end of a connection: nothing is sent after it."""

    code: int
    reason: str = ""


Outgoing: TypeAlias = Frame | Close


class FrameSource(Protocol):
    """A replay: gives stored frames from where it stands and notices when it has caught up."""

    def next_page(self) -> Sequence[Frame] | None:
        """The next frames, some tens of KiB at most; empty once there is nothing more to replay.

        None while they are being fetched: the source calls `Outbox.resume` when they are there.

        Called only while nothing else waits. The call that returns nothing must leave its
        connection in the state where live frames are pushed again, in the same step.
        """
        ...


class Outbox:
    """The frames on their way to one client.

    `on_overflow` is called when the client turned out too slow: its writer may be stuck in a send
    that will never end, and so would never take the `Close`.
    """

    def __init__(
        self, *, limit_bytes: int, on_overflow: Callable[[], object] | None = None
    ) -> None:
        self._limit = limit_bytes
        self._on_overflow = on_overflow
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._sources: deque[FrameSource] = deque()
        self._held: deque[Frame] = deque()
        self._close: Close | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._draining: list[asyncio.Future[None]] = []

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._close is not None

    @property
    def waiting_bytes(self) -> int:
        """The size of what waits, replays not counted: they wait on disk."""
        return self._bytes

    def push(self, frame: Frame) -> None:
        """Send a live frame as soon as the client takes it; overtakes replays."""
        if self._admit(frame):
            self._frames.append(frame)
            self._wake()

    def push_after(self, frame: Frame) -> None:
        """Send a frame after the replays that are under way."""
        if not self._sources and not self._held:
            self.push(frame)
        elif self._admit(frame):
            self._held.append(frame)

    def follow(self, source: FrameSource) -> None:
        """Send what a replay gives, in pages, whenever nothing else waits."""
        if self._close is None:
            self._sources.append(source)
            self._wake()

    def resume(self) -> None:
        """Ask a replay again that had nothing to give yet."""
        self._wake()

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection after what waits already; only the first call counts."""
        if self._close is None:
            self._close = Close(code, reason)
            self._sources.clear()
            self._wake()
            self._tell_drained()

    def drop(self) -> None:
        """Forget everything: the client is gone."""
        self._close = self._close or Close(1006)
        self._clear()
        self._wake()
        self._tell_drained()

    async def drained(self) -> None:
        """Wait until what waits is below half of what may wait, or the connection is closed."""
        while self._close is None and self._bytes * 2 > self._limit:
            below: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._draining.append(below)
            await below

    async def take(self) -> Sequence[Outgoing]:
        """Wait for the next frames to send, in order; a `Close` is always the last.

        For the one writer of the connection: it sends what it got before it takes again.
        """
        while True:
            batch = self.take_now()
            if batch:
                return batch
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def take_now(self) -> Sequence[Outgoing]:
        """What can be sent at once; empty when there is nothing."""
        if self._frames:
            return self._page()
        if self._close is not None:
            return (self._close,)
        while self._sources:
            page = self._sources[0].next_page()
            if self._frames or self._close is not None:
                return [*(page or ()), *self.take_now()]
            if page is None or page:
                return page or ()
            self._sources.popleft()
            if not self._sources:
                self._frames, self._held = self._held, deque()
                return self._page() if self._frames else ()
        return ()

    def _page(self) -> Sequence[Outgoing]:
        page: list[Outgoing] = []
        size = 0
        while self._frames and size < PAGE_BYTES:
            frame = self._frames.popleft()
            size += frame_bytes(frame)
            page.append(frame)
        self._bytes -= size
        self._tell_drained()
        return page

    def _admit(self, frame: Frame) -> bool:
        if self._close is not None:
            return False
        size = frame_bytes(frame)
        if self._bytes and self._bytes + size > self._limit:
            self._clear()
            self.close(TRY_AGAIN_LATER, TOO_SLOW)
            if self._on_overflow is not None:
                self._on_overflow()
            return False
        self._bytes += size
        return True

    def _clear(self) -> None:
        self._frames.clear()
        self._held.clear()
        self._sources.clear()
        self._bytes = 0

    def _tell_drained(self) -> None:
        waiting, self._draining = self._draining, []
        for below in waiting:
            if not below.done():
                below.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def frame_bytes(frame: Frame) -> int:
    """The size of a frame on the wire."""
    if isinstance(frame, bytes) or frame.isascii():
        return len(frame)
    return len(frame.encode())
