"""The durable index of next wake-ups: which root agent must be opened when.

A moment stands here whether its agent is open or not.

Start-up reads what is due, not what exists (one row for each agent that waits for something).
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ramet.core.clock import Clock, Timer
from ramet.core.fence import Fence
from ramet.core.json import NotJson, dumps, loads
from ramet.core.paths import AgentPath
from ramet.errors import StorageError
from ramet.storage import Database, Row

_log = logging.getLogger("ramet.host")

CREATE = """
CREATE TABLE IF NOT EXISTS ramet_wakeups (
    root TEXT PRIMARY KEY NOT NULL,
    due_ms INTEGER NOT NULL,
    set_aside INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID
"""
CREATE_INDEX = """
CREATE INDEX IF NOT EXISTS ramet_wakeups_due ON ramet_wakeups (due_ms) WHERE set_aside = 0
"""
CREATE_ASIDE_INDEX = """
CREATE INDEX IF NOT EXISTS ramet_wakeups_aside ON ramet_wakeups (set_aside) WHERE set_aside = 1
"""
ADD_SET_MS = "ALTER TABLE ramet_wakeups ADD COLUMN set_ms INTEGER NOT NULL DEFAULT 0"
CREATE_SET_INDEX = "CREATE INDEX ramet_wakeups_set ON ramet_wakeups (set_ms)"
SET = """
INSERT INTO ramet_wakeups (root, due_ms, set_ms) VALUES (?, ?, ?)
ON CONFLICT (root) DO UPDATE
SET due_ms = excluded.due_ms, set_ms = excluded.set_ms, set_aside = 0
"""
PROMISE = """
INSERT INTO ramet_wakeups (root, due_ms, set_ms) VALUES (?, ?, ?)
ON CONFLICT (root) DO UPDATE
SET due_ms = min(due_ms, excluded.due_ms), set_ms = excluded.set_ms
"""
SET_LATER = "SELECT 1 FROM ramet_wakeups WHERE set_ms > ? LIMIT 1"
WAKE_THOSE_SET_LATER = """
UPDATE ramet_wakeups SET due_ms = min(due_ms, ?1), set_ms = ?1 WHERE set_ms > ?2
"""
OF_CLASS = "SELECT root, due_ms, set_ms FROM ramet_wakeups WHERE root >= ? AND root < ?"
PUT_OFF = "UPDATE ramet_wakeups SET due_ms = ?1, set_ms = ?2 WHERE root = ?3 AND due_ms <= ?2"
REMOVE = "DELETE FROM ramet_wakeups WHERE root = ?"
SET_ASIDE = "UPDATE ramet_wakeups SET set_aside = 1 WHERE root = ?"
TAKE_UP = "UPDATE ramet_wakeups SET set_aside = 0 WHERE set_aside = 1"
DUE = """
SELECT root FROM ramet_wakeups WHERE set_aside = 0 AND due_ms <= ? ORDER BY due_ms LIMIT ?
"""
IS_DUE = "SELECT 1 AS due FROM ramet_wakeups WHERE root = ? AND set_aside = 0 AND due_ms <= ?"
NEXT = """
SELECT due_ms FROM ramet_wakeups WHERE set_aside = 0 AND due_ms > ? ORDER BY due_ms LIMIT 1
"""
OF_ROOT = "SELECT due_ms FROM ramet_wakeups WHERE root = ?"
COUNT_DUE = "SELECT count(*) AS number FROM ramet_wakeups WHERE set_aside = 0 AND due_ms <= ?"
EARLIEST = "SELECT due_ms FROM ramet_wakeups WHERE set_aside = 0 ORDER BY due_ms LIMIT 1"


def create_wakeups(database: Database) -> None:
    """Make the table of wake-ups."""
    for statement in (CREATE, CREATE_INDEX, CREATE_ASIDE_INDEX):
        database.run(statement)


def add_set_ms(database: Database) -> None:
    """Note of each wake-up when it was set."""
    database.run(ADD_SET_MS)
    database.run(CREATE_SET_INDEX)


LONGEST_WAIT_MS = 30_000
"""The wall clock is looked at that often while a root waits: it may be set, or have stood still."""
STEP_MS = 1_000
"""What the wall clock goes back by at once without anybody taking note."""


class WakeupIndex:
    """Next wake-ups by root agent, with one timer for the earliest of them.

    Moments are of the wall clock, timers run on another one. So none runs for long, and a root that
    was noted later than now, by a wall clock that was set back since, is woken to look anew.
    """

    def __init__(self, database: Database, clock: Clock, *, on_due: Callable[[], object]) -> None:
        self._database = database
        self._clock = clock
        self._on_due = on_due
        self._timer: Timer | None = None
        self._timer_due: int | None = None
        self._read_ms = clock.now_ms()
        """Whoever was due at this moment has been read."""
        database.run(TAKE_UP)
        self._wake_after_step()

    def set(self, root: AgentPath, due_ms: int | None) -> None:
        """Note when a root must be awake next; None for never. Committed on return."""
        key = dumps(root.to_json())
        if due_ms is None:
            self._database.run(REMOVE, key)
        else:
            self._database.run(SET, key, due_ms, self._clock.now_ms())
            self._at(due_ms)

    def promise(self, root: AgentPath, due_ms: int) -> None:
        """Note that a root must be awake at a moment or earlier. Committed on return."""
        self._database.run(PROMISE, dumps(root.to_json()), due_ms, self._clock.now_ms())
        self._at(due_ms)

    def rename(self, names: Mapping[str, str]) -> None:
        """Wake the roots whose classes had other names before under those of today (D16).

        A root's text begins with its class, so those of one class lie side by side.
        """
        for former in names:
            stem = f"[[{dumps(former)}"
            for row in self._database.query(OF_CLASS, stem + ",", stem + "-"):
                root = self._root(row)
                if root is None:
                    continue
                with self._database.transaction():
                    key = dumps(root.renamed(names).to_json())
                    self._database.run(PROMISE, key, row["due_ms"], row["set_ms"])
                    self._database.run(REMOVE, row["root"])

    def put_off(self, root: AgentPath, due_ms: int) -> None:
        """Move a moment that has come to a later one, unless it was moved or removed meanwhile."""
        self._database.run(PUT_OFF, due_ms, self._clock.now_ms(), dumps(root.to_json()))

    def set_aside(self, root: AgentPath) -> None:
        """Leave a root alone until the next process: this one does not know its class.

        Its moment is kept, and counts again as soon as a new one is set.
        """
        self._database.run(SET_ASIDE, dumps(root.to_json()))

    def is_due(self, root: AgentPath) -> bool:
        """Whether a root's moment has come."""
        key = dumps(root.to_json())
        return self._database.one(IS_DUE, key, self._clock.now_ms()) is not None

    def due(self, limit: int) -> list[AgentPath]:
        """The roots whose moment has come, the longest overdue first."""
        self._read_ms = self._clock.now_ms()
        rows = self._database.query(DUE, self._read_ms, limit)
        return [root for root in map(self._root, rows) if root is not None]

    def _root(self, row: Row) -> AgentPath | None:
        """Whose a row is; one that nobody can read is left alone."""
        try:
            return AgentPath.from_json(loads(row["root"]))
        except NotJson as error:
            _log.error("%s has a wake-up for nobody: %s", self._database.path, error)
            self._database.run(SET_ASIDE, row["root"])
            return None

    def watch(self) -> None:
        """Set the timer to the earliest moment that had not come when `due` was asked last."""
        row = self._database.one(NEXT, min(self._read_ms, self._clock.now_ms()))
        if row is not None:
            self._at(row["due_ms"])

    def stop(self) -> None:
        """Forget the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_due = None

    def _at(self, due_ms: int) -> None:
        if self._timer_due is not None and self._timer_due <= due_ms:
            return
        self._timer_due = due_ms
        self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._timer_due is not None:
            wait_ms = min(LONGEST_WAIT_MS, max(0, self._timer_due - self._clock.now_ms()))
            self._timer = self._clock.call_later(wait_ms / 1000, self._look)

    def _look(self) -> None:
        self._timer = None
        try:
            stepped = self._wake_after_step()
        except StorageError:
            _log.exception("The index of wake-ups cannot be written; it is tried again")
            stepped = False
        if stepped or self._timer_due is None or self._timer_due <= self._clock.now_ms():
            self._timer_due = None
            self._on_due()
        else:
            self._wait()

    def _wake_after_step(self) -> bool:
        """Have those look anew that were noted at a moment that is still to come."""
        now_ms = self._clock.now_ms()
        stepped = self._database.one(SET_LATER, now_ms + STEP_MS) is not None
        if stepped:
            self._database.run(WAKE_THOSE_SET_LATER, now_ms, now_ms + STEP_MS)
        return stepped


@dataclass(frozen=True, slots=True)
class RootWakeups:
    """The index as one root agent sees it."""

    index: WakeupIndex
    root: AgentPath
    fence: Fence

    def set(self, due_ms: int | None) -> None:
        """Wake the root at a moment; see `core.alarm.Wakeups`."""
        self.fence.check()
        self.index.set(self.root, due_ms)

    def promise(self, due_ms: int) -> None:
        """Wake the root at a moment or earlier; see `core.alarm.Wakeups`."""
        self.fence.check()
        self.index.promise(self.root, due_ms)


class StoredWakeups:
    """The index as it stands on disk, for whoever only looks at it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, root: AgentPath) -> int | None:
        """When a root is to be woken next, in milliseconds since the epoch; None for never."""
        return self._due_ms(self._database.one(OF_ROOT, dumps(root.to_json())))

    def earliest(self) -> int | None:
        """When the first of all roots is to be woken; None when none is."""
        return self._due_ms(self._database.one(EARLIEST))

    def count_due(self, now_ms: int) -> int:
        """How many roots should be awake by now."""
        row = self._database.one(COUNT_DUE, now_ms)
        return 0 if row is None else row["number"]

    def _due_ms(self, row: Row | None) -> int | None:
        return None if row is None else row["due_ms"]
