"""Reads tails that come as bytes: lines of JSON, cut anywhere; what is no chunk is left out."""

from collections.abc import Iterator

from ramet.agent_tools.records import StoredChunk
from ramet.core.json import loads_object
from ramet.protocol.chunks import ChunkKind, kind_of_body


class TailLines:
    """Puts pieces of bytes together to lines, and lines to chunks (AT-102 … AT-104)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[StoredChunk]:
        """The chunks of the lines that this piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return _chunks(lines)

    def end(self) -> Iterator[StoredChunk]:
        """The chunk of a last line that nothing ended."""
        lines, self._rest = [self._rest], b""
        return _chunks(lines)


def _chunks(lines: list[bytes]) -> Iterator[StoredChunk]:
    for line in lines:
        chunk = _chunk(line)
        if chunk is not None:
            yield chunk


def _chunk(line: bytes) -> StoredChunk | None:
    fields = loads_object(line)
    if fields is None:
        return None
    sequence, body = fields.get("sequence"), fields.get("body")
    if not isinstance(body, str) or not isinstance(sequence, int) or isinstance(sequence, bool):
        return None
    return StoredChunk(sequence=sequence, body=body, kind=_kind(fields.get("kind"), body))


def _kind(named: object, body: str) -> ChunkKind:
    match named:
        case "chunk" | "progress" | "milestone":
            return named
        case _:
            return kind_of_body(body)
