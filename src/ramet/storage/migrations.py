"""Numbered schema changes, kept per component, run when an older database is opened.

The agent's own version stands under `cf_schema_version`; a component such as "chat" has its own
row, so that a class that becomes a chat agent later gains those tables. A current database runs no
DDL (AT-032).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ramet.errors import DatabaseUnusable
from ramet.storage.database import Database
from ramet.storage.key_value import KeyValue

VERSION_KEY = "cf_schema_version"
CREATE_KEY_VALUE = """
CREATE TABLE IF NOT EXISTS cf_agents_state (
    id TEXT PRIMARY KEY NOT NULL,
    state TEXT
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of one component's schema."""

    component: str
    """"agent" for what every agent has, else the name of a kind of agent."""
    number: int
    """1 for the first; without gaps."""
    apply: Callable[[Database], None]


@dataclass(frozen=True, slots=True)
class Schema:
    """All migrations that one kind of agent needs, in order."""

    migrations: tuple[Migration, ...]

    def newest(self) -> dict[str, int]:
        """The newest version of each component."""
        newest: dict[str, int] = {}
        for migration in self.migrations:
            newest[migration.component] = migration.number
        return newest


def migrate(database: Database, schema: Schema) -> None:
    """Bring a database up to `schema` in one transaction; nothing happens when it is current.

    Raises:
        DatabaseUnusable: The database was written by a newer ramet.
    """
    if is_current(database, schema):
        return
    with database.transaction():
        database.run(CREATE_KEY_VALUE)
        store = KeyValue(database)
        versions = store.beginning_with(VERSION_KEY)
        for migration in schema.migrations:
            if migration.number > _stored_version(database, versions, migration.component):
                migration.apply(database)
                store.put(_version_key(migration.component), str(migration.number))


def is_current(database: Database, schema: Schema) -> bool:
    """Whether a database can be used without migrating it first; raises like `migrate`."""
    if not database.has_table("cf_agents_state"):
        return False
    current, versions = True, KeyValue(database).beginning_with(VERSION_KEY)
    for component, newest in schema.newest().items():
        stored = _stored_version(database, versions, component)
        if stored > newest:
            raise DatabaseUnusable(
                f"The database {database.path} has version {stored} of {component!r}; "
                f"this ramet knows {newest}. Use the newer ramet that wrote it."
            )
        current = current and stored == newest
    return current


def _stored_version(database: Database, versions: Mapping[str, str], component: str) -> int:
    stored = versions.get(_version_key(component)) or "0"
    if not stored.isdecimal():
        raise DatabaseUnusable(
            f"The database {database.path} has no version of {component!r}, but {stored!r}"
        )
    return int(stored)


def _version_key(component: str) -> str:
    return VERSION_KEY if component == "agent" else f"{VERSION_KEY}:{component}"


def combined(*parts: Sequence[Migration]) -> Schema:
    """One schema out of the migrations of several components."""
    return Schema(tuple(migration for part in parts for migration in part))
