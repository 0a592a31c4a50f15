"""Reads what another library streams: async or not, awaited first or not, and closed in the end."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Collection, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias, TypeVar

from ramet.core.threads import items_in_thread

T = TypeVar("T")

Source: TypeAlias = AsyncIterable[T] | Iterable[T] | Awaitable[AsyncIterable[T] | Iterable[T]]
"""A stream of another library, or the call that opens it; what is not async runs in a thread."""


async def items_of(source: Source[T]) -> AsyncGenerator[T, None]:
    """Give the items of a stream, and close it when they are not wanted any more."""
    opened = await source if isinstance(source, Awaitable) else source
    if isinstance(opened, AsyncIterable):
        async with closed_after(opened):
            async for item in opened:
                yield item
    elif isinstance(opened, Collection):
        for item in opened:
            yield item
    else:
        async with aclosing(items_in_thread(opened)) as given:
            async for item in given:
                yield item


@asynccontextmanager
async def closed_after(stream: object) -> AsyncGenerator[None, None]:
    """Close a stream after the block, by whatever name its library closes it."""
    try:
        yield
    finally:
        for name in ("aclose", "close"):
            close = getattr(stream, name, None)
            if callable(close):
                closed: object = close()
                if isinstance(closed, Awaitable):
                    await closed
                break
