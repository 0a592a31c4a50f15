"""The command line beside a real `ramet serve`, and on what is left of it after a kill."""

import subprocess
import sys
from pathlib import Path

import pytest
from websockets.sync.client import connect

from ramet.control.host_file import read_host_file
from ramet.core.json import JsonObject, JsonValue, dumps, loads_object
from tests.support.holding import held_by_another_process
from tests.support.server import ROOT, Server, environment, kill, running, start

COMMAND = ("serve", "tests.integration.control.desk:app")

pytestmark = [pytest.mark.kill, pytest.mark.behaviour("D15")]


def ramet(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ramet.cli", *words, "--data", str(folder / "data")],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def answer(folder: Path, *words: str) -> JsonObject:
    done = ramet(folder, *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = loads_object(done.stdout)
    assert found is not None
    return found


def call(server: Server, method: str, *args: JsonValue) -> None:
    """Have a desk do something, over a socket of its own."""
    with connect(f"ws://{server.address}/agents/desk/ada") as client:
        client.send(dumps({"type": "rpc", "id": "1", "method": method, "args": [*args]}))
        while (loads_object(client.recv()) or {}).get("type") != "rpc":
            continue


def status(folder: Path, run_id: str) -> object:
    run = answer(folder, "runs", "show", run_id)["run"]
    assert isinstance(run, dict)
    return run["status"]


def test_a_served_run_is_listed_shown_and_cancelled(tmp_path: Path) -> None:
    with running(*COMMAND, folder=tmp_path) as server:
        call(server, "give", "slow")
        assert status(tmp_path, "slow") == "running"
        assert "slow" in ramet(tmp_path, "runs", "list", "--status", "running").stdout
        assert answer(tmp_path, "inspect")["pid"] == server.process.pid
        assert ramet(tmp_path, "runs", "cancel", "slow").returncode == 0
        assert status(tmp_path, "slow") == "aborted"
        cleared = ramet(tmp_path, "runs", "clear", "--agent", "Desk/ada")
        assert cleared.stdout == "Removed 1 run of Desk/ada.\n"
    assert read_host_file(tmp_path / "data") is None
    assert answer(tmp_path, "runs", "list")["runs"] == []


def test_after_a_kill_the_files_are_read_and_the_next_server_is_asked(tmp_path: Path) -> None:
    server = start(*COMMAND, folder=tmp_path)
    call(server, "give", "slow")
    kill(server)
    assert read_host_file(tmp_path / "data") is not None
    before = databases(tmp_path)
    assert status(tmp_path, "slow") == "running"
    assert answer(tmp_path, "inspect", "Desk/ada")["runs"] == {"running": 1}
    assert answer(tmp_path, "inspect")["running"] is False
    assert databases(tmp_path) == before
    refused = ramet(tmp_path, "runs", "cancel", "slow")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: No server runs on ")
    with running(*COMMAND, folder=tmp_path) as second:
        assert answer(tmp_path, "inspect")["pid"] == second.process.pid
        assert answer(tmp_path, "inspect")["running"] is True


def test_a_second_server_is_told_which_process_has_the_directory(tmp_path: Path) -> None:
    with running(*COMMAND, folder=tmp_path) as server:
        second = ramet(tmp_path, *COMMAND, "--port", "0")
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        f"Error: The data directory {tmp_path / 'data'} is in use by another process "
        f"(pid {server.process.pid}); stop it or choose another directory\n"
    )


def databases(folder: Path) -> dict[str, bytes]:
    """The databases with their write-ahead logs."""
    found = (each for each in (folder / "data").rglob("*") if each.suffix in {".db", ".db-wal"})
    return {str(each): each.read_bytes() for each in found}


def test_a_server_that_is_starting_cannot_be_asked_yet(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "data"):
        done = ramet(tmp_path, "runs", "list")
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: The data directory {tmp_path / 'data'} is in use by a process that cannot be "
        "asked: it is starting or stopping, has no control socket, or is another user's\n"
    )
