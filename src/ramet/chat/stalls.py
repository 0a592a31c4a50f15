"""Notices when an answer stands still: a longer gap between chunks than allowed (CR-026)."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import Final

from ramet.chat.turn import Chunk
from ramet.core.clock import Clock
from ramet.core.json import JsonObject
from ramet.protocol import chunks

_ENDS: Final = frozenset(
    {
        chunks.TOOL_OUTPUT_AVAILABLE,
        chunks.TOOL_OUTPUT_ERROR,
        chunks.TOOL_OUTPUT_DENIED,
        chunks.TOOL_INPUT_ERROR,
    }
)


class StreamStalled(Exception):
    """Nothing has come for too long; the message is what clients are shown without recovery."""


class _RaisedInside(Exception):
    """The producer itself raised a `TimeoutError`."""

    def __init__(self, error: TimeoutError) -> None:
        super().__init__()
        self.error = error


class RunningTools:
    """The tool calls of an answer that run now, by the chunks that tell of them.

    A call that the model's provider executes is the model's own affair.
    """

    def __init__(self, before: Iterable[JsonObject] = ()) -> None:
        """Begin with the calls that are open in what there is of the answer."""
        self._calls: set[object] = set()
        for chunk in before:
            self.note(chunk)

    def any(self) -> bool:
        """Whether a tool runs."""
        return bool(self._calls)

    def note(self, chunk: JsonObject) -> None:
        """Take note of the next chunk."""
        kind = chunk["type"]
        if kind == chunks.TOOL_INPUT_AVAILABLE and not chunk.get("providerExecuted"):
            self._calls.add(chunk.get("toolCallId"))
        elif kind in _ENDS and not chunk.get("preliminary"):
            self._calls.discard(chunk.get("toolCallId"))


async def lively(
    given: AsyncIterator[Chunk],
    clock: Clock,
    *,
    most_seconds: float,
    excused: Callable[[], bool],
) -> AsyncGenerator[Chunk, None]:
    """Give what a producer gives; how long the next chunk takes does not matter while excused.

    Raises:
        StreamStalled: The next chunk took longer than allowed; the producer was cancelled.
    """
    while True:
        try:
            async with clock.timeout(None if excused() else most_seconds):
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
