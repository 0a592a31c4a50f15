"""Fibers on disk: a row for each that runs, the ledger of managed ones, the root's leases."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from ramet.core.json import JsonValue, NotJson, dumps, loads, loads_or_raw
from ramet.core.paths import AgentPath
from ramet.fibers.records import FiberInspection, FiberStatus, SettledStatus
from ramet.storage import Database, Row

_log = logging.getLogger("ramet.fibers")

CREATE_RUNS = """
CREATE TABLE cf_agents_runs (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    snapshot TEXT,
    created_at INTEGER NOT NULL
)
"""
CREATE_FIBERS = """
CREATE TABLE cf_agents_fibers (
    fiber_id TEXT PRIMARY KEY NOT NULL,
    idempotency_key TEXT UNIQUE,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    snapshot TEXT,
    metadata_json TEXT,
    error_message TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER
)
"""
CREATE_FIBERS_INDEX = """
CREATE INDEX cf_agents_fibers_unsettled ON cf_agents_fibers (created_at)
WHERE status IN ('pending', 'running')
"""
CREATE_FACET_RUNS = """
CREATE TABLE cf_agents_facet_runs (
    owner_path TEXT NOT NULL,
    owner_path_key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner_path_key, run_id)
)
"""
ADD_RUN = "INSERT INTO cf_agents_runs (id, name, snapshot, created_at) VALUES (?, ?, ?, ?)"
STASH = "UPDATE cf_agents_runs SET snapshot = ? WHERE id = ?"
STASH_FIBER = "UPDATE cf_agents_fibers SET snapshot = ? WHERE fiber_id = ?"
HAS_RUN = "SELECT 1 FROM cf_agents_runs WHERE id = ?"
REMOVE_RUN = "DELETE FROM cf_agents_runs WHERE id = ?"
RUNS = "SELECT id, name, snapshot, created_at FROM cf_agents_runs ORDER BY created_at, rowid"
FEW_RUNS = """
SELECT id, name, snapshot, created_at FROM cf_agents_runs WHERE rowid IN (
    SELECT rowid FROM cf_agents_runs ORDER BY created_at, rowid LIMIT ?
) ORDER BY created_at, rowid
"""
COUNT_RUNS = "SELECT count(*) AS number FROM cf_agents_runs"
ADD_FIBER = """
INSERT INTO cf_agents_fibers
    (fiber_id, idempotency_key, name, status, metadata_json, created_at)
VALUES (?, ?, ?, 'pending', ?, ?)
"""
FIBER = "SELECT * FROM cf_agents_fibers WHERE fiber_id = ?"
FIBER_OF_KEY = "SELECT * FROM cf_agents_fibers WHERE idempotency_key = ?"
BEGIN = """
UPDATE cf_agents_fibers SET status = 'running', started_at = ?
WHERE fiber_id = ? AND status = 'pending'
"""
SETTLE = """
UPDATE cf_agents_fibers SET status = ?, error_message = ?, completed_at = ?
WHERE fiber_id = ? AND status IN ('pending', 'running')
"""
KEEP_RUN = """
INSERT INTO cf_agents_runs (id, name, snapshot, created_at)
SELECT fiber_id, name, snapshot, created_at FROM cf_agents_fibers WHERE fiber_id = ?
ON CONFLICT (id) DO NOTHING
"""
RESOLVE = """
UPDATE cf_agents_fibers SET status = ?, error_message = ?, completed_at = ?,
    snapshot = coalesce(?, snapshot), metadata_json = coalesce(?, metadata_json)
WHERE fiber_id = ? AND status = 'interrupted'
"""
UNSETTLED = """
SELECT * FROM cf_agents_fibers WHERE status IN ('pending', 'running') ORDER BY created_at, rowid
"""
LIST = """
SELECT * FROM cf_agents_fibers WHERE status IN (SELECT value FROM json_each(?))
ORDER BY created_at DESC, fiber_id DESC LIMIT ?
"""
DELETE_SETTLED = """
DELETE FROM cf_agents_fibers WHERE fiber_id IN (
    SELECT fiber_id FROM cf_agents_fibers
    WHERE status IN (SELECT value FROM json_each(?)) AND (? IS NULL OR completed_at < ?)
        AND fiber_id NOT IN (SELECT id FROM cf_agents_runs)
    ORDER BY completed_at, fiber_id LIMIT ?
)
"""
LEASE = """
INSERT INTO cf_agents_facet_runs (owner_path, owner_path_key, run_id, created_at)
VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
RELEASE = "DELETE FROM cf_agents_facet_runs WHERE owner_path_key = ? AND run_id = ?"
MOVE_LEASES = """
UPDATE OR REPLACE cf_agents_facet_runs SET owner_path = ?1, owner_path_key = ?1
WHERE owner_path_key = ?2
"""
LEASES = "SELECT owner_path, run_id FROM cf_agents_facet_runs ORDER BY created_at, rowid"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A fiber that runs, or was interrupted."""

    id: str
    name: str
    snapshot: str | None
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an interrupted fiber is settled, as it is stored; None keeps what is there."""

    status: SettledStatus
    error: str | None = None
    snapshot: str | None = None
    metadata: str | None = None


class FiberStore:
    """The fibers of one agent, and a root's leases for those of its sub-agents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_run(self, run: StoredRun) -> None:
        """Note a fiber before its function starts."""
        self._database.run(ADD_RUN, run.id, run.name, run.snapshot, run.created_at)

    def stash(self, run_id: str, snapshot: str, *, managed: bool) -> bool:
        """Replace the snapshot of a fiber, of a managed one in the ledger too; False when over."""
        with self._database.transaction():
            stored = self._database.run(STASH, snapshot, run_id) > 0
            if stored and managed:
                self._database.run(STASH_FIBER, snapshot, run_id)
        return stored

    def has_run(self, run_id: str) -> bool:
        """Whether a fiber runs, or was interrupted and waits for its recovery."""
        return self._database.one(HAS_RUN, run_id) is not None

    def remove_run(self, run_id: str) -> None:
        """Forget a fiber that has ended."""
        self._database.run(REMOVE_RUN, run_id)

    def runs(self) -> list[StoredRun]:
        """The fibers that have rows, the oldest first."""
        return [_run(row) for row in self._database.query(RUNS)]

    def few_runs(self, limit: int) -> list[StoredRun]:
        """So many of them at most, the oldest first."""
        return [_run(row) for row in self._database.query(FEW_RUNS, limit)]

    def count_runs(self) -> int:
        """How many fibers have rows."""
        number: int = self._database.query(COUNT_RUNS)[0]["number"]
        return number

    def add_fiber(
        self, fiber_id: str, name: str, *, key: str | None, metadata: str | None, now: int
    ) -> None:
        """Enter a managed fiber into the ledger."""
        self._database.run(ADD_FIBER, fiber_id, key, name, metadata, now)

    def fiber(self, fiber_id: str) -> FiberInspection | None:
        """A managed fiber by its id."""
        row = self._database.one(FIBER, fiber_id)
        return None if row is None else _fiber(row)

    def fiber_of_key(self, key: str) -> FiberInspection | None:
        """A managed fiber by its idempotency key."""
        row = self._database.one(FIBER_OF_KEY, key)
        return None if row is None else _fiber(row)

    def begin(self, fiber_id: str, now: int) -> None:
        """Note that a managed fiber's function starts."""
        self._database.run(BEGIN, now, fiber_id)

    def settle(self, fiber_id: str, status: FiberStatus, *, error: str | None, now: int) -> bool:
        """End a managed fiber; False when it had ended already (FB-035)."""
        with self._database.transaction():
            settled = self._database.run(SETTLE, status, error, now, fiber_id) > 0
            if settled:
                self._database.run(REMOVE_RUN, fiber_id)
        return settled

    def fail(self, fiber_id: str, error: str, now: int) -> None:
        """End a managed fiber that could not be set up; a run with its id is another's (FB-031)."""
        self._database.run(SETTLE, "error", error, now, fiber_id)

    def interrupt(self, fiber_id: str, now: int) -> None:
        """Mark a managed fiber whose process died.

        Its run row stays, and is made if there was none: while it is there the hook has yet to
        return, in another process if need be.
        """
        with self._database.transaction():
            self._database.run(SETTLE, "interrupted", None, now, fiber_id)
            self._database.run(KEEP_RUN, fiber_id)

    def resolve(self, fiber_id: str, outcome: Outcome, now: int) -> bool:
        """Apply a result to an interrupted fiber; False when it is not interrupted (FB-039)."""
        with self._database.transaction():
            touched = self._database.run(
                RESOLVE,
                outcome.status,
                outcome.error,
                now,
                outcome.snapshot,
                outcome.metadata,
                fiber_id,
            )
            if touched:
                self._database.run(REMOVE_RUN, fiber_id)
        return touched > 0

    def unsettled(self) -> list[FiberInspection]:
        """The managed fibers that are pending or running, the oldest first."""
        return [_fiber(row) for row in self._database.query(UNSETTLED)]

    def listed(self, statuses: Iterable[str], limit: int) -> list[FiberInspection]:
        """Managed fibers with one of the statuses, the newest first."""
        rows = self._database.query(LIST, dumps(sorted(statuses)), limit)
        return [_fiber(row) for row in rows]

    def delete(self, statuses: Iterable[str], *, before: int | None, limit: int) -> int:
        """Forget fibers that are over, the longest settled first; returns how many.

        One whose recovery hook has not returned yet is not over.
        """
        names = dumps(sorted(statuses))
        return self._database.run(DELETE_SETTLED, names, before, before, limit)

    def lease(self, owner: AgentPath, run_id: str, now: int) -> None:
        """Note at the root that a sub-agent has a fiber, so that its alarm looks after it."""
        key = dumps(owner.to_json())
        self._database.run(LEASE, key, key, run_id, now)

    def release(self, owner: AgentPath, run_id: str) -> None:
        """Forget one lease."""
        self._database.run(RELEASE, dumps(owner.to_json()), run_id)

    def move_leases(self, owner: AgentPath, target: AgentPath) -> None:
        """Give the leases of one path to another."""
        self._database.run(MOVE_LEASES, dumps(target.to_json()), dumps(owner.to_json()))

    def leases(self) -> list[tuple[AgentPath, str]]:
        """The owners and ids of the sub-agents' fibers that are looked after, oldest first."""
        owners = ((_owner(row), row["run_id"]) for row in self._database.query(LEASES))
        return [(owner, run_id) for owner, run_id in owners if owner is not None]


def _owner(row: Row) -> AgentPath | None:
    try:
        return AgentPath.from_json(loads(row["owner_path"]))
    except NotJson as error:
        _log.error("Nobody knows whose the fiber %s is: %s", row["run_id"], error)
        return None


def _run(row: Row) -> StoredRun:
    return StoredRun(
        id=row["id"], name=row["name"], snapshot=row["snapshot"], created_at=row["created_at"]
    )


def _fiber(row: Row) -> FiberInspection:
    return FiberInspection(
        fiber_id=row["fiber_id"],
        name=row["name"],
        status=row["status"],
        created_at=row["created_at"],
        idempotency_key=row["idempotency_key"],
        snapshot=readable(row["snapshot"]),
        error=row["error_message"],
        metadata=loads_or_raw(row["metadata_json"]),
        started_at=row["started_at"],
        settled_at=row["completed_at"],
    )


def readable(snapshot: str | None) -> JsonValue:
    """A stored snapshot; None for one that cannot be read (FB-016)."""
    try:
        return None if snapshot is None else loads(snapshot)
    except NotJson:
        return None
