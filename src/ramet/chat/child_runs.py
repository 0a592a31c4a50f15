"""What a chat agent keeps of the runs it works for: one row a run, and its milestones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramet.agent_tools.records import ChildStatus, Milestone, Progress
from ramet.chat.family import Output
from ramet.core.json import (
    JsonValue,
    NotJson,
    dumps,
    loads_object,
    loads_or_raw,
    text_at,
    texts_in,
)
from ramet.protocol.run_events import ABSENT
from ramet.storage import Database, Row

CREATE_RUNS = """
CREATE TABLE IF NOT EXISTS cf_agent_tool_child_runs (
    run_id TEXT PRIMARY KEY NOT NULL,
    request_id TEXT NOT NULL,
    stream_id TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT,
    output_json TEXT,
    error_message TEXT,
    started_at INTEGER NOT NULL,
    completed_at INTEGER,
    progress_json TEXT,
    last_signal_at INTEGER,
    input_json TEXT NOT NULL,
    request_ids TEXT NOT NULL
)
"""
CREATE_MILESTONES = """
CREATE TABLE IF NOT EXISTS cf_agent_tool_milestones (
    run_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    name TEXT NOT NULL,
    data_json TEXT,
    at INTEGER NOT NULL,
    position INTEGER NOT NULL,
    fraction REAL,
    message TEXT,
    phase TEXT,
    PRIMARY KEY (run_id, sequence)
)
"""
INSERT = """
INSERT INTO cf_agent_tool_child_runs (run_id, request_id, stream_id, status, started_at,
    input_json, request_ids)
VALUES (?, ?, ?, 'running', ?, ?, ?)
"""
GET = "SELECT * FROM cf_agent_tool_child_runs WHERE run_id = ?"
OF_REQUEST = """
SELECT * FROM cf_agent_tool_child_runs
WHERE request_id = ?1 OR EXISTS (
    SELECT 1 FROM json_each(CASE WHEN json_valid(request_ids) THEN request_ids ELSE '[]' END)
    WHERE value = ?1
)
"""
UNSEALED = "SELECT * FROM cf_agent_tool_child_runs WHERE completed_at IS NULL ORDER BY started_at"
REQUESTS = "SELECT request_id, request_ids FROM cf_agent_tool_child_runs"
SEAL = """
UPDATE cf_agent_tool_child_runs
SET status = ?, summary = ?, output_json = ?, error_message = ?, completed_at = ?
WHERE run_id = ? AND completed_at IS NULL
"""
REBIND = """
UPDATE cf_agent_tool_child_runs SET request_id = ?, stream_id = ?, request_ids = ?
WHERE run_id = ? AND completed_at IS NULL
"""
KEEP_PROGRESS = """
UPDATE cf_agent_tool_child_runs SET progress_json = ?, last_signal_at = ? WHERE run_id = ?
"""
KEEP_SIGNAL = "UPDATE cf_agent_tool_child_runs SET last_signal_at = ? WHERE run_id = ?"
ADD_MILESTONE = """
INSERT INTO cf_agent_tool_milestones (run_id, sequence, name, data_json, at, position, fraction,
    message, phase)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEXT_MILESTONE = """
SELECT coalesce(max(sequence), -1) + 1 AS next FROM cf_agent_tool_milestones WHERE run_id = ?
"""
MILESTONES = """
SELECT * FROM cf_agent_tool_milestones WHERE run_id = ? AND sequence > ? ORDER BY sequence
"""


def create_child_run_tables(database: Database) -> None:
    """Make the tables of runs and milestones."""
    database.run(CREATE_RUNS)
    database.run(CREATE_MILESTONES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChildRun:
    """One row of the table of runs."""

    run_id: str
    request_id: str
    """The newest request that works for the run."""
    stream_id: str
    """The log that the answer is written to."""
    status: ChildStatus = "running"
    summary: str | None = None
    output: Output = ABSENT
    error: str | None = None
    started_at: int
    """Milliseconds since the epoch, as the one below."""
    completed_at: int | None = None
    progress: Progress | None = None
    input: JsonValue = None
    request_ids: Sequence[str] = ()
    """Every request that has worked for the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMilestone:
    """A milestone with its place in the stream."""

    milestone: Milestone
    position: int
    """The index of the chunk before it; -1 before the first."""


class ChildRunStore:
    """Reads and writes the runs that this agent works for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def insert(self, run: StoredChildRun) -> None:
        """Record a run that begins."""
        self._database.run(
            INSERT,
            run.run_id,
            run.request_id,
            run.stream_id,
            run.started_at,
            dumps(run.input),
            dumps(run.request_ids),
        )

    def get(self, run_id: str) -> StoredChildRun | None:
        """The run with that id."""
        return _run_or_none(self._database.one(GET, run_id))

    def of_request(self, request_id: str) -> StoredChildRun | None:
        """The run that a request works for."""
        return _run_or_none(self._database.one(OF_REQUEST, request_id))

    def unsealed(self) -> list[StoredChildRun]:
        """The runs that have not ended."""
        return [_run(row) for row in self._database.query(UNSEALED)]

    def bound_requests(self) -> set[str]:
        """Every request that works or has worked for a run."""
        rows = self._database.query(REQUESTS)
        return {request_id for row in rows for request_id in _requests(row)}

    def seal(
        self,
        run_id: str,
        status: ChildStatus,
        *,
        now: int,
        output: Output = ABSENT,
        summary: str | None = None,
        error: str | None = None,
    ) -> bool:
        """Record how a run ended; False when it had ended before (AT-087)."""
        output_json = None if output is ABSENT else dumps(output)
        return bool(self._database.run(SEAL, status, summary, output_json, error, now, run_id))

    def rebind(self, run: StoredChildRun, *, request_id: str, stream_id: str) -> None:
        """Have another request work for a run, unless it has ended (AT-096, AT-097)."""
        request_ids = dumps([*run.request_ids, request_id])
        self._database.run(REBIND, request_id, stream_id, request_ids, run.run_id)

    def keep_progress(self, run_id: str, progress: Progress) -> None:
        """Make this the run's progress as the inspection shows it."""
        shown = {
            "fraction": progress.fraction,
            "message": progress.message,
            "phase": progress.phase,
            "data": progress.data,
        }
        kept = {key: value for key, value in shown.items() if value is not None}
        self._database.run(KEEP_PROGRESS, dumps(kept), progress.at, run_id)

    def next_milestone(self, run_id: str) -> int:
        """The number of the run's next milestone."""
        row = self._database.one(NEXT_MILESTONE, run_id)
        return 0 if row is None else int(row["next"])

    def add_milestone(self, run_id: str, milestone: Milestone, *, position: int) -> None:
        """Record a milestone and that the run gave a sign of life."""
        with self._database.transaction():
            self._database.run(
                ADD_MILESTONE,
                run_id,
                milestone.sequence,
                milestone.name,
                None if milestone.data is None else dumps(milestone.data),
                milestone.at,
                position,
                milestone.fraction,
                milestone.message,
                milestone.phase,
            )
            self._database.run(KEEP_SIGNAL, milestone.at, run_id)

    def milestones(self, run_id: str, *, after: int = -1) -> list[PlacedMilestone]:
        """The run's milestones with a number above `after`, in order."""
        return [_milestone(row) for row in self._database.query(MILESTONES, run_id, after)]


def _run_or_none(row: Row | None) -> StoredChildRun | None:
    return None if row is None else _run(row)


def _run(row: Row) -> StoredChildRun:
    output = row["output_json"]
    return StoredChildRun(
        run_id=row["run_id"],
        request_id=row["request_id"],
        stream_id=row["stream_id"],
        status=row["status"],
        summary=row["summary"],
        output=ABSENT if output is None else loads_or_raw(output),
        error=row["error_message"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        progress=_progress(row),
        input=loads_or_raw(row["input_json"]),
        request_ids=_requests(row),
    )


def _progress(row: Row) -> Progress | None:
    stored = row["progress_json"]
    fields = None if stored is None else loads_object(stored)
    if fields is None:
        return None
    known = Progress(at=row["last_signal_at"] or 0, data=fields.get("data"))
    fraction = fields.get("fraction")
    return replace(
        known,
        fraction=fraction if isinstance(fraction, int | float) else None,
        message=text_at(fields, "message"),
        phase=text_at(fields, "phase"),
    )


def _milestone(row: Row) -> PlacedMilestone:
    milestone = Milestone(
        name=row["name"],
        sequence=row["sequence"],
        at=row["at"],
        fraction=row["fraction"],
        message=row["message"],
        phase=row["phase"],
        data=loads_or_raw(row["data_json"]),
    )
    return PlacedMilestone(milestone=milestone, position=row["position"])


def _requests(row: Row) -> tuple[str, ...]:
    """Every request of a run; the newest where the others cannot be read."""
    newest: str = row["request_id"]
    try:
        return texts_in(row["request_ids"]) or (newest,)
    except NotJson:
        return (newest,)
