"""The chunks of each answer on disk: one row and one commit a chunk, read back in pages (D1)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.chat.turn import StoredOutcome
from ramet.core.clock import Clock
from ramet.core.failpoints import HELD_CHUNKS
from ramet.storage import Database, Row

StreamStatus: TypeAlias = Literal["streaming", "completed", "error"]

PAGE_CHUNKS = 512
PAGE_CHARACTERS = 64 * 1024
CHUNKS_OF_A_STREAM = 1 << 32
"""A stream's chunks have consecutive row ids, so that appending one writes one page: an index
beside the table would write a second."""
KEPT_MS = 600_000
"""How long the log of an ended turn is kept for clients that come back (RS-012)."""

CREATE_METADATA = """
CREATE TABLE IF NOT EXISTS cf_ai_chat_stream_metadata (
    id TEXT PRIMARY KEY NOT NULL,
    request_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    message_id TEXT NOT NULL,
    is_continuation INTEGER NOT NULL DEFAULT 0,
    turn_id TEXT NOT NULL,
    outcome TEXT,
    number INTEGER NOT NULL UNIQUE
)
"""
CREATE_REQUEST_INDEX = """
CREATE INDEX IF NOT EXISTS cf_ai_chat_stream_metadata_request
    ON cf_ai_chat_stream_metadata (request_id)
"""
CREATE_CHUNKS = """
CREATE TABLE IF NOT EXISTS cf_ai_chat_stream_chunks (
    id INTEGER PRIMARY KEY,
    stream_id TEXT NOT NULL,
    body TEXT NOT NULL,
    chunk_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL
)
"""
OPEN = """
INSERT INTO cf_ai_chat_stream_metadata (id, request_id, status, created_at, message_id,
    is_continuation, turn_id, number)
SELECT ?, ?, 'streaming', ?, ?, ?, ?, coalesce(max(number), 0) + 1
FROM cf_ai_chat_stream_metadata
"""
APPEND = """
INSERT INTO cf_ai_chat_stream_chunks (id, stream_id, body, chunk_index, created_at)
VALUES (?, ?, ?, ?, ?)
"""
CLOSE = """
UPDATE cf_ai_chat_stream_metadata SET status = ?, outcome = ?, completed_at = ? WHERE id = ?
"""
COPY = """
INSERT INTO cf_ai_chat_stream_chunks (id, stream_id, body, chunk_index, created_at)
SELECT ? + chunk_index, ?, body, chunk_index, created_at FROM cf_ai_chat_stream_chunks
WHERE id >= ? AND id < ?
"""
OF_TURN = """
SELECT * FROM cf_ai_chat_stream_metadata WHERE turn_id = ? ORDER BY rowid DESC LIMIT 1
"""
OF_ID = "SELECT * FROM cf_ai_chat_stream_metadata WHERE id = ?"
OF_REQUEST = """
SELECT * FROM cf_ai_chat_stream_metadata WHERE request_id = ? ORDER BY rowid DESC LIMIT 1
"""
FIRST_ID = "SELECT number << 32 AS first FROM cf_ai_chat_stream_metadata WHERE id = ?"
SIZES = """
SELECT chunk_index, length(body) AS size FROM cf_ai_chat_stream_chunks
WHERE id > ? AND id < ? ORDER BY id LIMIT ?
"""
CHUNKS = """
SELECT chunk_index, body FROM cf_ai_chat_stream_chunks WHERE id > ? AND id <= ? ORDER BY id
"""
ENDED = """
SELECT * FROM cf_ai_chat_stream_metadata WHERE status != 'streaming' AND completed_at < ?
"""
ALL = "SELECT * FROM cf_ai_chat_stream_metadata"
LAST_INDEX = """
SELECT max(chunk_index) AS last FROM cf_ai_chat_stream_chunks WHERE id >= ? AND id < ?
"""
DELETE_CHUNKS = "DELETE FROM cf_ai_chat_stream_chunks WHERE id >= ? AND id < ?"
DELETE_METADATA = "DELETE FROM cf_ai_chat_stream_metadata WHERE id = ?"


def create_stream_tables(database: Database) -> None:
    """Make the tables of streams and chunks."""
    database.run(CREATE_METADATA)
    database.run(CREATE_REQUEST_INDEX)
    database.run(CREATE_CHUNKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStream:
    """One answer's log, without its chunks."""

    stream_id: str
    request_id: str
    turn_id: str
    message_id: str
    status: StreamStatus = "streaming"
    outcome: StoredOutcome | None = None
    continuation: bool = False


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One stored chunk."""

    index: int
    body: str


@dataclass(frozen=True, slots=True)
class ChunkPage:
    """Some chunks of a stream, in order; `at_end` when nothing follows them so far."""

    chunks: Sequence[ChunkRow]
    at_end: bool


class StreamLog:
    """Writes and reads the chunks of answers."""

    def __init__(self, database: Database, clock: Clock, *, held: int = HELD_CHUNKS) -> None:
        self._database = database
        self._clock = clock
        self._held = held
        self._holding: list[tuple[str, ChunkRow]] = []
        self._first_ids: dict[str, int] = {}

    def open(self, stream: StoredStream) -> None:
        """Begin a log."""
        self._database.run(
            OPEN,
            stream.stream_id,
            stream.request_id,
            self._clock.now_ms(),
            stream.message_id,
            int(stream.continuation),
            stream.turn_id,
        )
        self._first_ids[stream.stream_id] = _first_id(self._database, stream.stream_id)

    def append(self, stream_id: str, index: int, body: str) -> None:
        """Commit one chunk; when this returns it outlives the process."""
        if self._held:
            self._hold(stream_id, ChunkRow(index, body))
        else:
            self._write(stream_id, index, body)

    def append_behind(self, stream_id: str, body: str) -> None:
        """Commit one chunk behind the last of a log whose writer is gone."""
        self._write(stream_id, self.next_index(stream_id), body)

    def next_index(self, stream_id: str) -> int:
        """The index of the chunk that is written next."""
        first = self._first_ids.setdefault(stream_id, _first_id(self._database, stream_id))
        row = self._database.one(LAST_INDEX, first, first + CHUNKS_OF_A_STREAM)
        last = None if row is None else row["last"]
        return 0 if last is None else int(last) + 1

    def close(self, stream_id: str, outcome: StoredOutcome) -> None:
        """Record that nothing more is written to a log."""
        self._write_held()
        status: StreamStatus = "error" if outcome == "error" else "completed"
        self._database.run(CLOSE, status, outcome, self._clock.now_ms(), stream_id)
        self._first_ids.pop(stream_id, None)

    def copy(self, stream_id: str, to: str) -> None:
        """Give an open log all chunks of another, under the same indexes."""
        self._write_held()
        first = _first_id(self._database, stream_id)
        last = first + CHUNKS_OF_A_STREAM
        self._database.run(COPY, self._first_ids[to], to, first, last)

    def get(self, stream_id: str) -> StoredStream | None:
        """One log; None when it is not kept."""
        row = self._database.one(OF_ID, stream_id)
        return None if row is None else _stream(row)

    def of_turn(self, turn_id: str) -> StoredStream | None:
        """The log of a turn; None when the turn has not begun."""
        row = self._database.one(OF_TURN, turn_id)
        return None if row is None else _stream(row)

    def of_request(self, request_id: str) -> StoredStream | None:
        """The newest log that was written for a request."""
        row = self._database.one(OF_REQUEST, request_id)
        return None if row is None else _stream(row)

    def all(self) -> list[StoredStream]:
        """Every log that is kept."""
        return [_stream(row) for row in self._database.query(ALL)]

    def page(self, stream_id: str, *, after: int, limit: int = PAGE_CHUNKS) -> ChunkPage:
        """Chunks with an index above `after`, about 64 KiB and `limit` of them at most."""
        page = read_page(self._database, stream_id, after=after, limit=limit)
        if not page.at_end or not self._holding:
            return page
        held = [row for of, row in self._holding if of == stream_id and row.index > after]
        return ChunkPage([*page.chunks, *held], at_end=True)

    def clear(self, *, keep: Iterable[str]) -> None:
        """Forget every log but those of the requests to keep."""
        kept = set(keep)
        self._forget(row for row in self._database.query(ALL) if row["request_id"] not in kept)

    def sweep(self, keep: Callable[[], Iterable[str]]) -> None:
        """Forget logs that ended long ago, but those of the requests to keep (RS-012, D3)."""
        ended = self._database.query(ENDED, self._clock.now_ms() - KEPT_MS)
        if ended:
            kept = set(keep())
            self._forget(row for row in ended if row["request_id"] not in kept)

    def _forget(self, rows: Iterable[Row]) -> None:
        with self._database.transaction():
            for row in rows:
                self._holding = [held for held in self._holding if held[0] != row["id"]]
                first = row["number"] << 32
                self._database.run(DELETE_CHUNKS, first, first + CHUNKS_OF_A_STREAM)
                self._database.run(DELETE_METADATA, row["id"])

    def _hold(self, stream_id: str, chunk: ChunkRow) -> None:
        """Break durability on purpose, so that a kill test can show that it would notice."""
        self._holding.append((stream_id, chunk))
        if len(self._holding) >= self._held:
            self._write_held()

    def _write_held(self) -> None:
        held, self._holding = self._holding, []
        with self._database.transaction():
            for stream_id, chunk in held:
                self._write(stream_id, chunk.index, chunk.body)

    def _write(self, stream_id: str, index: int, body: str) -> None:
        now, row_id = self._clock.now_ms(), self._first_ids[stream_id] + index
        self._database.run(APPEND, row_id, stream_id, body, index, now)


def read_page(
    database: Database, stream_id: str, *, after: int, limit: int = PAGE_CHUNKS
) -> ChunkPage:
    """Read a page of a log from any database that has one."""
    first = _first_id(database, stream_id)
    sizes = database.query(SIZES, first + after, first + CHUNKS_OF_A_STREAM, limit)
    last, characters, taken = after, 0, 0
    for row in sizes:
        if taken and characters + row["size"] > PAGE_CHARACTERS:
            break
        last, characters, taken = row["chunk_index"], characters + row["size"], taken + 1
    rows = database.query(CHUNKS, first + after, first + last) if taken else []
    chunks = [ChunkRow(row["chunk_index"], row["body"]) for row in rows]
    return ChunkPage(chunks, at_end=taken == len(sizes) and taken < limit)


def _first_id(database: Database, stream_id: str) -> int:
    """The row id of a stream's chunk 0; of one that is not there, where no chunks are."""
    row = database.one(FIRST_ID, stream_id)
    return 0 if row is None else int(row["first"])


def _stream(row: Row) -> StoredStream:
    return StoredStream(
        stream_id=row["id"],
        request_id=row["request_id"],
        turn_id=row["turn_id"],
        message_id=row["message_id"],
        status=row["status"],
        outcome=row["outcome"],
        continuation=bool(row["is_continuation"]),
    )
