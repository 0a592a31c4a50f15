"""One agent, one SQLite database: files, connections, migrations."""

from ramet.storage.database import Database, Row, SqlValue
from ramet.storage.files import DataDirectory
from ramet.storage.key_value import KeyValue
from ramet.storage.migrations import Migration, Schema, combined, is_current, migrate

__all__ = [
    "DataDirectory",
    "Database",
    "KeyValue",
    "Migration",
    "Row",
    "Schema",
    "SqlValue",
    "combined",
    "is_current",
    "migrate",
]
