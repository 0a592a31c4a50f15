"""Where an agent's state is kept: one JSON text among the agent's own values."""

from ramet.storage import Database, KeyValue

STATE_KEY = "cf_state_row_id"


class StateStore:
    """Reads and writes the encoded state."""

    def __init__(self, database: Database) -> None:
        self._values = KeyValue(database)
        self.where = database.path
        """The file, for errors."""

    def read(self) -> str | None:
        """The encoded state; None when none was ever set."""
        return self._values.get(STATE_KEY)

    def write(self, encoded: str) -> None:
        """Store the encoded state, committed on return."""
        self._values.put(STATE_KEY, encoded)
