"""The wire app under `ramet serve`, in a process that is killed and started again on its data."""

import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from tests.crash.disk import Disk, read_disk
from tests.crash.forked import ForkedProcess, ForkServer
from tests.support.server import HOST, free_port

APP = "tests.wire_app:app"
COMMAND = ("serve", APP)
START_TIMEOUT = 30.0
DEATH_TIMEOUT = 15.0
_BETWEEN_TRIES = 0.02


class Victim:
    """One data directory with the server that is running on it now."""

    def __init__(self, forks: ForkServer, folder: Path, *, app: str = APP) -> None:
        self.data = folder / "data"
        """The data directory."""
        self.log = folder / "server.log"
        """What the servers wrote to standard output and error."""
        self.recovers = False
        """Whether turns that a kill has cut off go on after the next start."""
        self._forks = forks
        self._app = app
        self._process: ForkedProcess | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """`host:port` of the running server."""
        return f"{HOST}:{self._port}"

    @property
    def alive(self) -> bool:
        """Whether a server is running."""
        return self._process is not None and self._process.code() is None

    def start(self, variables: Mapping[str, str] | None = None) -> None:
        """Start the server; returns once it takes connections."""
        self._port = free_port()
        command = ["serve", self._app, "--port", str(self._port), "--data", str(self.data)]
        given = {"WIRE_RECOVERY": "on" if self.recovers else "off", **(variables or {})}
        self._process = self._forks.run(command, variables=given, log=self.log)
        for _ in range(int(START_TIMEOUT / _BETWEEN_TRIES)):
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self._port)) == 0:
                    return
            code = self._process.code(_BETWEEN_TRIES)
            assert code is None, f"The server ended with {code}:\n{self.log.read_text()}"
        raise AssertionError(f"No server on port {self._port}:\n{self.log.read_text()}")

    def kill(self) -> None:
        """`kill -9` the server and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self.await_death()

    def await_death(self) -> int:
        """Wait until the server has been ended by whoever ends it; its exit code."""
        code = None if self._process is None else self._process.code(DEATH_TIMEOUT)
        assert code is not None, "The server does not end"
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        assert self._process is not None
        self._process.signal(signal.SIGTERM)

    def disk(self) -> Disk:
        """What is on disk; only while no server runs."""
        assert not self.alive, "The server is still writing"
        return read_disk(self.data)
