"""The rows of schedules in a root's database, its own and those of the agents below it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ramet.core.json import dumps, loads, loads_or_raw
from ramet.core.paths import AgentPath
from ramet.core.retry import load_retry
from ramet.schedules.policy import Timing
from ramet.schedules.records import SCHEDULE_TYPES, Schedule, ScheduleType
from ramet.storage import Database, Row

CREATE = """
CREATE TABLE cf_agents_schedules (
    id TEXT PRIMARY KEY NOT NULL,
    callback TEXT NOT NULL,
    payload TEXT,
    type TEXT NOT NULL CHECK (type IN ('scheduled', 'delayed', 'cron', 'interval')),
    time INTEGER NOT NULL,
    delayInSeconds INTEGER,
    cron TEXT,
    intervalSeconds INTEGER,
    running INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    execution_started_at INTEGER,
    retry_options TEXT,
    owner_path TEXT,
    owner_path_key TEXT
)
"""
CREATE_DUE = "CREATE INDEX cf_agents_schedules_due ON cf_agents_schedules (time)"
CREATE_OWNED = """
CREATE INDEX cf_agents_schedules_owned ON cf_agents_schedules (owner_path_key, callback)
"""
CREATE_RUNNING = """
CREATE INDEX cf_agents_schedules_running ON cf_agents_schedules (execution_started_at)
WHERE running = 1
"""
PUT = """
INSERT INTO cf_agents_schedules (
    id, callback, payload, type, time, delayInSeconds, cron, intervalSeconds,
    created_at, retry_options, owner_path, owner_path_key
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET time = excluded.time, delayInSeconds = excluded.delayInSeconds, payload = excluded.payload
RETURNING rowid, *
"""
ALIKE = """
SELECT rowid, * FROM cf_agents_schedules
WHERE owner_path_key IS ? AND callback = ? AND type = ? AND payload IS ?
    AND cron IS ? AND intervalSeconds IS ? AND id GLOB ?
ORDER BY rowid LIMIT 1
"""
OF_ID = "SELECT rowid, * FROM cf_agents_schedules WHERE id = ? AND owner_path_key IS ?"
OF_OWNER = """
SELECT rowid, * FROM cf_agents_schedules WHERE owner_path_key IS ? ORDER BY time, rowid
"""
FEW_OF_USER = """
SELECT rowid, * FROM cf_agents_schedules WHERE rowid IN (
    SELECT rowid FROM cf_agents_schedules
    WHERE owner_path_key IS ? AND id NOT GLOB 'cf:*' ORDER BY time, rowid LIMIT ?
) ORDER BY time, rowid
"""
COUNT_OF_USER = """
SELECT count(*) AS number FROM cf_agents_schedules
WHERE owner_path_key IS ? AND id NOT GLOB 'cf:*'
"""
BELOW = """
SELECT rowid, * FROM cf_agents_schedules
WHERE owner_path_key = ? OR (owner_path_key >= ? AND owner_path_key < ?)
ORDER BY owner_path_key, rowid
"""
OWNERS = """
SELECT DISTINCT owner_path_key FROM cf_agents_schedules WHERE owner_path_key IS NOT NULL
"""
MOVE = """
UPDATE OR REPLACE cf_agents_schedules
SET owner_path = ?1, owner_path_key = ?1,
    id = CASE WHEN id GLOB 'cf:*' THEN replace(id, ?2, ?1) ELSE id END
WHERE owner_path_key = ?2
"""
DUE = """
SELECT rowid, * FROM cf_agents_schedules
WHERE time <= ? AND (time, rowid) > (?, ?) ORDER BY time, rowid LIMIT ?
"""
DUE_COUNTS = """
SELECT callback, count(*) AS number FROM cf_agents_schedules
WHERE time <= ? AND type IN ('delayed', 'scheduled') AND id NOT GLOB 'cf:*' GROUP BY callback
"""
EARLIEST = """
SELECT id, time FROM cf_agents_schedules WHERE running = 0 ORDER BY time LIMIT ?
"""
NOT_DATED = """
SELECT rowid, * FROM cf_agents_schedules
WHERE time > ? AND running = 0 AND (type IN ('cron', 'interval') OR id GLOB 'cf:*')
"""
BEGUN_AFTER = """
SELECT 1 FROM cf_agents_schedules
WHERE running = 1 AND (time > ?1 OR execution_started_at > ?1) LIMIT 1
"""
BEGUN_BY = """
UPDATE cf_agents_schedules
SET time = min(time, ?1), execution_started_at = min(execution_started_at, ?1)
WHERE running = 1 AND (time > ?1 OR execution_started_at > ?1)
"""
RUNNING = "SELECT execution_started_at FROM cf_agents_schedules WHERE running = 1"
CLAIM = "UPDATE cf_agents_schedules SET running = 1, execution_started_at = ? WHERE id = ?"
RELEASE = """
UPDATE cf_agents_schedules SET running = 0, execution_started_at = NULL WHERE id = ?
"""
RESCHEDULE = """
UPDATE cf_agents_schedules SET time = ?, running = 0, execution_started_at = NULL WHERE id = ?
"""
REMOVE = "DELETE FROM cf_agents_schedules WHERE id = ?"
TAKE = "DELETE FROM cf_agents_schedules WHERE id = ? AND owner_path_key IS ? RETURNING rowid, *"
REMOVE_AS_IT_WAS = "DELETE FROM cf_agents_schedules WHERE id = ? AND time = ?"

ID_LENGTH = 9
INTERNAL = "cf:"
"""How the ids of rows begin that ramet made for itself; random ids have no colon."""
_USERS_IDS = "[^:]" * ID_LENGTH
_KNOWN_OWNERS = 1024
"""Owners whose paths are kept as text and back: a turn of a sub-agent needs them several times."""

Position: TypeAlias = tuple[int, int]
"""A row's place in the order in which rows are due: its time and its number."""
BEGINNING: Position = (-(2**62), 0)


def create_schedules(database: Database) -> None:
    """Make the table with its indexes."""
    for statement in (CREATE, CREATE_DUE, CREATE_OWNED, CREATE_RUNNING):
        database.run(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule that was checked and is to be stored."""

    owner: AgentPath | None
    """The sub-agent whose method it calls; None for the root itself."""
    callback: str
    payload: str
    """JSON text."""
    timing: Timing
    retry: str | None = None
    idempotent: bool = False
    """Whether one that is alike and stored already stands for it."""
    id: str | None = None
    """Given for rows of ramet's own; storing one of the same id again moves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    """A row of the table."""

    id: str
    callback: str
    payload: str | None
    timing: Timing
    running: bool
    started: int | None
    """When its execution began, in seconds since the epoch."""
    retry: str | None
    owner: AgentPath | None
    position: Position

    @property
    def internal(self) -> bool:
        """Whether ramet made it for itself: it calls a handler that users cannot name (D16)."""
        return self.id.startswith(INTERNAL)

    def shown(self) -> Schedule:
        """The schedule as its owner sees it."""
        timing = self.timing
        return Schedule(
            id=self.id,
            callback=self.callback,
            payload=loads_or_raw(self.payload),
            type=timing.type,
            time=timing.time,
            retry=load_retry(self.retry),
            delay_in_seconds=timing.delay_in_seconds,
            cron=timing.cron,
            interval_seconds=timing.interval_seconds,
        )


class ScheduleStore:
    """Reads and writes the rows; what is read in bulk comes in pages, by an index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, id: str, new: NewSchedule, *, now_ms: int) -> StoredSchedule:
        """Store a schedule, in place of one of the same id."""
        timing = new.timing
        owner = owner_key(new.owner)
        row = self._database.one(
            PUT,
            id,
            new.callback,
            new.payload,
            timing.type,
            timing.time,
            timing.delay_in_seconds,
            timing.cron,
            timing.interval_seconds,
            now_ms // 1000,
            new.retry,
            owner,
            owner,
        )
        assert row is not None
        return _stored(row)

    def alike(self, new: NewSchedule) -> StoredSchedule | None:
        """The first one stored with the same owner, type, callback, payload and repetition."""
        timing = new.timing
        row = self._database.one(
            ALIKE,
            owner_key(new.owner),
            new.callback,
            timing.type,
            new.payload,
            timing.cron,
            timing.interval_seconds,
            _USERS_IDS,
        )
        return None if row is None else _stored(row)

    def get(self, id: str, owner: AgentPath | None) -> StoredSchedule | None:
        """One of an owner's schedules; None when there is none, or it is another's."""
        row = self._database.one(OF_ID, id, owner_key(owner))
        return None if row is None else _stored(row)

    def of_owner(self, owner: AgentPath | None) -> list[StoredSchedule]:
        """All schedules of an owner, the earliest first."""
        return [_stored(row) for row in self._database.query(OF_OWNER, owner_key(owner))]

    def few_of_user(self, owner: AgentPath | None, limit: int) -> list[StoredSchedule]:
        """So many schedules of an owner at most, the earliest first; none of ramet's own."""
        rows = self._database.query(FEW_OF_USER, owner_key(owner), limit)
        return [_stored(row) for row in rows]

    def count_of_user(self, owner: AgentPath | None) -> int:
        """How many schedules an owner has; ramet's own are not counted."""
        number: int = self._database.query(COUNT_OF_USER, owner_key(owner))[0]["number"]
        return number

    def below(self, path: AgentPath) -> list[StoredSchedule]:
        """All schedules of a sub-agent and of those below it.

        A path's text is that of its parent without the closing bracket, a comma and one more step
        in JSON. So whole steps are compared, whatever characters the names have (SC-045).
        """
        key = dumps(path.to_json())
        stem = key[:-1]
        rows = self._database.query(BELOW, key, stem + ",", stem + "-")
        return [_stored(row) for row in rows]

    def owners(self) -> list[AgentPath]:
        """The sub-agents that have schedules."""
        return [_owner_of(row["owner_path_key"]) for row in self._database.query(OWNERS)]

    def move(self, owner: AgentPath, target: AgentPath) -> None:
        """Give the schedules of one path to another; ids of ramet's own name it, too."""
        self._database.run(MOVE, owner_key(target), owner_key(owner))

    def due(self, now: int, *, after: Position, limit: int) -> list[StoredSchedule]:
        """The next rows that are due, in the order in which they are due."""
        return [_stored(row) for row in self._database.query(DUE, now, *after, limit)]

    def due_counts(self, now: int) -> dict[str, int]:
        """How many one-shot rows of each callback are due."""
        return {row["callback"]: row["number"] for row in self._database.query(DUE_COUNTS, now)}

    def earliest(self, limit: int) -> list[tuple[str, int]]:
        """Ids and times of the rows that are due first among those not marked as running."""
        return [(row["id"], row["time"]) for row in self._database.query(EARLIEST, limit)]

    def not_dated(self, *, after: int) -> list[StoredSchedule]:
        """The rows due after a moment that no user has set a date for, and that do not run.

        They repeat, or ramet made them for itself.
        """
        return [_stored(row) for row in self._database.query(NOT_DATED, after)]

    def begun_by(self, now: int) -> None:
        """Take what is marked as running for begun now, where it says later."""
        if self._database.one(BEGUN_AFTER, now) is not None:
            self._database.run(BEGUN_BY, now)

    def running_since(self) -> list[int | None]:
        """When the rows that are marked as running were begun."""
        return [row["execution_started_at"] for row in self._database.query(RUNNING)]

    def claim(self, id: str, *, now: int) -> None:
        """Mark a row as running."""
        self._database.run(CLAIM, now, id)

    def release(self, id: str) -> bool:
        """Mark a row as not running; False when it is gone."""
        return self._database.run(RELEASE, id) > 0

    def reschedule(self, id: str, time: int) -> None:
        """Move a row that was carried out to its next time."""
        self._database.run(RESCHEDULE, time, id)

    def remove(self, id: str) -> None:
        """Remove a row."""
        self._database.run(REMOVE, id)

    def take(self, id: str, owner: AgentPath | None) -> StoredSchedule | None:
        """Remove one of an owner's schedules; None when there is none, or it is another's."""
        row = self._database.one(TAKE, id, owner_key(owner))
        return None if row is None else _stored(row)

    def remove_unmoved(self, row: StoredSchedule) -> None:
        """Remove a row that was carried out, unless it was moved to another time meanwhile."""
        self._database.run(REMOVE_AS_IT_WAS, row.id, row.timing.time)

    def remove_all(self, rows: list[StoredSchedule]) -> None:
        """Remove rows, together."""
        with self._database.transaction():
            for row in rows:
                self.remove(row.id)


@lru_cache(maxsize=_KNOWN_OWNERS)
def owner_key(owner: AgentPath | None) -> str | None:
    """The text under which an owner's rows are found; None for the root."""
    return None if owner is None else dumps(owner.to_json())


@lru_cache(maxsize=_KNOWN_OWNERS)
def _owner_of(key: str) -> AgentPath:
    return AgentPath.from_json(loads(key))


def _stored(row: Row) -> StoredSchedule:
    owner = row["owner_path_key"]
    return StoredSchedule(
        id=row["id"],
        callback=row["callback"],
        payload=row["payload"],
        timing=Timing(
            type=_type(row["type"]),
            time=row["time"],
            delay_in_seconds=row["delayInSeconds"],
            cron=row["cron"],
            interval_seconds=row["intervalSeconds"],
        ),
        running=bool(row["running"]),
        started=row["execution_started_at"],
        retry=row["retry_options"],
        owner=None if owner is None else _owner_of(owner),
        position=(row["time"], row["rowid"]),
    )


def _type(stored: str) -> ScheduleType:
    for known in SCHEDULE_TYPES:
        if stored == known:
            return known
    raise ValueError(f"{stored!r} is not a type of schedule")
