"""How a SQLite connection is prepared, each setting with its reason."""

import sqlite3
from typing import Literal

PAGE_BYTES = 1024
PATIENCE_MS = 1000


def set_up(
    connection: sqlite3.Connection,
    *,
    durability: Literal["process", "power"],
    locking: Literal["normal", "exclusive"],
) -> None:
    """Apply every setting that ramet relies on."""
    be_patient(connection)
    _small_pages(connection)
    _locking(connection, locking)
    _write_ahead_log(connection)
    _synchronous(connection, durability)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def set_up_to_read(connection: sqlite3.Connection) -> None:
    """Apply what a connection needs that only looks; nothing of it touches the file."""
    be_patient(connection)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def _small_pages(connection: sqlite3.Connection) -> None:
    """Most agents are small: with pages of 1 KiB an empty one takes a quarter of the space."""
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")


def _write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers never wait for the writer, and a commit is one append."""
    connection.execute("PRAGMA journal_mode = WAL")


def _locking(connection: sqlite3.Connection, locking: Literal["normal", "exclusive"]) -> None:
    """Exclusive saves a file descriptor and shared memory, but shuts other readers out (D15)."""
    if locking == "exclusive":
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")


def _synchronous(connection: sqlite3.Connection, durability: Literal["process", "power"]) -> None:
    """NORMAL hands each commit to the system, which outlives us; FULL waits for the disk."""
    if durability == "power":
        connection.execute("PRAGMA synchronous = FULL")
    else:
        connection.execute("PRAGMA synchronous = NORMAL")


def be_patient(connection: sqlite3.Connection) -> None:
    """Wait for another process that holds the file for a moment; all agents wait meanwhile."""
    connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")


def be_impatient(connection: sqlite3.Connection) -> None:
    """Wait for nobody: the file is held for longer than a moment."""
    connection.execute("PRAGMA busy_timeout = 0")
