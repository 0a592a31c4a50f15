"""Durable submissions on disk: one row each, from the call to its end (SB-001)."""

from collections.abc import Iterable

from ramet.core.json import dumps, loads, loads_or_raw
from ramet.protocol.ui_message import UIMessage, as_message
from ramet.storage import Database, Migration, Row
from ramet.think.submission_records import EndStatus, Submission

CREATE = """
CREATE TABLE IF NOT EXISTS cf_think_submissions (
    submission_id TEXT PRIMARY KEY NOT NULL,
    idempotency_key TEXT UNIQUE,
    request_id TEXT NOT NULL,
    stream_id TEXT,
    status TEXT NOT NULL,
    messages_json TEXT NOT NULL,
    metadata_json TEXT,
    error_message TEXT,
    created_at INTEGER NOT NULL,
    messages_applied_at INTEGER,
    started_at INTEGER,
    completed_at INTEGER
)
"""
CREATE_INDEX = """
CREATE INDEX IF NOT EXISTS cf_think_submissions_status
    ON cf_think_submissions (status, created_at)
"""
INSERT = """
INSERT INTO cf_think_submissions (submission_id, idempotency_key, request_id, status,
    messages_json, metadata_json, created_at)
VALUES (?, ?, ?, 'pending', ?, ?, ?)
"""
GET = "SELECT * FROM cf_think_submissions WHERE submission_id = ?"
OF_KEY = "SELECT * FROM cf_think_submissions WHERE idempotency_key = ?"
MESSAGES = "SELECT messages_json FROM cf_think_submissions WHERE submission_id = ?"
OF_STATUS = """
SELECT * FROM cf_think_submissions WHERE status = ? ORDER BY created_at, rowid
"""
FEW_ACTIVE = """
SELECT * FROM cf_think_submissions WHERE rowid IN (
    SELECT rowid FROM cf_think_submissions WHERE status IN ('running', 'pending')
    ORDER BY status DESC, created_at, rowid LIMIT ?
) ORDER BY status DESC, created_at, rowid
"""
COUNT_ACTIVE = """
SELECT count(*) AS number FROM cf_think_submissions WHERE status IN ('running', 'pending')
"""
FIRST_PENDING = """
SELECT * FROM cf_think_submissions WHERE status = 'pending' ORDER BY created_at, rowid LIMIT 1
"""
START = """
UPDATE cf_think_submissions SET status = 'running', started_at = ?
WHERE submission_id = ? AND status = 'pending'
"""
APPLIED = """
UPDATE cf_think_submissions SET messages_applied_at = ?, stream_id = ? WHERE submission_id = ?
"""
WAIT_AGAIN = """
UPDATE cf_think_submissions SET status = 'pending', started_at = NULL
WHERE submission_id = ? AND status = 'running' AND messages_applied_at IS NULL
"""
END = """
UPDATE cf_think_submissions SET status = ?, error_message = ?, completed_at = ?
WHERE submission_id = ? AND status = 'running'
"""
CALL_OFF = """
UPDATE cf_think_submissions SET status = ?, error_message = ?, completed_at = ?
WHERE submission_id = ? AND status IN ('pending', 'running')
"""
LIST = """
SELECT * FROM cf_think_submissions WHERE status IN (SELECT value FROM json_each(?))
ORDER BY created_at DESC, rowid DESC LIMIT ?
"""
DELETE = """
DELETE FROM cf_think_submissions WHERE submission_id IN (
    SELECT submission_id FROM cf_think_submissions
    WHERE status IN (SELECT value FROM json_each(?)) AND (? IS NULL OR completed_at < ?)
        AND status NOT IN ('pending', 'running')
    ORDER BY completed_at, rowid LIMIT ?
)
"""
DELETE_ONE = """
DELETE FROM cf_think_submissions
WHERE submission_id = ? AND status NOT IN ('pending', 'running')
"""


def _create(database: Database) -> None:
    database.run(CREATE)
    database.run(CREATE_INDEX)


SUBMISSION_MIGRATIONS = (Migration(component="think:submissions", number=1, apply=_create),)


class SubmissionStore:
    """The submissions of one agent; a status changes only along the legal ways."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def insert(self, submission: Submission, *, messages: str, metadata: str | None) -> None:
        """Store a new one, which is pending."""
        self._database.run(
            INSERT,
            submission.submission_id,
            submission.idempotency_key,
            submission.request_id,
            messages,
            metadata,
            submission.created_at,
        )

    def get(self, submission_id: str) -> Submission | None:
        """One submission by its id."""
        return _or_none(self._database.one(GET, submission_id))

    def of_key(self, key: str) -> Submission | None:
        """One submission by its idempotency key."""
        return _or_none(self._database.one(OF_KEY, key))

    def messages(self, submission_id: str) -> list[UIMessage] | None:
        """The messages of a submission; None when what is stored cannot be read."""
        row = self._database.one(MESSAGES, submission_id)
        try:
            stored = None if row is None else loads(str(row["messages_json"]))
        except ValueError:
            return None
        if not isinstance(stored, list):
            return None
        messages = [message for message in stored if isinstance(message, dict)]
        whole = len(messages) == len(stored) and all(
            {"id", "role", "parts"} <= message.keys() for message in messages
        )
        return [as_message(message) for message in messages] if whole and messages else None

    def first_pending(self) -> Submission | None:
        """The one that has waited longest."""
        return _or_none(self._database.one(FIRST_PENDING))

    def active(self) -> list[Submission]:
        """Those that run and those that wait, the oldest first."""
        return [*self.running(), *map(_submission, self._database.query(OF_STATUS, "pending"))]

    def few_active(self, limit: int) -> list[Submission]:
        """So many of them at most: those that run before those that wait, the oldest first."""
        return [_submission(row) for row in self._database.query(FEW_ACTIVE, limit)]

    def count_active(self) -> int:
        """How many run or wait."""
        number: int = self._database.query(COUNT_ACTIVE)[0]["number"]
        return number

    def running(self) -> list[Submission]:
        """Those that run."""
        return [_submission(row) for row in self._database.query(OF_STATUS, "running")]

    def start(self, submission_id: str, now: int) -> bool:
        """Record that a pending one runs; False when it is not pending any more."""
        return self._database.run(START, now, submission_id) > 0

    def applied(self, submission_id: str, *, stream_id: str, now: int) -> None:
        """Record that all of its messages were added; in the transaction that adds them."""
        self._database.run(APPLIED, now, stream_id, submission_id)

    def wait_again(self, submission_id: str) -> bool:
        """Let one that ran without adding anything wait again."""
        return self._database.run(WAIT_AGAIN, submission_id) > 0

    def end(self, submission_id: str, status: EndStatus, *, error: str | None, now: int) -> bool:
        """Record how a running one ended; False when it does not run (SB-008)."""
        return self._database.run(END, status, error, now, submission_id) > 0

    def call_off(
        self, submission_id: str, status: EndStatus, *, error: str | None, now: int
    ) -> bool:
        """End one that waits or runs; False when it is over."""
        return self._database.run(CALL_OFF, status, error, now, submission_id) > 0

    def newest(self, statuses: Iterable[str], limit: int) -> list[Submission]:
        """Those of some statuses, the newest first."""
        rows = self._database.query(LIST, dumps(sorted(statuses)), limit)
        return [_submission(row) for row in rows]

    def delete(self, statuses: Iterable[str], *, before: int | None, limit: int) -> int:
        """Forget some that are over, the oldest first; gives how many."""
        return self._database.run(DELETE, dumps(sorted(statuses)), before, before, limit)

    def delete_one(self, submission_id: str) -> bool:
        """Forget one that is over."""
        return self._database.run(DELETE_ONE, submission_id) > 0


def _or_none(row: Row | None) -> Submission | None:
    return None if row is None else _submission(row)


def _submission(row: Row) -> Submission:
    return Submission(
        submission_id=row["submission_id"],
        request_id=row["request_id"],
        status=row["status"],
        created_at=row["created_at"],
        idempotency_key=row["idempotency_key"],
        stream_id=row["stream_id"],
        metadata=loads_or_raw(row["metadata_json"]),
        error=row["error_message"],
        messages_applied_at=row["messages_applied_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
    )
