"""The rows of an agent's queue, in the order in which they came."""

from dataclasses import dataclass

from ramet.core.json import loads_or_raw
from ramet.core.retry import load_retry
from ramet.queue.records import QueueItem
from ramet.storage import Database, Row

CREATE = """
CREATE TABLE cf_agents_queues (
    id TEXT PRIMARY KEY NOT NULL,
    payload TEXT,
    callback TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    retry_options TEXT
)
"""
CREATE_ORDER = "CREATE INDEX cf_agents_queues_order ON cf_agents_queues (created_at)"
ADD = """
INSERT INTO cf_agents_queues (id, payload, callback, created_at, retry_options)
VALUES (?, ?, ?, ?, ?)
"""
FIRST = "SELECT * FROM cf_agents_queues ORDER BY created_at, rowid LIMIT 1"
ALL = "SELECT * FROM cf_agents_queues ORDER BY created_at, rowid"
FEW = """
SELECT * FROM cf_agents_queues WHERE rowid IN (
    SELECT rowid FROM cf_agents_queues ORDER BY created_at, rowid LIMIT ?
) ORDER BY created_at, rowid
"""
COUNT = "SELECT count(*) AS number FROM cf_agents_queues"
OF_ID = "SELECT * FROM cf_agents_queues WHERE id = ?"
REMOVE = "DELETE FROM cf_agents_queues WHERE id = ?"
REMOVE_ALL = "DELETE FROM cf_agents_queues"
REMOVE_OF_CALLBACK = "DELETE FROM cf_agents_queues WHERE callback = ?"


def create_queue(database: Database) -> None:
    """Make the table with its index."""
    database.run(CREATE)
    database.run(CREATE_ORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """A row of the table."""

    id: str
    payload: str | None
    callback: str
    created_at: int
    retry: str | None

    @property
    def internal(self) -> bool:
        """Whether ramet made it for itself, which it never does."""
        return False

    def shown(self) -> QueueItem:
        """The item as its agent sees it."""
        return QueueItem(
            id=self.id,
            callback=self.callback,
            payload=loads_or_raw(self.payload),
            created_at=self.created_at,
            retry=load_retry(self.retry),
        )


class QueueStore:
    """Reads and writes the rows.

    They are in order of their second and, within one, of their row numbers, which only grow while
    there are rows (QK-014).
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, item: StoredItem) -> None:
        """Put an item at the end."""
        self._database.run(ADD, item.id, item.payload, item.callback, item.created_at, item.retry)

    def first(self) -> StoredItem | None:
        """The item that is next; None when there is none."""
        row = self._database.one(FIRST)
        return None if row is None else _stored(row)

    def all(self) -> list[StoredItem]:
        """All items, the next one first."""
        return [_stored(row) for row in self._database.query(ALL)]

    def few(self, limit: int) -> list[StoredItem]:
        """So many items at most, the next one first."""
        return [_stored(row) for row in self._database.query(FEW, limit)]

    def count(self) -> int:
        """How many items there are."""
        number: int = self._database.query(COUNT)[0]["number"]
        return number

    def get(self, id: str) -> StoredItem | None:
        """One item; None when there is none of that id."""
        row = self._database.one(OF_ID, id)
        return None if row is None else _stored(row)

    def remove(self, id: str) -> bool:
        """Remove an item; False when there is none of that id."""
        return self._database.run(REMOVE, id) > 0

    def remove_all(self) -> int:
        """Remove all items; returns how many."""
        return self._database.run(REMOVE_ALL)

    def remove_of_callback(self, callback: str) -> int:
        """Remove the items that call one method; returns how many."""
        return self._database.run(REMOVE_OF_CALLBACK, callback)


def _stored(row: Row) -> StoredItem:
    return StoredItem(
        id=row["id"],
        payload=row["payload"],
        callback=row["callback"],
        created_at=row["created_at"],
        retry=row["retry_options"],
    )
