"""The durable record of each turn: what it answers, how far it came and how it ended (D5, D7)."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ramet.chat.turn import StoredOutcome, TurnTrigger
from ramet.core.json import NotJson, dumps, texts_in
from ramet.storage import Database, Row

_log = logging.getLogger("ramet.chat")

TurnStatus: TypeAlias = Literal["accepted", "running", "recovering", "ended", "orphaned", "cleared"]
"""Where a turn stands.

`recovering`: its producer was lost, and another turn is to go on for it;
`orphaned`: its producer was lost with the process, and nobody was told the end yet (D4);
`cleared`: it has ended and its messages were cleared.
"""

CREATE = """
CREATE TABLE IF NOT EXISTS cf_chat_turns (
    turn_id TEXT PRIMARY KEY NOT NULL,
    recovery_root TEXT NOT NULL,
    request_ids TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT,
    error_text TEXT,
    message_ids TEXT NOT NULL,
    assistant_message_id TEXT NOT NULL,
    continuation INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER
)
"""
CREATE_STATUS_INDEX = """
CREATE INDEX IF NOT EXISTS cf_chat_turns_status ON cf_chat_turns (status)
"""
CREATE_REQUEST_INDEX = """
CREATE INDEX IF NOT EXISTS cf_chat_turns_request
    ON cf_chat_turns (json_extract(request_ids, '$[0]'))
"""
INSERT = """
INSERT INTO cf_chat_turns (turn_id, recovery_root, request_ids, "trigger", status, message_ids,
    assistant_message_id, continuation, created_at)
VALUES (?, ?, ?, ?, 'accepted', ?, ?, ?, ?)
"""
START = "UPDATE cf_chat_turns SET status = 'running', started_at = ? WHERE turn_id = ?"
END = """
UPDATE cf_chat_turns SET status = ?, outcome = ?, error_text = ?, completed_at = ?
WHERE turn_id = ?
"""
NEWEST = "SELECT * FROM cf_chat_turns ORDER BY rowid DESC LIMIT 1"
OF_REQUEST = """
SELECT * FROM cf_chat_turns
WHERE json_extract(request_ids, '$[0]') = ?
ORDER BY rowid DESC LIMIT 1
"""
GET = "SELECT * FROM cf_chat_turns WHERE turn_id = ?"
UNFINISHED = """
SELECT * FROM cf_chat_turns WHERE status IN ('accepted', 'running', 'recovering') ORDER BY rowid
"""
REQUESTS_OF_ROOT = """
SELECT request_ids FROM cf_chat_turns WHERE recovery_root = ? ORDER BY rowid
"""
RECOVERING = """
SELECT * FROM cf_chat_turns WHERE status = 'recovering' ORDER BY rowid LIMIT 1
"""
MARK_LOST = """
UPDATE cf_chat_turns SET status = 'recovering', outcome = 'recovering' WHERE turn_id = ?
"""
CREATE_ROOT_INDEX = """
CREATE INDEX IF NOT EXISTS cf_chat_turns_root ON cf_chat_turns (recovery_root)
"""
ORPHANED = """
SELECT * FROM cf_chat_turns WHERE status = 'orphaned'
ORDER BY started_at IS NULL, rowid DESC LIMIT 1
"""
SETTLE_ORPHANS = "UPDATE cf_chat_turns SET status = 'ended' WHERE status = 'orphaned'"
ALL = "SELECT * FROM cf_chat_turns"
MARK_CLEARED = "UPDATE cf_chat_turns SET status = 'cleared' WHERE turn_id = ?"
DELETE = "DELETE FROM cf_chat_turns WHERE turn_id = ?"


def create_turn_table(database: Database) -> None:
    """Make the table of turns."""
    database.run(CREATE)
    database.run(CREATE_STATUS_INDEX)
    database.run(CREATE_REQUEST_INDEX)
    database.run(CREATE_ROOT_INDEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One row of the table."""

    turn_id: str
    recovery_root: str
    request_ids: Sequence[str]
    """Every request that this turn was known under; the last one is the newest."""
    trigger: TurnTrigger
    status: TurnStatus = "accepted"
    outcome: StoredOutcome | None = None
    error_text: str | None = None
    message_ids: Sequence[str] = field(default=())
    """The user messages that the turn answers."""
    assistant_message_id: str
    continuation: bool = False
    created_at: int
    """Milliseconds since the epoch, as the two below."""
    started_at: int | None = None
    completed_at: int | None = None

    @property
    def request_id(self) -> str:
        """The request that the turn answers."""
        return self.request_ids[-1]


class TurnStore:
    """Reads and writes the records of turns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.unsettled: set[str] = set()
        """Turns of this instance whose end could not be stored, as when the disk was full."""

    def insert(self, turn: StoredTurn) -> None:
        """Record a turn that was accepted."""
        self._database.run(
            INSERT,
            turn.turn_id,
            turn.recovery_root,
            dumps(turn.request_ids),
            turn.trigger,
            dumps(turn.message_ids),
            turn.assistant_message_id,
            int(turn.continuation),
            turn.created_at,
        )

    def start(self, turn_id: str, now: int) -> None:
        """Record that a turn runs."""
        self._database.run(START, now, turn_id)

    def end(
        self,
        turn_id: str,
        outcome: StoredOutcome,
        *,
        now: int,
        error_text: str | None = None,
        status: TurnStatus = "ended",
    ) -> None:
        """Record how a turn ended."""
        self._database.run(END, status, outcome, error_text, now, turn_id)

    def get(self, turn_id: str) -> StoredTurn | None:
        """One turn."""
        return _turn_or_none(self._database.one(GET, turn_id))

    def mark_lost(self, turn_id: str) -> None:
        """Record that a turn has no producer any more, and that another is to go on for it."""
        self._database.run(MARK_LOST, turn_id)

    def recovering(self) -> StoredTurn | None:
        """The first lost turn that another one is still to go on for."""
        return _turn_or_none(self._database.one(RECOVERING))

    def requests_of(self, recovery_root: str) -> Sequence[str]:
        """The requests of a turn and of those that have gone on for it."""
        rows = self._database.query(REQUESTS_OF_ROOT, recovery_root)
        return [request_id for row in rows for request_id in texts_in(row["request_ids"])]

    def newest(self) -> StoredTurn | None:
        """The turn that was accepted last."""
        return _turn_or_none(self._database.one(NEWEST))

    def of_request(self, request_id: str) -> StoredTurn | None:
        """The turn that was known under a request id."""
        return _turn_or_none(self._database.one(OF_REQUEST, request_id))

    def unfinished(self) -> list[StoredTurn]:
        """The turns that an earlier instance has left, in the order they were accepted."""
        return [_turn(row) for row in self._database.query(UNFINISHED)]

    def orphan(self) -> StoredTurn | None:
        """The lost turn to offer: the newest that had begun, else the newest."""
        return _turn_or_none(self._database.one(ORPHANED))

    def settle_orphans(self) -> None:
        """Stop offering lost turns: a client knows the end, or a newer turn begins."""
        self._database.run(SETTLE_ORPHANS)

    def clear(self, *, keep: Iterable[str], running: Iterable[str]) -> None:
        """Forget the turns of a cleared chat.

        Args:
            keep: Requests that runs are bound to: their turns stay, but are offered no more.
            running: Turns that are still to be ended.
        """
        kept, untouched = set(keep), set(running)
        for row in self._database.query(ALL):
            turn = _turn(row)
            if turn.turn_id in untouched:
                continue
            statement = DELETE if kept.isdisjoint(turn.request_ids) else MARK_CLEARED
            self._database.run(statement, turn.turn_id)


def _turn_or_none(row: Row | None) -> StoredTurn | None:
    return None if row is None else _turn(row)


def _message_ids(row: Row) -> Sequence[str]:
    try:
        return texts_in(row["message_ids"])
    except NotJson as error:
        _log.error("The turn %s has lost its questions: %s", row["turn_id"], error)
        return ()


def _turn(row: Row) -> StoredTurn:
    return StoredTurn(
        turn_id=row["turn_id"],
        recovery_root=row["recovery_root"],
        request_ids=texts_in(row["request_ids"]),
        trigger=row["trigger"],
        status=row["status"],
        outcome=row["outcome"],
        error_text=row["error_text"],
        message_ids=_message_ids(row),
        assistant_message_id=row["assistant_message_id"],
        continuation=bool(row["continuation"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
    )
