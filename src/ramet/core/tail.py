"""A stream inside the process: one side pushes, the other iterates; neither waits for the other."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Tail(AsyncIterator[T], Generic[T]):
    """An async iterator over what is pushed, until it is ended; for one consumer.

    `on_detach` is called once when the consumer closes it (`aclose`) or the producer ends it.
    """

    def __init__(self, on_detach: Callable[[], object] | None = None) -> None:
        self._items: deque[T] = deque()
        self._ended = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._on_detach = on_detach

    @property
    def ended(self) -> bool:
        """Whether nothing more can be pushed."""
        return self._ended

    def push(self, item: T) -> None:
        """Give the consumer one more item; nothing happens after the end."""
        if not self._ended:
            self._items.append(item)
            self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """End the stream: the consumer gets what was pushed, then `error` or the normal end."""
        if self._ended:
            return
        self._ended = True
        self._error = error
        self._wake()
        self._detach()

    def take_now(self) -> list[T]:
        """Everything that was pushed and not yet taken."""
        items = list(self._items)
        self._items.clear()
        return items

    async def __anext__(self) -> T:
        while not self._items:
            if self._ended:
                error, self._error = self._error, None
                raise error or StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._items.popleft()

    async def aclose(self) -> None:
        """Let go of the stream; what comes after is dropped."""
        self._items.clear()
        self._ended = True
        self._wake()
        self._detach()

    def _detach(self) -> None:
        on_detach, self._on_detach = self._on_detach, None
        if on_detach is not None:
            on_detach()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
