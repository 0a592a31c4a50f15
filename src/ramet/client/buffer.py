"""Keeps what a reader has not taken yet, up to a limit."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from ramet.errors import ReaderTooSlow

T = TypeVar("T")


class Buffer(Generic[T]):
    """Items in order, for one reader; a reader that stays too far behind loses them all."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._items: deque[tuple[T, int]] = deque()
        self._size = 0
        self._discards = False
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self.read = False
        """Whether anybody has begun to read."""

    def put(self, item: T, size: int) -> None:
        """Keep an item; `size` is about how many bytes it takes."""
        if self._discards or self._ended:
            return
        if self._size + size > self._limit and self._items:
            self._items.clear()
            self.end(
                ReaderTooSlow(
                    f"{self._what} was not read in time: more than {self._limit} bytes waited; "
                    "read faster, or raise ClientOptions.max_buffered_bytes"
                )
            )
            return
        self._items.append((item, size))
        self._size += size
        self._news.set()

    def discard(self) -> None:
        """Keep nothing: nobody is going to read."""
        self._discards = True
        self._items.clear()
        self._size = 0

    def end(self, error: Exception | None = None) -> None:
        """Say that nothing more comes; with an error the reader gets it after the last item."""
        if not self._ended:
            self._ended, self._error = True, error
        self._news.set()

    async def next(self) -> T:
        """The next item, as soon as there is one.

        Raises:
            StopAsyncIteration: There is none left.
        """
        self.read = True
        while not self._items:
            if self._ended:
                raise self._error or StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        item, size = self._items.popleft()
        self._size -= size
        return item
