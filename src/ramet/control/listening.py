"""Finds a place for a control socket: in the data directory, else a short path, else loopback."""

import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "control.sock"
LONGEST_PATH: Final = 100
"""Bytes that every system takes as the path of a Unix socket."""
LOOPBACK: Final = "127.0.0.1"
_FOLDER: Final = "ramet-"
_BACKLOG: Final = 16
_ONLY_OURS: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A socket that peers can connect to."""

    listener: socket.socket
    path: Path | None
    """Where the Unix socket is; None for a port."""

    @property
    def port(self) -> int | None:
        """The port on the loopback address; None for a Unix socket."""
        if self.path is not None:
            return None
        port: int = self.listener.getsockname()[1]
        return port

    def close(self) -> None:
        """Listen no more, and leave nothing behind."""
        self.listener.close()
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
            remove_left_over(self.path)


def listen(data: Path) -> Listening:
    """Listen for those who may read the data directory; raises `OSError` where nothing works."""
    here = data.absolute() / NAME
    listener = _unix(here)
    if listener is not None:
        return Listening(listener=listener, path=here)
    with suppress(OSError):
        there = Path(tempfile.mkdtemp(prefix=_FOLDER)) / NAME
        listener = _unix(there)
        if listener is not None:
            return Listening(listener=listener, path=there)
        there.parent.rmdir()
    return Listening(listener=_loopback(), path=None)


def remove_left_over(path: Path) -> None:
    """Remove what a host that is gone has left of a socket at a short path, with its folder.

    Only a folder that was made for the socket: any other path may be another host's by now.
    """
    folder = path.parent
    made = Path(tempfile.gettempdir()) / folder.name
    if folder == made and folder.name.startswith(_FOLDER):
        with suppress(OSError):
            path.unlink(missing_ok=True)
            folder.rmdir()


def _unix(path: Path) -> socket.socket | None:
    """A listening Unix socket; None where the system or the file system takes none."""
    if len(bytes(path)) > LONGEST_PATH:
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(_ONLY_OURS)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        return None
    listener.setblocking(False)  # noqa: FBT003 - that is how it is called
    return listener


def _loopback() -> socket.socket:
    listener = socket.create_server((LOOPBACK, 0), backlog=_BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 - that is how it is called
    return listener
