"""The deletions that have begun, on disk: what a crash cuts off is made good at the next start."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramet.core.json import JsonValue, dumps, loads
from ramet.core.paths import AgentPath
from ramet.storage import Database

CREATE = """
CREATE TABLE IF NOT EXISTS ramet_deletions (
    target TEXT PRIMARY KEY NOT NULL,
    stored TEXT NOT NULL
) WITHOUT ROWID
"""
NOTE = "INSERT OR REPLACE INTO ramet_deletions (target, stored) VALUES (?, ?)"
ALL = "SELECT target, stored FROM ramet_deletions"
FORGET = "DELETE FROM ramet_deletions WHERE target = ?"


def create_deletions(database: Database) -> None:
    """Make the table, unless an earlier version has made it outside its migrations."""
    database.run(CREATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeletion:
    """An agent that is to be gone."""

    target: AgentPath
    stored: Sequence[AgentPath]
    """Whose files go: the agent's and those of all below it; of a root they lie together."""


class PendingDeletions:
    """What is being deleted; a row stands from before the first step until after the last."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, deletion: PendingDeletion) -> None:
        """Record that a deletion begins: from here on it is carried to its end."""
        stored = dumps([path.to_json() for path in deletion.stored])
        self._database.run(NOTE, dumps(deletion.target.to_json()), stored)

    def done(self, deletion: PendingDeletion) -> None:
        """Record that nothing of it is left to do."""
        self._database.run(FORGET, dumps(deletion.target.to_json()))

    def all(self) -> list[PendingDeletion]:
        """What an earlier process had begun."""
        return [
            PendingDeletion(
                target=AgentPath.from_json(loads(row["target"])),
                stored=[AgentPath.from_json(path) for path in _paths(row["stored"])],
            )
            for row in self._database.query(ALL)
        ]


def _paths(text: str) -> list[JsonValue]:
    stored = loads(text)
    return [*stored] if isinstance(stored, list) else []
