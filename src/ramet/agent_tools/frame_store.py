"""The frames of runs that are no chunks of the child, with their numbers: `cf_agent_tool_frames`.

A chunk needs no row: chunk *i* has *i* plus the count of these frames at or before it (D2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.core.json import dumps
from ramet.storage import Database, Row

FrameKind: TypeAlias = Literal["started", "progress", "milestone", "terminal"]

CREATE_TABLE = """
CREATE TABLE cf_agent_tool_frames (
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    position INTEGER,
    body TEXT,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID
"""
INSERT = """
INSERT INTO cf_agent_tool_frames (run_id, number, kind, position, body) VALUES (?, ?, ?, ?, ?)
"""
AFTER = """
SELECT run_id, number, kind, position, body FROM cf_agent_tool_frames
WHERE run_id = ? AND number > ? ORDER BY number LIMIT ?
"""
LAST_TERMINAL = """
SELECT run_id, number, kind, position, body FROM cf_agent_tool_frames
WHERE run_id = ? AND kind = 'terminal' ORDER BY number DESC LIMIT 1
"""
LINE = """
SELECT count(position) AS frames, max(position) AS position, max(number) AS number,
    count(*) > count(position) AS closed
FROM cf_agent_tool_frames WHERE run_id = ?
"""
MILESTONES = """
SELECT body FROM cf_agent_tool_frames WHERE run_id = ? AND kind = 'milestone' ORDER BY number
"""
FORGET_BODY = "UPDATE cf_agent_tool_frames SET body = NULL WHERE run_id = ? AND number = ?"
LAST_PROGRESS = """
SELECT run_id, number, kind, position, body FROM cf_agent_tool_frames
WHERE run_id = ? AND kind = 'progress' AND body IS NOT NULL ORDER BY number DESC LIMIT 1
"""
CHUNK_COUNTS = """
SELECT run_id, max(position) AS chunks FROM cf_agent_tool_frames
WHERE run_id IN (SELECT value FROM json_each(?)) GROUP BY run_id
"""
DELETE = "DELETE FROM cf_agent_tool_frames WHERE run_id = ?"


def create_frames(database: Database) -> None:
    """Make the table; one of the first migration's steps."""
    database.run(CREATE_TABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFrame:
    """One frame that is no chunk."""

    run_id: str
    number: int
    kind: FrameKind
    position: int | None
    """How many chunk indices stand before it; None for a frame outside the line of chunks."""
    body: str | None = None
    """The chunk that carries a progress or a milestone; an overtaken progress has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How far the numbering of a run has come, as far as its frames tell."""

    frames: int = 0
    """How many frames stand in the line of chunks."""
    position: int = 0
    """The chunk index that the last of them stands before."""
    number: int = -1
    """The highest number of a frame."""
    closed: bool = False
    """Whether a frame stands outside the line, as all later ones then do."""


class FrameStore:
    """Reads and writes these frames; the only place that knows the table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, frame: StoredFrame, *, overtakes: int | None = None) -> None:
        """Keep a frame; of the progress frame that it overtakes only the number stays."""
        if overtakes is not None:
            self._database.run(FORGET_BODY, frame.run_id, overtakes)
        self._database.run(
            INSERT, frame.run_id, frame.number, frame.kind, frame.position, frame.body
        )

    def after(self, run_id: str, number: int, *, limit: int) -> list[StoredFrame]:
        """The next frames of a run above a number, in order."""
        return [_frame(row) for row in self._database.query(AFTER, run_id, number, limit)]

    def last_terminal(self, run_id: str) -> StoredFrame | None:
        """The frame that said how the run ended, the last time it did."""
        row = self._database.one(LAST_TERMINAL, run_id)
        return None if row is None else _frame(row)

    def line(self, run_id: str) -> Line:
        """How far a run was numbered."""
        row = self._database.one(LINE, run_id)
        if row is None or row["number"] is None:
            return Line()
        return Line(
            frames=row["frames"],
            position=row["position"] or 0,
            number=row["number"],
            closed=bool(row["closed"]),
        )

    def last_progress(self, run_id: str) -> StoredFrame | None:
        """The latest progress of a run."""
        row = self._database.one(LAST_PROGRESS, run_id)
        return None if row is None else _frame(row)

    def milestones(self, run_id: str) -> list[str]:
        """The bodies of a run's milestones, in order."""
        return [row["body"] for row in self._database.query(MILESTONES, run_id)]

    def chunk_counts(self, run_ids: Sequence[str]) -> dict[str, int]:
        """How many chunks stand before the last frame of each run."""
        rows = self._database.query(CHUNK_COUNTS, dumps(run_ids))
        return {row["run_id"]: row["chunks"] or 0 for row in rows}

    def delete(self, run_id: str) -> None:
        """Forget the frames of a run."""
        self._database.run(DELETE, run_id)


def _frame(row: Row) -> StoredFrame:
    return StoredFrame(
        run_id=row["run_id"],
        number=row["number"],
        kind=row["kind"],
        position=row["position"],
        body=row["body"],
    )
