"""The sub-agents that an agent has made, in its own database (SA-008 … SA-010)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ramet.core.clock import Clock
from ramet.storage import Database, Migration, Row

IDENTITY_VERSION = 1

CREATE = """
CREATE TABLE cf_agents_sub_agents (
    class TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    identity_version INTEGER NOT NULL,
    identity_name TEXT NOT NULL,
    PRIMARY KEY (class, name)
)
"""
ADD = """
INSERT INTO cf_agents_sub_agents (class, name, created_at, identity_version, identity_name)
VALUES (?, ?, ?, ?, ?) ON CONFLICT (class, name) DO NOTHING
"""
REMOVE = "DELETE FROM cf_agents_sub_agents WHERE class = ? AND name = ?"
RENAME = "UPDATE OR IGNORE cf_agents_sub_agents SET class = ? WHERE class = ?"
REMOVE_CLASS = "DELETE FROM cf_agents_sub_agents WHERE class = ?"
HAS = "SELECT 1 FROM cf_agents_sub_agents WHERE class = ? AND name = ?"
LIST = "SELECT class, name, created_at FROM cf_agents_sub_agents ORDER BY created_at, rowid"
FEW = """
SELECT class, name, created_at FROM cf_agents_sub_agents ORDER BY created_at, rowid LIMIT ?
"""
COUNT = "SELECT count(*) AS number FROM cf_agents_sub_agents"
LIST_CLASS = """
SELECT class, name, created_at FROM cf_agents_sub_agents WHERE class = ?
ORDER BY created_at, rowid
"""


def _create(database: Database) -> None:
    database.run(CREATE)


SUB_AGENT_MIGRATIONS = (Migration(component="agent:sub_agents", number=1, apply=_create),)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentInfo:
    """One sub-agent that was made."""

    class_name: str
    name: str
    created_at: int
    """Milliseconds since the epoch."""


class SubAgentRegistry:
    """Remembers which sub-agents exist; its writes may stand inside a caller's transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(self, class_name: str, name: str) -> bool:
        """Remember a sub-agent; False when it was known already."""
        now = self._clock.now_ms()
        return self._database.run(ADD, class_name, name, now, IDENTITY_VERSION, name) > 0

    def remove(self, class_name: str, name: str) -> bool:
        """Forget a sub-agent; False when it was not known."""
        return self._database.run(REMOVE, class_name, name) > 0

    def rename(self, names: Mapping[str, str]) -> None:
        """Keep the sub-agents of classes that had other names before under those of today."""
        for former, today in names.items():
            self._database.run(RENAME, today, former)
            self._database.run(REMOVE_CLASS, former)  # those known under both

    def has(self, class_name: str, name: str) -> bool:
        """Whether the sub-agent was made and not deleted since."""
        return self._database.one(HAS, class_name, name) is not None

    def few(self, limit: int) -> Sequence[SubAgentInfo]:
        """So many sub-agents at most, in the order they were made."""
        return [_info(row) for row in self._database.query(FEW, limit)]

    def count(self) -> int:
        """How many sub-agents there are."""
        number: int = self._database.query(COUNT)[0]["number"]
        return number

    def list(self, class_name: str | None = None) -> list[SubAgentInfo]:
        """All sub-agents in the order they were made, of one class or of all."""
        rows = (
            self._database.query(LIST)
            if class_name is None
            else self._database.query(LIST_CLASS, class_name)
        )
        return [_info(row) for row in rows]


def _info(row: Row) -> SubAgentInfo:
    return SubAgentInfo(class_name=row["class"], name=row["name"], created_at=row["created_at"])
