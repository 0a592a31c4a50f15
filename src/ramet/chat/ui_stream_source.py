"""The answer of another server that speaks the AI SDK's UI message stream, as chunks."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final

from ramet.chat.source_items import Source, items_of
from ramet.core.json import JsonObject, loads_object
from ramet.errors import UnknownModelResult
from ramet.protocol import chunks
from ramet.protocol.ui_message import UIChunk

_FIELD: Final = "data:"
_DONE: Final = "[DONE]"
_MOST_SHOWN: Final = 100
_ENDS: Final = frozenset({chunks.FINISH, chunks.ERROR, "abort"})


async def chunks_from_ui_message_stream(
    stream: Source[str | bytes],
) -> AsyncGenerator[UIChunk]:
    """The chunks of a UI message stream: server-sent events, `data: {"type": …}` one a line.

    ```python
    async def on_chat_message(self, turn):
        async with http.stream("POST", url, json=…) as response:
            async for chunk in ramet.chunks_from_ui_message_stream(response.aiter_bytes()):
                yield chunk
    ```

    The ids of messages are ramet's own. Closing it closes the stream.

    Args:
        stream: Bytes, cut anywhere; or texts, each of them whole lines.

    Raises:
        UnknownModelResult: A line is no chunk, or the stream has ended before its answer.
    """
    lines, begun, over = _Lines(), False, False
    async with aclosing(items_of(stream)) as given:
        async for piece in given:
            for chunk in lines.feed(piece):
                begun, over = True, over or chunk["type"] in _ENDS
                yield chunk
            if lines.done:
                break
    for chunk in lines.end():
        begun, over = True, over or chunk["type"] in _ENDS
        yield chunk
    if begun and not over and not lines.done:
        raise UnknownModelResult("The UI message stream has ended in the middle of an answer")


class _Lines:
    """Puts pieces together to lines, and takes the chunks out of them."""

    def __init__(self) -> None:
        self.done = False
        """Whether the stream has said that it is over."""
        self._rest = b""

    def feed(self, piece: str | bytes) -> Iterator[JsonObject]:
        """The chunks of the lines that a piece completes."""
        if isinstance(piece, str):
            yield from self._chunks(piece.split("\n"))
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        yield from self._chunks(line.decode(errors="replace") for line in lines)

    def end(self) -> Iterator[JsonObject]:
        """The chunk of a last line that nothing ended."""
        rest, self._rest = self._rest, b""
        yield from self._chunks([rest.decode(errors="replace")])

    def _chunks(self, lines: Iterator[str] | list[str]) -> Iterator[JsonObject]:
        for line in lines:
            if self.done:
                return
            if not line.startswith(_FIELD):
                continue
            text = line.removeprefix(_FIELD).strip()
            if text == _DONE:
                self.done = True
            elif text:
                yield _chunk(text)


def _chunk(text: str) -> JsonObject:
    chunk = loads_object(text)
    if chunk is None or not isinstance(chunk.get("type"), str):
        raise UnknownModelResult(f"The UI message stream has no chunk in {text[:_MOST_SHOWN]!r}")
    return chunk
