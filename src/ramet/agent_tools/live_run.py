"""One run under way in this instance: who waits for it, and how it is cancelled (D12)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ramet.agent_tools.children import Child
from ramet.agent_tools.feed import Feed
from ramet.agent_tools.outputs import OutputType
from ramet.agent_tools.policy import CANCELLED
from ramet.agent_tools.run_store import StoredRun
from ramet.core.clock import Clock, Timer
from ramet.core.fence import Fence
from ramet.core.signals import AbortSignal
from ramet.protocol.run_events import ABSENT


class CancelPosted(Exception):
    """The run was cancelled while its task was in an interruptible block."""


class LiveRun:
    """What the task of a run and its callers share.

    Each caller has a waiter of its own. A cancel is posted and never waited for: the run's own task
    seals the row.
    """

    def __init__(self, child: Child, feed: Feed, *, clock: Clock, fence: Fence) -> None:
        self.child = child
        self.feed = feed
        self.wanted: OutputType | None = None
        """The type that the first typed caller asked for."""
        self.input: object = ABSENT
        """What the child is to be asked, where a caller has said it; it is not stored (AT-028)."""
        self.child_started = False
        self.early_cancel: str | None = None
        """The reason of a cancel for the child that came before the child was started."""
        self.sealed = asyncio.Event()
        """Set when the row has its terminal; hooks and callers may still follow."""
        self._clock = clock
        self._fence = fence
        self._reason: str | None = None
        self._waiters: set[asyncio.Future[StoredRun]] = set()
        self._task: asyncio.Task[object] | None = None
        self._patience: float | None = None
        self._timer: Timer | None = None
        self._interrupted = False

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.feed.run.run_id

    @property
    def cancel_reason(self) -> str | None:
        """Why the run was cancelled; None when it was not."""
        return self._reason

    def cancel(self, reason: str) -> None:
        """Post a cancel; only the first counts, and none after the end of the run."""
        if self._reason is not None or self.sealed.is_set():
            return
        self._reason = reason
        if self._patience is not None:
            self._interrupt_soon(self._patience)

    @contextmanager
    def interruptible(self, patience: float) -> Iterator[None]:
        """Let a posted cancel break the block off after `patience` seconds.

        Raises:
            CancelPosted: A cancel broke the block off.
        """
        task = asyncio.current_task()
        if task is None or (self._reason is not None and patience <= 0):
            raise CancelPosted
        self._patience, self._task = patience, task
        if self._reason is not None:
            self._interrupt_soon(patience)
        try:
            yield
        except asyncio.CancelledError:
            if self._fence.down or not self._interrupted:
                raise
            raise CancelPosted from None
        finally:
            self._end_block(task)

    async def outcome(self, signal: AbortSignal | None) -> StoredRun:
        """Wait until the run has ended, for one caller.

        Cancelling this wait, or aborting `signal`, posts a cancel of the run; a caller whose
        instance is dying cancels nothing (D11).
        """
        waiter: asyncio.Future[StoredRun] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        forget = self._listen(signal)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not self._fence.down:
                self.cancel(CANCELLED)
            raise
        finally:
            forget()
            self._waiters.discard(waiter)

    def settle(self, run: StoredRun) -> None:
        """Give every caller the run as it ended."""
        for waiter in self._open_waiters():
            waiter.set_result(run)

    def fail(self, error: BaseException) -> bool:
        """Raise in every caller; False when there is none to tell."""
        waiters = self._open_waiters()
        for waiter in waiters:
            waiter.set_exception(error)
        return bool(waiters)

    def _listen(self, signal: AbortSignal | None) -> Callable[[], None]:
        if signal is None:
            return _nothing
        return signal.add_listener(lambda _: self.cancel(signal.reason_text()))

    def _open_waiters(self) -> list[asyncio.Future[StoredRun]]:
        return [waiter for waiter in self._waiters if not waiter.done()]

    def _end_block(self, task: asyncio.Task[object]) -> None:
        self._patience = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._interrupted:
            self._interrupted = False
            task.uncancel()

    def _interrupt_soon(self, patience: float) -> None:
        if patience > 0:
            self._timer = self._clock.call_later(patience, self._interrupt)
        else:
            self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None and self._patience is not None:
            self._interrupted = True
            self._task.cancel()


def _nothing() -> None:
    return None
