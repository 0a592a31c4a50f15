"""Where agents lie on disk: names that cannot escape the data directory or collide, and its lock.

Below the data directory lie `ramet.lock`, held by the one process that serves it; `host.db`, when
each agent has to wake up next; and a folder `agents/3f/chat-agent-3f9c…/` for each root agent with
all below it: `agent.db` is its own database, `sub/8a1b….db` a sub-agent's, named by a digest of its
whole path. `host.json` and `control.sock` are of `ramet.control`.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ramet.core.fence import Fence
from ramet.core.json import dump_bytes, dumps, loads_or_raw
from ramet.core.paths import AgentPath
from ramet.errors import (
    DatabaseUnusable,
    DataDirectoryInUse,
    DataDirectoryNotFound,
    DataDirectoryNotWritable,
)
from ramet.storage.database import Database
from ramet.storage.key_value import KeyValue
from ramet.storage.migrations import Schema, migrate

IDENTITY_KEY = "cf_agent_identity"
LOCK_NAME = "ramet.lock"
_HOST_NAME = "host.db"
_ONLY_OURS = 0o700
"""Of a new data directory: transcripts are nobody else's to read."""
_SLUG_LENGTH = 40
_DIGEST_BYTES = 16


class DataDirectory:
    """The data directory of one host."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Literal["process", "power"] = "process",
        locking: Literal["normal", "exclusive"] = "normal",
    ) -> None:
        self.path = path
        self._durability: Literal["process", "power"] = durability
        self._locking: Literal["normal", "exclusive"] = locking
        self._lock: int | None = None
        self._templates: dict[Schema, bytes] = {}

    def acquire(self) -> None:
        """Make the directory if it is missing, and lock it for this process.

        Raises:
            DataDirectoryNotWritable: It cannot be made or written.
            DataDirectoryInUse: Another process holds it.
        """
        try:
            self.path.mkdir(mode=_ONLY_OURS, parents=True, exist_ok=True)
            (self.path / "agents").mkdir(exist_ok=True)
            lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryNotWritable(
                f"The data directory {self.path.absolute()} cannot be written: {error.strerror}"
            ) from error
        self._hold(lock, fcntl.LOCK_EX)

    def acquire_to_read(self) -> None:
        """Keep others from serving the directory as long as it is read; nothing is made in it.

        Others may read it too.

        Raises:
            DataDirectoryNotFound: There is no data directory.
            DataDirectoryInUse: Another process serves it.
        """
        where = self.path.absolute()
        try:
            there = _is_folder(self.path)
        except OSError as error:
            raise DataDirectoryNotFound(
                f"The data directory {where} cannot be reached: {error.strerror}"
            ) from error
        if not there:
            raise DataDirectoryNotFound(f"There is no data directory {where}")
        try:
            lock = os.open(self.path / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise DataDirectoryNotFound(
                f"{where} is no data directory of ramet: there is no {LOCK_NAME} in it"
            ) from error
        except OSError as error:
            raise DataDirectoryNotFound(
                f"The data directory {where} cannot be read: {error.strerror}"
            ) from error
        self._hold(lock, fcntl.LOCK_SH)

    def _hold(self, lock: int, kind: int) -> None:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise
            raise DataDirectoryInUse(
                f"The data directory {self.path.absolute()} is in use by another process; "
                "stop it or choose another directory"
            ) from error
        self._lock = lock

    def only_read(self) -> bool:
        """Whether nobody serves the directory: if it is held, then by those who read it."""
        try:
            lock = os.open(self.path / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            finally:
                os.close(lock)
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def file_of(self, path: AgentPath) -> Path:
        """The database file of an agent."""
        folder = self.folder_of(path.root)
        if path.is_root:
            return folder / "agent.db"
        return folder / "sub" / f"{_digest(path)}.db"

    def folder_of(self, root: AgentPath) -> Path:
        """The folder of a root agent with everything below it."""
        digest = _digest(root)
        return self.path / "agents" / digest[:2] / f"{_slug(root.leaf.class_name)}-{digest}"

    def exists(self, path: AgentPath) -> bool:
        """Whether the agent was ever stored.

        Raises:
            DatabaseUnusable: This process may not look.
        """
        file = self.file_of(path)
        try:
            return file.exists()
        except OSError as error:
            raise DatabaseUnusable(
                f"The database {file} of {path} cannot be reached: {error.strerror}"
            ) from error

    def open(self, path: AgentPath, schema: Schema, *, fence: Fence) -> Database:
        """Open an agent's database; a new one is made from a template and told its own name.

        Raises:
            DatabaseUnusable: The file cannot be read, is another agent's, or is from a newer ramet.
        """
        file = self.file_of(path)
        if not self.exists(path):
            self._create(file, schema)
        elif not file.stat().st_size:
            raise DatabaseUnusable(f"The database {file} of {path} is empty: its content is lost")
        database = self._connect(file, fence)
        try:
            _check_kind(database, path)
            migrate(database, schema)
            _check_identity(database, path)
        except BaseException:
            database.close()
            raise
        return database

    def open_host(self, *, fence: Fence) -> Database:
        """Open the host's own database, beside the agents."""
        return self._connect(self.path / _HOST_NAME, fence)

    def open_existing(self, path: AgentPath) -> Database | None:
        """Open a stored agent's database as it is, for reading what a closed agent has stored."""
        file = self.file_of(path)
        return self._connect(file, Fence(str(path))) if self.exists(path) else None

    def roots(self) -> Iterator[Path]:
        """The database files of all root agents, in no particular order."""
        return (self.path / "agents").glob("*/*/agent.db")

    def sub_agents(self) -> Iterator[Path]:
        """The database files of all sub-agents, in no particular order."""
        return (self.path / "agents").glob("*/*/sub/*.db")

    def look_at(self, file: Path) -> Database:
        """Open a database to read it, which nobody writes to meanwhile; see `Database`."""
        return Database(file, fence=Fence(str(file)), read_only=True)

    def look_at_host(self) -> Database | None:
        """Open the host's own database to read it; None when there is none."""
        file = self.path / _HOST_NAME
        return self.look_at(file) if file.exists() else None

    def delete(self, path: AgentPath) -> None:
        """Remove what an agent stored; for a root, of everything below it too."""
        if path.is_root:
            shutil.rmtree(self.folder_of(path), ignore_errors=True)
            return
        file = self.file_of(path)
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)

    def _connect(self, file: Path, fence: Fence) -> Database:
        return Database(file, fence=fence, durability=self._durability, locking=self._locking)

    def _create(self, file: Path, schema: Schema) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_name(file.name + ".new")
            fresh.write_bytes(self._template(schema))
            self._hold_on(fresh)
            fresh.rename(file)
            for folder in file.relative_to(self.path).parents:
                self._hold_on(self.path / folder)
        except OSError as error:
            raise DatabaseUnusable(
                f"The database {file} cannot be made: {error.strerror}"
            ) from error

    def _hold_on(self, path: Path) -> None:
        """Wait until the disk has a file, or the entries of a folder, if that is wanted."""
        if self._durability == "power":
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _template(self, schema: Schema) -> bytes:
        """The bytes of a new database with all tables: copying is quicker than migrating."""
        if schema not in self._templates:
            database = Database(":memory:", fence=Fence("template"))
            try:
                migrate(database, schema)
                self._templates[schema] = _as_write_ahead(database.image())
            finally:
                database.close()
        return self._templates[schema]


def _is_folder(path: Path) -> bool:
    """Whether a folder is there; raises `OSError` when nobody can tell."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _check_kind(database: Database, path: AgentPath) -> None:
    """Refuse somebody else's SQLite file before anything is written into it."""
    if not database.has_table("cf_agents_state"):
        raise DatabaseUnusable(f"The database {database.path} of {path} is not one of an agent")


def _check_identity(database: Database, path: AgentPath) -> None:
    """A new file takes the name; any other must carry it already."""
    store = KeyValue(database)
    stored = store.get(IDENTITY_KEY)
    if stored is None:
        store.put(IDENTITY_KEY, dumps(path.to_json()))
    elif loads_or_raw(stored) != path.to_json():
        raise DatabaseUnusable(f"The database {database.path} does not belong to {path}")


def _as_write_ahead(image: bytes) -> bytes:
    """Mark a database image as using the write-ahead log (bytes 18 and 19 of the file format)."""
    return image[:18] + b"\x02\x02" + image[20:]


def _slug(class_name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", class_name.lower()).strip("-")[:_SLUG_LENGTH] or "agent"


def _digest(path: AgentPath) -> str:
    return hashlib.blake2b(dump_bytes(path.to_json()), digest_size=_DIGEST_BYTES).hexdigest()
