"""The control socket of a host: where it lies, who may ask, and that nobody can hurt the host."""

import asyncio
import socket
import sqlite3
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ramet
from ramet.control import listening
from ramet.control.host_file import HostFile, lock_of, read_host_file, write_host_file
from ramet.control.listening import LONGEST_PATH
from ramet.control.server import MOST_AT_ONCE, MOST_BYTES
from ramet.core.json import JsonObject, JsonValue, dump_bytes, loads_object
from ramet.storage import DataDirectory
from ramet.testing import Gate
from tests.integration.control.desk import Clerk, Desk
from tests.integration.control.shell import Shell, desks

pytestmark = pytest.mark.behaviour("D15")


@pytest.fixture
def data() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "data"


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short temporary folder of the system's that is the test's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def host_of(data: Path) -> HostFile:
    host = read_host_file(data)
    assert host is not None
    return host


@asynccontextmanager
async def connection(
    data: Path,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host = host_of(data)
    if host.socket is None:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
    else:
        reader, writer = await asyncio.open_unix_connection(host.socket)
    try:
        yield reader, writer
    finally:
        writer.close()


async def told(data: Path, line: bytes) -> JsonObject:
    """What the host says to a line."""
    async with connection(data) as (reader, writer):
        writer.write(line)
        answer = loads_object(await reader.read())
    assert answer is not None
    return answer


async def asked(data: Path, request: JsonValue, *, token: str | None = None) -> JsonObject:
    known = host_of(data).token if token is None else token
    return await told(data, dump_bytes({"token": known, "request": request}) + b"\n")


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


HOST: JsonObject = {"command": "inspect.host"}


async def test_the_socket_lies_in_the_data_directory_and_is_only_the_owners(data: Path) -> None:
    async with desks(data):
        host = host_of(data)
        assert host.socket == str(data / "control.sock")
        assert stat.S_IMODE((data / "control.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE((data / "host.json").stat().st_mode) == 0o600
        assert (await asked(data, HOST))["ok"] is True


async def test_a_directory_may_be_seen_elsewhere_while_it_is_served(data: Path) -> None:
    deep = data.parent / ("x" * LONGEST_PATH)
    deep.mkdir()
    async with desks(data):
        (deep / "link").symlink_to(data)
        linked = await Shell(deep / "link").run("inspect", "--json")
        moved = data.parent / "moved"
        await asyncio.to_thread(data.rename, moved)
        told = await Shell(moved).run("inspect", "--json")
        await asyncio.to_thread(moved.rename, data)
    assert (linked.json["running"], told.json["running"]) == (True, True)


async def test_a_clean_stop_leaves_neither_socket_nor_host_file(
    data: Path, temporary: Path
) -> None:
    async with desks(data):
        pass
    assert names(data) == ["agents", "host.db", "ramet.lock"]
    assert names(temporary) == []


async def test_a_long_path_puts_the_socket_in_a_private_folder(
    tmp_path: Path, temporary: Path
) -> None:
    deep = tmp_path / ("x" * LONGEST_PATH)
    async with desks(deep) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        path = Path(host_of(deep).socket or "")
        assert path.parent.parent == temporary
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert (await Shell(deep).run("runs", "list")).out.startswith("RUN")
    assert names(temporary) == []


async def test_without_unix_sockets_it_is_a_port_with_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setattr(listening, "LONGEST_PATH", 0)
    async with desks(data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        host = host_of(data)
        assert (host.socket, isinstance(host.port, int)) == (None, True)
        assert (await Shell(data).run("runs", "list")).out.startswith("RUN")
        refused = await asked(data, HOST, token="guessed")
    assert refused == {"ok": False, "error": "The token is not the one in host.json"}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (None, "That is no request: "),
        ({}, "That is no request: "),
        ({"command": "stop"}, "That is no request: "),
        ({"command": "runs.show"}, "That is no request: runs.show.run_id: Field required"),
        ({"command": "runs.list", "limit": 10**9}, "That is no request: runs.list.limit: "),
        ({"command": "runs.list", "limti": 1}, "That is no request: runs.list.limti: "),
        ({"command": "runs.list", "statuses": ["lost"]}, "That is no request: runs.list.statuses"),
        (
            {"command": "runs.clear", "agent": "Desk/a", "statuses": ["running"]},
            "That is no request: runs.clear.statuses",
        ),
        ({"command": "runs.show", "run_id": "r9"}, "No agent has a run 'r9'"),
    ],
)
async def test_a_wrong_request_gets_one_error(data: Path, request_: JsonValue, error: str) -> None:
    async with desks(data):
        answer = await asked(data, request_)
        assert answer["ok"] is False
        assert str(answer["error"]).startswith(error)
        assert (await asked(data, HOST))["ok"] is True


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"hello\n", "A request is one JSON object on one line"),
        (b"[]\n", "A request is one JSON object on one line"),
        (b"{}\n", "The token is not the one in host.json"),
        (b'{"token": 7}\n', "The token is not the one in host.json"),
        (b"x" * (2 * MOST_BYTES), f"A request has at most {MOST_BYTES} bytes"),
    ],
)
async def test_what_is_no_request_gets_one_error(data: Path, line: bytes, error: str) -> None:
    async with desks(data):
        assert await told(data, line) == {"ok": False, "error": error}
        assert (await asked(data, HOST))["ok"] is True


async def test_peers_who_say_nothing_keep_nobody_else_out_for_long(data: Path) -> None:
    async with desks(data):
        host = host_of(data)
        links = [await asyncio.open_unix_connection(host.socket) for _ in range(MOST_AT_ONCE)]
        busy = await Shell(data).run("inspect")
        for _, writer in links:
            writer.close()
            await writer.wait_closed()
        free = await Shell(data).run("inspect")
        while free.code != 0:
            free = await Shell(data).run("inspect")
    assert "cannot be asked" in busy.sentence or "gave no answer" in busy.sentence
    assert "running" in free.out


class Stuck(ramet.Agent[None]):
    """Starts when its gate is open."""

    gate = Gate()

    async def begin(self) -> None:
        await self.run_agent_tool(Clerk, run_id="slow", detached=True)

    async def on_start(self) -> None:
        if self.list_agent_tool_runs():
            await self.gate.wait()


@asynccontextmanager
async def stuck(data: Path) -> AsyncIterator[ramet.App]:
    """A host with a run whose parent does not get through its `on_start`."""
    app = ramet.App(agents=[Stuck], sub_agents=[Clerk], data_dir=data)
    app.options = ramet.HostOptions(grace_period=0)
    Stuck.gate = Gate()
    Clerk.gates.clear()
    async with app:
        await app.get_agent(Stuck, "s").begin()
    with sqlite3.connect(data / "host.db") as index:
        index.execute("DELETE FROM ramet_wakeups")
    index.close()
    async with app:
        yield app


CANCEL: JsonObject = {"command": "runs.cancel", "run_id": "slow"}
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def cancelling(data: Path) -> Peer:
    """Somebody who asks for the end of the run, and stays there."""
    host = host_of(data)
    reader, writer = await asyncio.open_unix_connection(host.socket)
    writer.write(dump_bytes({"token": host.token, "request": CANCEL}) + b"\n")
    await asked(data, HOST)  # by now the one before was taken in
    await asked(data, HOST)
    return reader, writer


async def test_looks_do_not_wait_behind_requests_that_hang(data: Path) -> None:
    async with stuck(data):
        peers = [await cancelling(data) for _ in range(MOST_AT_ONCE)]
        assert (await asked(data, HOST))["ok"] is True
        refused = await asked(data, CANCEL)
        for _, writer in peers:
            writer.transport.abort()
    assert refused["error"] == (
        "The server has 8 requests under way that change something; "
        "try again when one of them has been answered"
    )


async def test_the_place_of_a_peer_who_has_gone_is_free(data: Path) -> None:
    async with stuck(data):
        for _, writer in [await cancelling(data) for _ in range(MOST_AT_ONCE)]:
            writer.transport.abort()
        await asked(data, HOST)
        reader, writer = await cancelling(data)
        Stuck.gate.open()
        answer = loads_object(await reader.read())
        writer.close()
    assert answer is not None
    assert answer["ok"] is True


async def test_what_a_peer_began_goes_on_when_it_has_gone(data: Path) -> None:
    async with stuck(data):
        _, writer = await cancelling(data)
        writer.transport.abort()
        await asked(data, HOST)
        Stuck.gate.open()
        while b'"running"' in (runs := dump_bytes(await asked(data, {"command": "runs.list"}))):
            continue
    assert b"aborted" in runs


async def test_of_what_peers_have_left_behind_only_so_much_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ramet.control.server.MOST_LEFT", 0)
    async with stuck(data):
        _, writer = await cancelling(data)
        writer.transport.abort()
        await asked(data, HOST)
        await asked(data, HOST)
        Stuck.gate.open()
        assert b"aborted" not in dump_bytes(await asked(data, {"command": "runs.list"}))


async def test_a_host_that_stops_ends_what_is_being_answered(data: Path) -> None:
    async with desks(data):
        reader, writer = await asyncio.open_unix_connection(host_of(data).socket)
        await asked(data, HOST)  # by now the one before was taken in
    assert await reader.read() == b""
    writer.close()


async def test_a_host_file_that_was_left_behind_is_believed_by_nobody(
    data: Path, temporary: Path
) -> None:
    async with desks(data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
    left = temporary / "ramet-left"
    left.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left / "control.sock"))
    stale = HostFile(
        pid=1,
        version="0",
        started_at=0,
        lock=lock_of(data),
        token="old",
        socket=str(left / "control.sock"),
    )
    write_host_file(data, stale)
    assert "r1" in Shell(data).run_here("runs", "list").out
    async with desks(data):
        assert host_of(data).token != "old"
        assert "r1" in (await Shell(data).run("runs", "list")).out
        assert not left.exists()


async def test_the_host_file_of_a_copied_directory_leads_nowhere(data: Path) -> None:
    copy = data.parent / "copy"
    async with desks(data):
        copy.mkdir()
        for name in ("ramet.lock", "host.json"):
            (copy / name).write_bytes((data / name).read_bytes())
        held = DataDirectory(copy)
        held.acquire()
        sentence = (await Shell(copy).run("inspect")).sentence
        held.release()
    assert sentence == (
        f"The data directory {copy} is in use by a process that cannot be asked: "
        "it is starting or stopping, has no control socket, or is another user's"
    )


async def test_a_host_that_does_not_listen_any_more_is_one_sentence(data: Path) -> None:
    async with desks(data):
        (data / "control.sock").unlink()
        sentence = (await Shell(data).run("inspect")).sentence
    assert sentence.startswith(f"The server of {data} (process ")
    assert sentence.endswith("cannot be asked: [Errno 2] No such file or directory")


async def test_a_host_runs_without_a_socket_where_there_is_no_place_for_one(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere(data: Path) -> listening.Listening:
        raise OSError("no place")

    monkeypatch.setattr("ramet.control.server.listen", nowhere)
    async with desks(data) as app:
        assert await app.get_agent(Desk, "ada").ask("r1") == "completed"
        assert read_host_file(data) is None
    assert "There is no control socket: no place" in caplog.text


async def test_a_trouble_inside_is_an_answer_with_an_id(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ramet.Agent[None]):
        async def begin(self) -> None:
            await self.run_agent_tool(Clerk, run_id="slow", detached=True)

        def on_start(self) -> None:
            if self.list_agent_tool_runs():
                raise LookupError("the key is lost")

    app = ramet.App(agents=[Broken], sub_agents=[Clerk], data_dir=data)
    app.options = ramet.HostOptions(grace_period=0)
    async with app:
        await app.get_agent(Broken, "b").begin()
    async with app:
        answer = await asked(data, {"command": "runs.cancel", "run_id": "slow"})
        assert (await asked(data, HOST))["ok"] is True
    assert answer == {"ok": False, "error": "the key is lost"}
    assert "the key is lost" in caplog.text


async def test_two_commands_may_read_a_stopped_directory_together(data: Path) -> None:
    async with desks(data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
    other = DataDirectory(data)
    other.acquire_to_read()
    said = Shell(data).run_here("runs", "list")
    other.release()
    assert "r1" in said.out
