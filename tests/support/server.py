"""Starts the command line as a process of its own, for tests that need a real server."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
START_TIMEOUT = 30.0
STOP_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    port: int
    log: Path
    """What it wrote to standard output and error."""
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{HOST}:{self.port}"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


def command_line(*command: str, folder: Path, port: int) -> list[str]:
    """The whole command that serves with its data in `folder`, to be run in `ROOT`."""
    program = "from ramet.cli.main import main; main()"
    place = ["--port", str(port), "--data", str(folder / "data")]
    return [sys.executable, "-c", program, *command, *place]


def environment() -> dict[str, str]:
    """The environment in which the command finds the package and the tests."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT)]))


def start(
    *command: str,
    folder: Path,
    port: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> Server:
    """Start `ramet COMMAND … --port --data` with its data in `folder`, and wait for the port.

    It gets a session of its own, and `variables` on top of the environment.
    """
    port = port or free_port()
    log = folder / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command_line(*command, folder=folder, port=port),
            cwd=ROOT,
            env=environment() | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(port=port, log=log, process=process)
    try:
        _wait_for_port(server)
    except BaseException:
        stop(server)
        raise
    return server


def stop(server: Server) -> None:
    """End the server as SIGTERM does, and by force if it does not go."""
    server.process.terminate()
    try:
        server.process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait(STOP_TIMEOUT)


def kill(server: Server) -> None:
    """End the server and whatever it started as `kill -9` does; harmless when it has ended."""
    if server.process.poll() is None:
        os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(STOP_TIMEOUT)


@contextmanager
def running(*command: str, folder: Path) -> Iterator[Server]:
    """A server for the length of a block."""
    server = start(*command, folder=folder)
    try:
        yield server
    finally:
        stop(server)


def _wait_for_port(server: Server) -> None:
    """Return when the port answers; fail when the process ends first or takes too long."""
    pause = 0.05
    for _ in range(int(START_TIMEOUT / pause)):
        with socket.socket() as probe:
            if probe.connect_ex((HOST, server.port)) == 0:
                return
        try:
            code = server.process.wait(pause)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"The server ended with {code}:\n{server.log.read_text()}")
    raise AssertionError(f"No server on port {server.port}:\n{server.log.read_text()}")
