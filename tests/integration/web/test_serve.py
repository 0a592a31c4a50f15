"""`ramet serve`: its sentences for what is wrong, and how it stops."""

import asyncio
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from ramet.core.json import dumps, loads_object
from tests.integration.web.support import next_frame, until_closed

ROOT = Path(__file__).parents[3]
TARGET = "tests.integration.web.agents:app"
MOUNTED = "tests.integration.web.mounted:app"
RAMET = "from ramet.cli.main import main; main()"


async def start(*args: str, cwd: Path = ROOT) -> Process:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        RAMET,
        *args,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": paths},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )


async def run(*args: str, cwd: Path = ROOT) -> tuple[int | None, str]:
    """Run a command that ends by itself: its exit code and what it said."""
    process = await start(*args, cwd=cwd)
    out, err = await process.communicate()
    return process.returncode, (out + err).decode()


@dataclass(frozen=True)
class Serving:
    """A running `ramet serve`."""

    process: Process
    address: str

    async def said(self) -> str:
        """What it writes until it ends."""
        _, err = await self.process.communicate()
        return err.decode()


@asynccontextmanager
async def serving(data: Path, target: str = TARGET) -> AsyncIterator[Serving]:
    process = await start("serve", target, "--port", "0", "--data", str(data))
    try:
        assert process.stderr is not None
        line = (await process.stderr.readline()).decode()
        found = re.search(r"Serving at http://(\S+)", line)
        assert found, line
        yield Serving(process, found[1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def marks(client: ClientConnection) -> list[object]:
    """Every mark until the server closes."""
    seen: list[object] = []
    try:
        while True:
            frame = loads_object(await client.recv())
            if frame is not None and "mark" in frame:
                seen.append(frame["mark"])
    except ConnectionClosed:
        return seen


async def set_to_work(client: ClientConnection, marks: int) -> None:
    await next_frame(client, "cf_agent_mcp_servers")
    await client.send(dumps({"type": "rpc", "id": "1", "method": "work", "args": [marks]}))
    while "mark" not in (loads_object(await client.recv()) or {}):
        continue


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("nothing", "'nothing' does not name an application: write module:app"),
        ("no_such:app", "There is no module 'no_such'; run the command in the folder that"),
        ("empty:app", "The module 'empty' has no 'app'"),
        ("empty:number", "empty:number is no application: a int"),
        ("notes:Note", "notes:Note is a class: serve an instance, such as app = ramet.App(agents="),
        ("needy:app", "The module 'needy' needs another: No module named 'not_there'"),
        ("wrong:app", "The module 'wrong' cannot be imported: cannot import name 'nothing'"),
        ("twice:app", "share the URL form 'note': give one of them"),
    ],
)
async def test_an_application_that_cannot_be_had_is_one_sentence(
    tmp_path: Path, target: str, sentence: str
) -> None:
    (tmp_path / "empty.py").write_text("number = 1\n")
    (tmp_path / "notes.py").write_text("import ramet\nclass Note(ramet.Agent): pass\n")
    (tmp_path / "needy.py").write_text("import not_there\n")
    (tmp_path / "wrong.py").write_text("from os import nothing\n")
    (tmp_path / "twice.py").write_text(
        "import ramet\n"
        "class Note(ramet.Agent): pass\n"
        "app = ramet.App(agents=[Note, type('Note', (ramet.Agent,), {})])\n"
    )

    code, said = await run("serve", target, cwd=tmp_path)

    assert code == 1
    assert sentence in said
    assert said.count("\n") == 1


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = await run("serve", TARGET, "--port", str(port), "--data", str(tmp_path))

    assert code == 1
    assert said == (
        f"Error: Port {port} on 127.0.0.1 is in use; "
        "stop what listens there or choose another port\n"
    )


async def test_a_host_that_is_not_ours_is_one_sentence(tmp_path: Path) -> None:
    code, said = await run("serve", TARGET, "--host", "192.0.2.1", "--data", str(tmp_path))

    assert code == 1
    assert said.startswith("Error: Cannot listen on port 8000 of 192.0.2.1: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("target", [TARGET, MOUNTED])
async def test_a_data_directory_in_use_is_one_sentence(tmp_path: Path, target: str) -> None:
    async with serving(tmp_path) as first:
        code, said = await run("serve", target, "--port", "0", "--data", str(tmp_path))

    assert code == 1
    assert said == (
        f"Error: The data directory {tmp_path} is in use by another process "
        f"(pid {first.process.pid}); stop it or choose another directory\n"
    )


async def test_a_data_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    code, said = await run("serve", TARGET, "--port", "0", "--data", str(tmp_path / "file"))

    assert code == 1
    assert said.startswith(f"Error: The data directory {tmp_path / 'file'} cannot be written: ")
    assert said.count("\n") == 1


async def test_the_version_is_told() -> None:
    code, said = await run("--version")

    assert code == 0
    assert re.fullmatch(r"ramet, version \d+\.\d+\.\d+\n", said)


@pytest.mark.behaviour("D18")
async def test_sigterm_lets_running_work_end_before_the_sockets_close(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as server,
        connect(f"ws://{server.address}/agents/parent/p") as client,
    ):
        await set_to_work(client, 50)
        server.process.send_signal(signal.SIGTERM)
        seen = await marks(client)
        await server.said()

    assert seen[-1] == 49
    assert client.close_code == 1001
    assert server.process.returncode == 0


@pytest.mark.behaviour("D18")
async def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as server,
        connect(f"ws://{server.address}/agents/parent/p") as client,
    ):
        await set_to_work(client, 100_000)
        server.process.send_signal(signal.SIGTERM)
        await until_refused(server.address)
        server.process.send_signal(signal.SIGTERM)
        await marks(client)
        await server.said()

    assert server.process.returncode == -signal.SIGTERM


async def until_refused(address: str) -> None:
    """Wait until nothing new is accepted, which is how a stop begins."""
    host, _, port = address.partition(":")
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return
        writer.close()
        await writer.wait_closed()


async def test_an_application_that_mounts_agents_is_served_too(tmp_path: Path) -> None:
    async with serving(tmp_path, MOUNTED) as server:
        async with connect(f"ws://{server.address}/ai/agents/parent/p") as client:
            await next_frame(client, "cf_agent_identity")
            server.process.send_signal(signal.SIGTERM)
            code, _ = await until_closed(client)
        await server.said()

    assert code == 1001
    assert (tmp_path / "agents").is_dir()


async def test_log_level_decides_what_is_written_with_the_time(tmp_path: Path) -> None:
    talk = "import logging\nlogging.getLogger('mine').info('loaded')\napp = 3\n"
    (tmp_path / "talk.py").write_text(talk)
    line = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO mine: loaded$", re.MULTILINE)
    _, quiet = await run("serve", "talk:app", cwd=tmp_path)
    _, loud = await run("serve", "talk:app", "--log-level", "info", cwd=tmp_path)
    assert "loaded" not in quiet
    assert line.search(loud), loud
