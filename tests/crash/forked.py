"""Starts commands through the fork server, and waits for them although they are no own children."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ramet.core.json import JsonObject, dumps
from tests.support.server import ROOT, environment


class ForkServer:
    """The running fork server."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.fork_server"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ready = False

    def run(
        self, command: Sequence[str], *, variables: Mapping[str, str], log: Path
    ) -> "ForkedProcess":
        """Start `ramet COMMAND`."""
        order: JsonObject = {"run": [*command], "variables": {**variables}, "log": str(log)}
        return ForkedProcess(self, int(self._order(order)))

    def reap(self, pid: int) -> int:
        """The exit code of a process that was started here and has ended."""
        return int(self._order({"reap": pid}))

    def stop(self) -> None:
        """End the fork server; what it has started goes on."""
        self._process.communicate()

    def _order(self, order: JsonObject) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._ready:
            assert self._process.stdout.readline() == "ready\n", "The fork server does not start"
            self._ready = True
        self._process.stdin.write(dumps(order) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


class ForkedProcess:
    """A process that the fork server has started."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self._pid = pid
        self._handle = os.pidfd_open(pid)
        self._code: int | None = None

    def code(self, timeout: float = 0) -> int | None:
        """The exit code; None when the process has not ended within the time."""
        if self._code is None:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            if poll.poll(timeout * 1000):
                self._code = self._server.reap(self._pid)
                os.close(self._handle)
        return self._code

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        os.kill(self._pid, number)

    def kill(self) -> None:
        """End its whole session as `kill -9` does; harmless when it has ended."""
        if self.code() is None:
            os.killpg(self._pid, signal.SIGKILL)
