"""The wire app under `ramet serve`, in a process that is killed and started again on its data."""

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.kill.disk import Disk, read_disk
from tests.support.server import Server, kill, start, stop

COMMAND = ("serve", "tests.wire_app:app")
DEATH_TIMEOUT = 15.0


class Victim:
    """One data directory with the server that is running on it now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: Server | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def server(self) -> Server:
        """The running server."""
        assert self._server is not None, "The victim is not running"
        return self._server

    @property
    def address(self) -> str:
        """`host:port` of the running server."""
        return self.server.address

    @property
    def alive(self) -> bool:
        """Whether a server is running."""
        return self._server is not None and self._server.process.poll() is None

    def start(self, variables: Mapping[str, str] | None = None) -> None:
        """Start the server; returns once it takes connections."""
        self._server = start(*COMMAND, folder=self.folder, variables=variables)

    def kill(self) -> None:
        """`kill -9` the server and wait until it is gone."""
        kill(self.server)

    def await_death(self) -> int:
        """Wait until the server has been ended by whoever ends it; its exit code."""
        return self.server.process.wait(DEATH_TIMEOUT)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.server.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Stop the server in order, if one is running."""
        if self.alive:
            stop(self.server)
        self._server = None

    def disk(self) -> Disk:
        """What is on disk; only while no server runs."""
        assert not self.alive, "The server is still writing"
        return read_disk(self.data)
