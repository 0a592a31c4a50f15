"""What is kept on disk to take up lost turns: incidents, the progress counter, what was asked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Final

from ramet.chat.recovery_policy import INCIDENT_PREFIX, Incident
from ramet.core.clock import Clock
from ramet.core.json import JsonObject, JsonValue, dumps, loads_object
from ramet.storage import Database, Migration

CREATE = """
CREATE TABLE IF NOT EXISTS cf_chat_recovery (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL
)
"""
PUT = """
INSERT INTO cf_chat_recovery (key, value, updated_at) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""
GET = "SELECT value FROM cf_chat_recovery WHERE key = ?"
STARTING_WITH = "SELECT value FROM cf_chat_recovery WHERE substr(key, 1, ?) = ? ORDER BY rowid"
STALE = """
SELECT key FROM cf_chat_recovery WHERE substr(key, 1, ?) = ? AND updated_at < ? LIMIT ?
"""
DELETE = "DELETE FROM cf_chat_recovery WHERE key = ?"
DELETE_SOME = "DELETE FROM cf_chat_recovery WHERE key IN (SELECT value FROM json_each(?))"

PROGRESS_KEY: Final = "cf:chat-recovery:progress"
REQUEST_PREFIX: Final = "cf:chat-recovery:request:"
DELETED_AT_ONCE: Final = 128
"""How many incidents one statement sweeps (CR-025)."""


def _create(database: Database) -> None:
    database.run(CREATE)


RECOVERY_MIGRATIONS = (Migration(component="chat:recovery", number=1, apply=_create),)
"""The table of what is kept to take up lost turns."""

_FIELDS = frozenset(each.name for each in fields(Incident))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came with a turn's question beside the messages."""

    body: Mapping[str, JsonValue] = field(default_factory=dict)
    client_tools: Sequence[JsonObject] = ()


class RecoveryStore:
    """Reads and writes what recovery keeps."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def incident(self, incident_id: str) -> Incident | None:
        """The incident with that id."""
        stored = self._value(INCIDENT_PREFIX + incident_id)
        return None if stored is None else _incident(stored)

    def incidents(self) -> list[Incident]:
        """Every incident that is kept."""
        rows = self._database.query(STARTING_WITH, len(INCIDENT_PREFIX), INCIDENT_PREFIX)
        found = (loads_object(str(row["value"])) for row in rows)
        incidents = (_incident(stored) for stored in found if stored is not None)
        return [incident for incident in incidents if incident is not None]

    def keep_incident(self, incident: Incident) -> None:
        """Store an incident in place of what was known of it."""
        self._put(INCIDENT_PREFIX + incident.incident_id, asdict(incident))

    def forget_incident(self, incident_id: str) -> bool:
        """Forget an incident; False when there was none."""
        return bool(self._database.run(DELETE, INCIDENT_PREFIX + incident_id))

    def sweep(self, *, older_than: int) -> None:
        """Forget incidents in which nothing has happened since a moment (CR-025)."""
        while True:
            rows = self._database.query(
                STALE, len(INCIDENT_PREFIX), INCIDENT_PREFIX, older_than, DELETED_AT_ONCE
            )
            if not rows:
                return
            self._delete(str(row["key"]) for row in rows)

    def forget_incidents(self) -> None:
        """Forget every incident: the chat was cleared."""
        for incident in self.incidents():
            self.forget_incident(incident.incident_id)

    def progress(self) -> int:
        """The counter of new content; it only grows (CR-008)."""
        stored = self._value(PROGRESS_KEY)
        count = 0 if stored is None else stored.get("count")
        return count if isinstance(count, int) else 0

    def add_progress(self) -> None:
        """Count one more."""
        self._put(PROGRESS_KEY, {"count": self.progress() + 1})

    def keep_asked(self, turn_id: str, asked: Asked) -> None:
        """Remember what came with a turn's question; nothing is stored for nothing."""
        if asked.body or asked.client_tools:
            stored = {"body": dict(asked.body), "clientTools": list(asked.client_tools)}
            self._put(REQUEST_PREFIX + turn_id, stored)

    def asked(self, turn_id: str) -> Asked:
        """What came with a turn's question."""
        stored = self._value(REQUEST_PREFIX + turn_id) or {}
        body, tools = stored.get("body"), stored.get("clientTools")
        return Asked(
            body=body if isinstance(body, dict) else {},
            client_tools=[tool for tool in tools if isinstance(tool, dict)]
            if isinstance(tools, list)
            else (),
        )

    def forget_asked(self, turn_id: str) -> None:
        """Forget what came with the question of a turn that has ended."""
        self._database.run(DELETE, REQUEST_PREFIX + turn_id)

    def _value(self, key: str) -> JsonObject | None:
        row = self._database.one(GET, key)
        return None if row is None else loads_object(str(row["value"]))

    def _put(self, key: str, value: Mapping[str, object]) -> None:
        self._database.run(PUT, key, dumps(value), self._clock.now_ms())

    def _delete(self, keys: Iterable[str]) -> None:
        self._database.run(DELETE_SOME, dumps([*keys]))


def _incident(stored: JsonObject) -> Incident | None:
    """An incident as `keep_incident` wrote it; None for what it did not write (CR-020)."""
    known: dict[str, object] = {key: value for key, value in stored.items() if key in _FIELDS}
    try:
        return Incident(**known)  # type: ignore[arg-type]  # written by `keep_incident`
    except TypeError:
        return None
