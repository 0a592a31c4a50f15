"""Single values an agent keeps by name, in the table `cf_agents_state`."""

from ramet.storage.database import Database

LAST_CHARACTER = "\U0010ffff"
GET = "SELECT state FROM cf_agents_state WHERE id = ?"
GET_ALL = "SELECT id, state FROM cf_agents_state WHERE id >= ? AND id < ?"
PUT = """
INSERT INTO cf_agents_state (id, state) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state
"""
DELETE = "DELETE FROM cf_agents_state WHERE id = ?"


class KeyValue:
    """Reads and writes texts by key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> str | None:
        """The text under `key`; None when there is none."""
        row = self._database.one(GET, key)
        return None if row is None else row["state"]

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """The texts under all keys that begin so."""
        rows = self._database.query(GET_ALL, prefix, prefix + LAST_CHARACTER)
        return {row["id"]: row["state"] for row in rows}

    def has(self, key: str) -> bool:
        """Whether something is stored under `key`."""
        return self._database.one(GET, key) is not None

    def put(self, key: str, text: str) -> None:
        """Store `text` under `key`, in place of what was there."""
        self._database.run(PUT, key, text)

    def delete(self, key: str) -> None:
        """Forget what is under `key`."""
        self._database.run(DELETE, key)
