"""Ends a block of a task early when a signal aborts, without being taken for the task's own end."""

import asyncio
from types import TracebackType
from typing import Self

from ramet.core.signals import AbortSignal


class Abortable:
    """`async with Abortable(signal):` cancels what the block waits for when the signal aborts.

    The block then ends quietly. A cancellation that comes from elsewhere passes through, even when
    both come at once: it means that the task itself has to go (D11).
    """

    def __init__(self, signal: AbortSignal) -> None:
        self._signal = signal
        self._inside = False
        self._requested = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._inside = True
        # Not at once: the abort may come from inside the block, which is not waiting then.
        self._remove = self._signal.add_listener(lambda _: self._loop.call_soon(self._cancel))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._inside = False
        self._remove()
        if not self._requested or self._task is None:
            return False
        others = self._task.uncancel()
        return kind is not None and issubclass(kind, asyncio.CancelledError) and not others

    def _cancel(self) -> None:
        if self._inside and self._task is not None:
            self._requested = True
            self._task.cancel()
