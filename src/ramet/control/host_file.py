"""`host.json`: by which the process that serves a data directory says how it can be asked (D15)."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ramet.core.adapters import adapter_of
from ramet.core.json import NotJson, dump_bytes, loads
from ramet.errors import DataDirectoryInUse
from ramet.storage.files import LOCK_NAME

NAME: Final = "host.json"
_ONLY_OURS: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """A host and its control socket."""

    pid: int
    version: str
    started_at: int
    """Milliseconds since the epoch."""
    lock: tuple[int, int]
    """Which lock file the host holds: a copy of the directory has another one."""
    token: str
    """What a peer has to know."""
    socket: str | None = None
    """The path of its Unix socket, as seen from where the file was found."""
    port: int | None = None
    """Its port on the loopback address, where there is no Unix socket."""


def lock_of(data: Path) -> tuple[int, int]:
    """Tells the lock of a data directory from those of others; raises `OSError` without one."""
    found = (data / LOCK_NAME).stat()
    return found.st_dev, found.st_ino


def read_host_file(data: Path) -> HostFile | None:
    """Who served a data directory last; None when nobody says so.

    It may be gone: only whoever holds the lock of the directory serves it.
    """
    try:
        found: HostFile = adapter_of(HostFile).validate_python(loads((data / NAME).read_bytes()))
        known = found.lock == lock_of(data)
        return _seen_from(data, found) if known else None
    except (OSError, NotJson, ValidationError):
        return None


def _seen_from(data: Path, host: HostFile) -> HostFile:
    """A socket in the directory is named without it: the directory may be seen elsewhere."""
    path = None if host.socket is None else str(data.absolute() / host.socket)
    return replace(host, socket=path)


def with_holder(error: DataDirectoryInUse, data: Path) -> DataDirectoryInUse:
    """The error that says who serves a data directory; the same one where nobody knows."""
    host = read_host_file(data)
    if host is None or host.pid == os.getpid() or not _lives(host.pid):
        return error
    return DataDirectoryInUse(
        f"The data directory {data.absolute()} is in use by another process (pid {host.pid}); "
        "stop it or choose another directory"
    )


def _lives(pid: int) -> bool:
    """Whether there is such a process: one that was killed leaves its `host.json`."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_host_file(data: Path, host: HostFile) -> None:
    """Say who serves a data directory; nobody sees half of it. Raises `OSError`."""
    fresh = data / f"{NAME}.new"
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _ONLY_OURS)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(dump_bytes(host))
        fresh.replace(data / NAME)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def remove_host_file(data: Path) -> None:
    """Say that nobody serves a data directory any more; before its lock is released."""
    with suppress(OSError):
        (data / NAME).unlink(missing_ok=True)
