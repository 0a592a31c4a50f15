"""The registry of runs in the parent's database: the table `cf_agent_tool_runs`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from ramet.agent_tools.detachment import Detachment, MilestoneWishes, SlotName
from ramet.agent_tools.policy import Ending
from ramet.agent_tools.stored_run import StoredRun, run_of
from ramet.core.json import JsonValue, dumps
from ramet.protocol.run_events import Absent
from ramet.storage import Database

__all__ = ["RunStore", "StoredRun", "create_runs", "index_outstanding"]

CREATE_TABLE = """
CREATE TABLE cf_agent_tool_runs (
    run_id TEXT PRIMARY KEY NOT NULL,
    parent_tool_call_id TEXT,
    agent_type TEXT NOT NULL,
    input_preview TEXT,
    input_redacted INTEGER NOT NULL DEFAULT 1,
    status TEXT NOT NULL,
    summary TEXT,
    output_json TEXT,
    error_message TEXT,
    interrupted_reason TEXT,
    child_still_running INTEGER,
    display_metadata TEXT,
    display_order INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL,
    completed_at INTEGER,
    detached INTEGER NOT NULL DEFAULT 0,
    detached_on_finish TEXT,
    detached_notify_source TEXT,
    detached_max_budget_at INTEGER,
    detached_no_progress_budget_ms INTEGER,
    detached_on_milestones TEXT,
    last_progress_at INTEGER,
    finish_claimed_at INTEGER,
    finish_delivered_at INTEGER,
    give_up_claimed_at INTEGER,
    give_up_delivered_at INTEGER,
    call_position INTEGER,
    recovery_root TEXT
)
"""
CREATE_CALL_INDEX = """
CREATE INDEX cf_agent_tool_runs_by_call
ON cf_agent_tool_runs (parent_tool_call_id, display_order)
"""
CREATE_TIME_INDEX = """
CREATE INDEX cf_agent_tool_runs_by_time ON cf_agent_tool_runs (started_at)
"""
CREATE_UNFINISHED_INDEX = """
CREATE INDEX cf_agent_tool_runs_unfinished ON cf_agent_tool_runs (started_at)
WHERE status IN ('starting', 'running')
"""

DROP_UNFINISHED_INDEX = "DROP INDEX cf_agent_tool_runs_unfinished"
CREATE_STATUS_INDEX = """
CREATE INDEX cf_agent_tool_runs_by_status ON cf_agent_tool_runs (status, started_at)
WHERE status <> 'completed'
"""
CREATE_OUTSTANDING_INDEX = """
CREATE INDEX cf_agent_tool_runs_outstanding ON cf_agent_tool_runs (started_at)
WHERE detached = 1 AND finish_delivered_at IS NULL
"""
ADD_CLASS_GONE = "ALTER TABLE cf_agent_tool_runs ADD COLUMN class_gone_since INTEGER"
ADD_INPUT_DIGEST = "ALTER TABLE cf_agent_tool_runs ADD COLUMN input_digest TEXT"

INSERT = """
INSERT INTO cf_agent_tool_runs (
    run_id, parent_tool_call_id, agent_type, input_preview, input_redacted, status,
    error_message, display_metadata, display_order, started_at, completed_at,
    call_position, recovery_root, input_digest
) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
GET = "SELECT rowid AS ordinal, * FROM cf_agent_tool_runs WHERE run_id = ?"
UNFINISHED = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE status <> 'completed' AND status IN ('starting', 'running')
ORDER BY started_at, rowid
"""
UNFINISHED_AWAITED = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE status <> 'completed' AND status IN ('starting', 'running') AND detached = 0
ORDER BY started_at, rowid
"""
COUNT_UNFINISHED = """
SELECT count(*) AS active FROM cf_agent_tool_runs
WHERE status <> 'completed' AND status IN ('starting', 'running')
"""
NEWEST = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
ORDER BY started_at DESC, rowid DESC LIMIT ?
"""
NEWEST_OF = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE status IN (SELECT value FROM json_each(?))
ORDER BY started_at DESC, rowid DESC LIMIT ?
"""
COUNTS = """
SELECT status, count(*) AS runs FROM cf_agent_tool_runs WHERE status <> 'completed' GROUP BY status
"""
COUNT = "SELECT count(*) AS runs FROM cf_agent_tool_runs"
OF_CALLS = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE parent_tool_call_id IN (SELECT value FROM json_each(?))
ORDER BY started_at DESC, rowid DESC LIMIT ?
"""
LISTED = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE (?1 IS NULL OR agent_type = ?1)
    AND ?2 IS NULL
    AND (?3 IS NULL OR status IN (SELECT value FROM json_each(?3)))
    AND ?4 IS NULL
ORDER BY started_at, rowid
"""
OF_CALL = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE parent_tool_call_id = ?2
    AND (?1 IS NULL OR agent_type = ?1)
    AND (?3 IS NULL OR status IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR started_at < ?4)
ORDER BY started_at, rowid
"""
STARTED_BEFORE = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE started_at < ?4
    AND (?1 IS NULL OR agent_type = ?1)
    AND ?2 IS NULL
    AND (?3 IS NULL OR status IN (SELECT value FROM json_each(?3)))
ORDER BY started_at, rowid
"""
NOT_COMPLETED = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE status <> 'completed' AND status IN (SELECT value FROM json_each(?3))
    AND (?1 IS NULL OR agent_type = ?1)
    AND ?2 IS NULL
    AND (?4 IS NULL OR started_at < ?4)
ORDER BY started_at, rowid
"""
MARK_RUNNING = """
UPDATE cf_agent_tool_runs SET status = 'running' WHERE run_id = ? AND status = 'starting'
"""
SEAL = """
UPDATE cf_agent_tool_runs
SET status = ?, summary = ?, output_json = ?, error_message = ?, interrupted_reason = ?,
    child_still_running = ?, completed_at = ?
WHERE run_id = ? AND status NOT IN ('completed', 'error', 'aborted')
"""
FILL = """
UPDATE cf_agent_tool_runs
SET output_json = coalesce(output_json, ?), summary = coalesce(summary, ?)
WHERE run_id = ? AND status = 'completed'
"""
LET_GO = """
UPDATE cf_agent_tool_runs
SET detached = 1, detached_on_finish = ?, detached_notify_source = ?, detached_max_budget_at = ?,
    detached_no_progress_budget_ms = ?, detached_on_milestones = ?
WHERE run_id = ?
"""
OUTSTANDING = """
SELECT rowid AS ordinal, * FROM cf_agent_tool_runs
WHERE detached = 1 AND finish_delivered_at IS NULL ORDER BY started_at, rowid
"""
COUNT_LET_GO = """
SELECT count(*) AS active FROM cf_agent_tool_runs
WHERE status <> 'completed' AND status IN ('starting', 'running') AND detached = 1
"""
CLAIM: Mapping[SlotName, str] = {
    "finish": """
UPDATE cf_agent_tool_runs SET finish_claimed_at = ?
WHERE run_id = ? AND detached = 1 AND finish_delivered_at IS NULL
    AND (finish_claimed_at IS NULL OR finish_claimed_at <= ?)
""",
    "give-up": """
UPDATE cf_agent_tool_runs SET give_up_claimed_at = ?
WHERE run_id = ? AND detached = 1 AND give_up_delivered_at IS NULL
    AND (give_up_claimed_at IS NULL OR give_up_claimed_at <= ?)
""",
}
DELIVERED: Mapping[SlotName, str] = {
    "finish": "UPDATE cf_agent_tool_runs SET finish_delivered_at = ? WHERE run_id = ?",
    "give-up": "UPDATE cf_agent_tool_runs SET give_up_delivered_at = ? WHERE run_id = ?",
}
SIGNALLED = "UPDATE cf_agent_tool_runs SET last_progress_at = ? WHERE run_id = ?"
CLASS_GONE = "UPDATE cf_agent_tool_runs SET class_gone_since = ? WHERE run_id = ?"
BRING_NEARER = """
UPDATE cf_agent_tool_runs
SET detached_max_budget_at = detached_max_budget_at - max(0, started_at - ?1),
    started_at = min(started_at, ?1),
    last_progress_at = min(last_progress_at, ?1),
    class_gone_since = min(class_gone_since, ?1),
    finish_claimed_at = min(finish_claimed_at, ?1),
    give_up_claimed_at = min(give_up_claimed_at, ?1)
WHERE detached = 1 AND finish_delivered_at IS NULL
"""
KEEP_WISHES = "UPDATE cf_agent_tool_runs SET detached_on_milestones = ? WHERE run_id = ?"
DELETE = "DELETE FROM cf_agent_tool_runs WHERE run_id = ?"

_IDS_AT_ONCE = 500


def create_runs(database: Database) -> None:
    """Make the table; one of the first migration's steps."""
    for statement in (CREATE_TABLE, CREATE_CALL_INDEX, CREATE_TIME_INDEX, CREATE_UNFINISHED_INDEX):
        database.run(statement)


def index_by_status(database: Database) -> None:
    """Find runs that did not complete without reading the others, which are most."""
    database.run(DROP_UNFINISHED_INDEX)
    database.run(CREATE_STATUS_INDEX)


def index_outstanding(database: Database) -> None:
    """Find runs that have still to report back without reading the others."""
    database.run(CREATE_OUTSTANDING_INDEX)


def add_class_gone(database: Database) -> None:
    """Keep since when the class of a child is not registered any more."""
    database.run(ADD_CLASS_GONE)


def add_input_digest(database: Database) -> None:
    """Keep what tells one input from another."""
    database.run(ADD_INPUT_DIGEST)


class RunStore:
    """Reads and writes runs; the only place that knows the table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run: StoredRun) -> None:
        """Keep a new run; the input itself is never stored, only its preview (AT-028)."""
        self._database.run(
            INSERT,
            run.run_id,
            run.parent_tool_call_id,
            run.agent_type,
            _json(run.input_preview),
            run.status,
            run.error,
            None if run.display is None else dumps(run.display),
            run.display_order,
            run.started_at,
            run.completed_at,
            run.call_position,
            run.recovery_root,
            run.input_digest,
        )
        if run.detachment is not None:
            self._let_go(run.run_id, run.detachment)

    def get(self, run_id: str) -> StoredRun | None:
        """One run; None when there is none of that id."""
        row = self._database.one(GET, run_id)
        return None if row is None else run_of(row)

    def unfinished(self) -> list[StoredRun]:
        """All runs that are starting or running, oldest first."""
        return [run_of(row) for row in self._database.query(UNFINISHED)]

    def unfinished_awaited(self) -> list[StoredRun]:
        """The runs that are starting or running and that somebody waits for, oldest first."""
        return [run_of(row) for row in self._database.query(UNFINISHED_AWAITED)]

    def count_unfinished(self) -> int:
        """How many runs hold a slot (AT-192)."""
        row = self._database.one(COUNT_UNFINISHED)
        return 0 if row is None else row["active"]

    def newest(self, limit: int, statuses: Sequence[str] | None = None) -> list[StoredRun]:
        """The newest runs, newest first, with one of some statuses or with any."""
        if statuses is None:
            return [run_of(row) for row in self._database.query(NEWEST, limit)]
        rows = self._database.query(NEWEST_OF, dumps(statuses), limit)
        return [run_of(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many runs there are of each status, by the indexes: most have completed."""
        counts = {row["status"]: row["runs"] for row in self._database.query(COUNTS)}
        completed = self._database.query(COUNT)[0]["runs"] - sum(counts.values())
        return {**counts, "completed": completed} if completed else counts

    def of_calls(self, tool_call_ids: Collection[str], limit: int) -> list[StoredRun]:
        """The newest runs of some tool calls, newest first."""
        found: list[StoredRun] = []
        for some in _batches(tool_call_ids):
            rows = self._database.query(OF_CALLS, dumps(some), limit)
            found.extend(run_of(row) for row in rows)
        return sorted(found, key=lambda run: run.age, reverse=True)[:limit]

    def matching(
        self,
        *,
        agent_type: str | None = None,
        parent_tool_call_id: str | None = None,
        statuses: Sequence[str] | None = None,
        started_before: int | None = None,
    ) -> list[StoredRun]:
        """The runs that fit all that is given, oldest first."""
        wanted = None if statuses is None else dumps(statuses)
        statement = LISTED
        if parent_tool_call_id is not None:
            statement = OF_CALL
        elif statuses is not None and "completed" not in statuses:
            statement = NOT_COMPLETED
        elif started_before is not None:
            statement = STARTED_BEFORE
        rows = self._database.query(
            statement, agent_type, parent_tool_call_id, wanted, started_before
        )
        return [run_of(row) for row in rows]

    def mark_running(self, run_id: str) -> bool:
        """Move a run from starting to running; nothing else is changed (AT-039)."""
        return self._database.run(MARK_RUNNING, run_id) > 0

    def seal(self, run_id: str, ending: Ending, completed_at: int) -> bool:
        """Write how a run ended; False when it has a hard terminal already, or is gone (AT-058)."""
        still = ending.child_still_running
        touched = self._database.run(
            SEAL,
            ending.status,
            ending.summary,
            _json(ending.output),
            ending.error,
            ending.reason,
            None if still is None else int(still),
            completed_at,
            run_id,
        )
        return touched > 0

    def fill(self, run_id: str, ending: Ending) -> None:
        """Add what a completed run lacks of its result; nothing that is there changes (AT-060)."""
        self._database.run(FILL, _json(ending.output), ending.summary, run_id)

    def outstanding(self) -> list[StoredRun]:
        """The detached runs whose end is not delivered, whatever it is; oldest first (AT-240)."""
        return [run_of(row) for row in self._database.query(OUTSTANDING)]

    def count_let_go(self) -> int:
        """How many detached runs are starting or running (AT-266)."""
        row = self._database.one(COUNT_LET_GO)
        return 0 if row is None else row["active"]

    def claim(self, run_id: str, slot: SlotName, *, now: int, lease: int) -> bool:
        """Take a delivery on; False when it was made, or somebody else is at it (AT-246)."""
        return self._database.run(CLAIM[slot], now, run_id, now - lease) > 0

    def delivered(self, run_id: str, slot: SlotName, now: int) -> None:
        """Record that a delivery was made."""
        self._database.run(DELIVERED[slot], now, run_id)

    def signalled(self, run_id: str, now: int) -> None:
        """Record when a detached run gave its last sign (AT-282)."""
        self._database.run(SIGNALLED, now, run_id)

    def class_gone(self, run_id: str, since: int | None) -> None:
        """Record since when the class of a run's child is gone; None once it is back."""
        self._database.run(CLASS_GONE, since, run_id)

    def bring_nearer(self, now: int) -> None:
        """Take what outstanding runs say of later than now for now: the clock was set back."""
        self._database.run(BRING_NEARER, now)

    def keep_wishes(self, run_id: str, wishes: MilestoneWishes) -> None:
        """Record which milestones are still to be told of."""
        self._database.run(KEEP_WISHES, wishes.text(), run_id)

    def delete(self, run_id: str) -> None:
        """Forget a run."""
        self._database.run(DELETE, run_id)

    def _let_go(self, run_id: str, detachment: Detachment) -> None:
        self._database.run(
            LET_GO,
            detachment.on_finish,
            detachment.notify_source,
            detachment.max_budget_at,
            detachment.no_progress_ms,
            None if detachment.milestones is None else detachment.milestones.text(),
            run_id,
        )


def _json(value: JsonValue | Absent) -> str | None:
    return None if isinstance(value, Absent) else dumps(value)


def _batches(ids: Collection[str]) -> Iterator[list[str]]:
    remaining = iter(ids)
    while some := list(islice(remaining, _IDS_AT_ONCE)):
        yield some
