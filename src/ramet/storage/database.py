"""One agent's SQLite database: statements, transactions and what happens after a commit.

Everything runs in the event loop, synchronously; nothing may await inside a transaction.
"""

import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

from ramet.core.failpoints import SPLIT_COMMITS
from ramet.core.fence import Fence
from ramet.errors import DatabaseUnusable, InvalidArguments
from ramet.storage.connection_setup import be_impatient, be_patient, set_up, set_up_to_read

Row: TypeAlias = sqlite3.Row
SqlValue: TypeAlias = str | bytes | int | float | None

_NOT_FOR_USERS = re.compile(
    r"""(?:\s|--[^\n]*\n|/\*.*?\*/|;)*
    (?P<what>begin|commit|end|rollback|savepoint|release|attach|detach|vacuum
        |pragma\s+(?:\w+\.)?(?:journal_mode|locking_mode|synchronous|wal_\w+|writable_schema))\b""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)

_NUMBERS_ARE_NAMES = sys.version_info[:2] == (3, 12)
_HAS_NO_NUMBER = re.compile(r"\?(?!\d)")

HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"

_TROUBLE_WITH_THE_FILE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
_PRIMARY_CODE = 0xFF
ROLLED_BACK = "The database {path} cannot be used: SQLite has undone the transaction by itself"


class Database:
    """An open database file, owned by one instance of one agent.

    A statement outside `transaction()` is a transaction of its own and is committed when the call
    returns; with `durability="process"` a commit outlives the death of the process, with "power" a
    power cut too. After the owner's fence went down every call raises `InstanceGone`.
    """

    def __init__(
        self,
        path: Path | Literal[":memory:"],
        *,
        fence: Fence,
        durability: Literal["process", "power"] = "process",
        locking: Literal["normal", "exclusive"] = "normal",
        read_only: bool = False,
    ) -> None:
        """Open a file.

        Args:
            path: Where it lies; it is made if it is not there.
            fence: Its owner's.
            durability: What a commit outlives.
            locking: Whether other processes may read it meanwhile.
            read_only: Only look, at a file that is there and that nobody writes to meanwhile; what
                a killed process has left in its write-ahead log is seen, and stays there.

        Raises:
            DatabaseUnusable: It cannot be opened or used.
        """
        self.path = path
        self._hint = _hint(Path(path)) if read_only else ""
        self._fence = fence
        self._depth = 0
        self._locked_out = False
        self._after_commit: list[Callable[[], object]] = []
        self.commits = 0
        """How many transactions were committed through this object."""
        try:
            self._connection = sqlite3.connect(
                _to_read(Path(path)) if read_only else path,
                uri=read_only,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.Error as error:
            raise DatabaseUnusable(
                f"Cannot open the database {path}: {error}{self._hint}"
            ) from error
        try:
            self._connection.row_factory = sqlite3.Row
            if read_only:
                set_up_to_read(self._connection)
            else:
                set_up(self._connection, durability=durability, locking=locking)
        except sqlite3.Error as error:
            self._connection.close()
            raise DatabaseUnusable(
                f"Cannot use the database {path}: {error}{self._hint}"
            ) from error

    def query(self, statement: str, *values: SqlValue) -> list[Row]:
        """Run a statement and return all its rows."""
        self._check()
        try:
            cursor = self._connection.execute(statement, _bound(statement, values))
            rows: list[Row] = cursor.fetchall()
        except sqlite3.DatabaseError as error:
            self._refuse_file(error)
            raise
        if cursor.description is None:  # it wrote; what only reads is never locked out
            self._got_through()
        if not self._depth:
            self._committed()
        return rows

    def query_of_user(self, statement: str, *values: SqlValue) -> list[Row]:
        """Run a statement that a user wrote, which must leave the connection as it is.

        Raises:
            InvalidArguments: It begins or ends a transaction, attaches another database or changes
                how the file is written. Nothing was run.
        """
        refused = _NOT_FOR_USERS.match(statement)
        if refused is not None:
            words = " ".join(refused.group("what").upper().split())
            raise InvalidArguments(
                f"sql() does not take {words}: each call is a transaction of its own, "
                "and how the file is written is ramet's to say"
            )
        return self.query(statement, *values)

    def one(self, statement: str, *values: SqlValue) -> Row | None:
        """Run a statement and return its first row, or None."""
        rows = self.query(statement, *values)
        return rows[0] if rows else None

    def run(self, statement: str, *values: SqlValue) -> int:
        """Run a statement that changes something; returns the number of rows it touched."""
        self._check()
        try:
            touched = self._connection.execute(statement, _bound(statement, values)).rowcount
        except sqlite3.DatabaseError as error:
            self._refuse_file(error)
            raise
        self._got_through()
        if not self._depth:
            self._committed()
        return touched

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the statements of the block together, or none of them when it raises.

        Blocks may be nested: the outermost one commits. Never await inside.
        """
        self._fence.check()
        if self._depth or SPLIT_COMMITS:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            if not self._depth:
                self._committed()
            return
        self._execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
        except BaseException:
            self._roll_back()
            raise
        if not self._connection.in_transaction:
            self._roll_back()
            raise DatabaseUnusable(ROLLED_BACK.format(path=self.path))
        self._depth = 0
        self._execute("COMMIT")
        self._committed()

    def after_commit(self, announce: Callable[[], object]) -> None:
        """Call `announce` once what was written so far is committed; at once outside a transaction.

        This is the only place to tell anybody of a change: what a client has seen is on disk.
        """
        if self._depth:
            self._after_commit.append(announce)
        else:
            announce()

    def script(self, statements: str) -> None:
        """Run several statements separated by semicolons, for schema changes."""
        self._fence.check()
        self._connection.executescript(statements)

    def has_table(self, name: str) -> bool:
        """Whether a table of that name exists."""
        return self.one(HAS_TABLE, name) is not None

    def image(self) -> bytes:
        """The whole database as the bytes of a file, for a template."""
        return self._connection.serialize()

    def close(self) -> None:
        """Close the file. Statements after this raise."""
        self._connection.close()

    def _check(self) -> None:
        """Refuse to go on for a dead instance, or in a transaction that is no longer one."""
        self._fence.check()
        if self._depth and not (SPLIT_COMMITS or self._connection.in_transaction):
            raise DatabaseUnusable(ROLLED_BACK.format(path=self.path))

    def _execute(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except sqlite3.DatabaseError as error:
            if statement == "COMMIT":
                self._roll_back()
            self._refuse_file(error)
            raise
        self._got_through()

    def _roll_back(self) -> None:
        """Undo the open transaction, if SQLite has not done so itself, as on a full disk."""
        self._depth = 0
        self._after_commit.clear()
        if self._connection.in_transaction:
            with suppress(sqlite3.DatabaseError):  # why it failed is what the caller must hear
                self._connection.execute("ROLLBACK")

    def _committed(self) -> None:
        self.commits += 1
        if self._after_commit:
            announcements, self._after_commit = self._after_commit, []
            for announce in announcements:
                announce()

    def _refuse_file(self, error: sqlite3.DatabaseError) -> None:
        """Raise the file's own trouble as one clear error; a wrong statement stays SQLite's."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
        if code not in _TROUBLE_WITH_THE_FILE:
            return
        if code == sqlite3.SQLITE_BUSY and not self._locked_out:
            # All agents wait with this one: once is enough, until the file is free again.
            self._locked_out = True
            be_impatient(self._connection)
        raise DatabaseUnusable(
            f"The database {self.path} cannot be used: {error}{self._hint}"
        ) from error

    def _got_through(self) -> None:
        if self._locked_out:
            self._locked_out = False
            be_patient(self._connection)


def _bound(
    statement: str, values: Sequence[SqlValue]
) -> Sequence[SqlValue] | Mapping[str, SqlValue]:
    """Values in the form in which SQLite takes them for a statement.

    Python 3.12 takes `?1` for a name, until 3.12.3, and warns when the value comes without one.
    """
    if _NUMBERS_ARE_NAMES and "?1" in statement and not _HAS_NO_NUMBER.search(statement):
        return {str(number): value for number, value in enumerate(values, start=1)}
    return values


def _hint(file: Path) -> str:
    """What may be in the way of who only looks at a file."""
    if not _has_log(file):
        return ""
    return f" (to read {_log_of(file)}, SQLite has to write beside it)"


def _to_read(file: Path) -> str:
    """The address under which SQLite opens a file that only we read.

    Where nothing stands in a write-ahead log, SQLite is told that the file does not change, and so
    makes no files of its own beside it.
    """
    mode = "mode=ro" if _has_log(file) else "mode=ro&immutable=1"
    return f"file:{quote(os.fsencode(file.absolute()))}?{mode}"


def _has_log(file: Path) -> bool:
    """Whether something stands in a database's write-ahead log."""
    try:
        return _log_of(file).stat().st_size > 0
    except OSError:
        return False


def _log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")
