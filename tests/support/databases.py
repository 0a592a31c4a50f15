"""The databases of a test: those that it opens for itself, and those that nobody has closed."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ramet.core.fence import Fence
from ramet.storage import Database, Schema, migrate

_own: list[Database] = []
_all: list[sqlite3.Connection] = []


def open_database(
    path: Path | Literal[":memory:"], schema: Schema | None = None, *, fence: Fence | None = None
) -> Database:
    """A database that is closed when the test is over; one that ramet opens, ramet has to close."""
    database = Database(path, fence=fence or Fence("a test"))
    _own.append(database)
    if schema is not None:
        migrate(database, schema)
    return database


@contextmanager
def all_closed() -> Iterator[None]:
    """Close what the block opened for itself, and fail if anything else that it opened is open."""
    _all.clear()
    yield
    for database in _own:
        database.close()
    files = left_open()
    for connection in _all:
        connection.close()
    _own.clear()
    _all.clear()
    assert files == [], "databases were not closed"


def left_open() -> list[str]:
    """Where the databases lie that are open now; a name is empty for one in memory."""
    return [_file_of(connection) for connection in _all if _is_open(connection)]


def _file_of(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA database_list").fetchone()[2])


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "sqlite3.connect/handle":
        _all.extend(each for each in arguments if isinstance(each, sqlite3.Connection))


# Python 3.13 warns of what its garbage collector finds open, in whichever test runs by then. This
# knows every connection from its beginning, in every version.
sys.addaudithook(_note)
