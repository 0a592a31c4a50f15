"""Notices when an answer stands still: a longer gap between chunks than allowed (CR-026)."""

from collections.abc import AsyncGenerator, AsyncIterator

from ramet.chat.turn import Chunk
from ramet.core.clock import Clock


class StreamStalled(Exception):
    """Nothing has come for too long; the message is what clients are shown without recovery."""


class _RaisedInside(Exception):
    """The producer itself raised a `TimeoutError`."""

    def __init__(self, error: TimeoutError) -> None:
        super().__init__()
        self.error = error


async def lively(
    given: AsyncIterator[Chunk], clock: Clock, *, most_seconds: float
) -> AsyncGenerator[Chunk, None]:
    """Give what a producer gives.

    Raises:
        StreamStalled: The next chunk took longer than allowed; the producer was cancelled.
    """
    while True:
        try:
            async with clock.timeout(most_seconds):
                chunk = await _next(given)
        except StopAsyncIteration:
            return
        except _RaisedInside as raised:
            raise raised.error from None
        except TimeoutError:
            raise StreamStalled(
                f"The answer has stood still for {most_seconds:g} seconds."
            ) from None
        yield chunk


async def _next(given: AsyncIterator[Chunk]) -> Chunk:
    try:
        return await anext(given)
    except TimeoutError as error:
        raise _RaisedInside(error) from None
