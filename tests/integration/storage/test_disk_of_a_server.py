"""`ramet serve` on a file system of its own that gets full (ENOSPC), as on a real disk."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.crash.page import Page, get_messages
from tests.support.server import HOST, ROOT, command_line, environment, free_port

SMALL = "2m"
KEY = (("ChatAgent", "a"),)
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
"""A user of its own may mount file systems that only it sees; no root is needed for that."""
START_SECONDS = 30.0
STOP_SECONDS = 15.0
PAUSE = 0.05


def can_mount() -> bool:
    """Whether this system lets us."""
    if shutil.which("unshare") is None:
        return False
    mount = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.kill,
    pytest.mark.skipif(not can_mount(), reason="this system gives no namespace to mount in"),
]


class SmallDisk:
    """A server on a small file system, which can be filled up."""

    def __init__(self, folder: Path) -> None:
        data = folder / "data"
        data.mkdir()
        self.port = free_port()
        self.log = folder / "server.log"
        serve = shlex.join(
            command_line("serve", "tests.wire_app:app", folder=folder, port=self.port)
        )
        mounted = f"mount -t tmpfs -o size={SMALL} tmpfs {shlex.quote(str(data))} && exec {serve}"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*NAMESPACE, "sh", "-c", mounted],
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._filler = Path(f"/proc/{self.process.pid}/root{data}/filler")

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def wait_for_port(self) -> None:
        """Return when the server takes connections."""
        for _ in range(int(START_SECONDS / PAUSE)):
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self.port)) == 0:
                    return
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PAUSE)
                break
        raise AssertionError(self.log.read_text())

    def fill(self) -> None:
        """Take all space that is left."""
        with self._filler.open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    made = SmallDisk(tmp_path)
    try:
        made.wait_for_port()
        yield made
    finally:
        made.process.kill()
        made.process.wait(STOP_SECONDS)


@contextmanager
def full(disk: SmallDisk) -> Iterator[None]:
    disk.fill()
    yield
    disk.free()


async def outcome(page: Page, request_id: str, text: str) -> str | None:
    await page.ask(request_id, text)
    assert await page.until(lambda: page.has_end(request_id))
    return page.seen.outcome(request_id)


async def test_a_server_whose_disk_is_full_stays_up_and_answers_once_there_is_room(
    disk: SmallDisk,
) -> None:
    page = await Page.open(disk.address, KEY)
    assert await outcome(page, "before", "say 2 0") == "completed"
    with full(disk):
        assert await outcome(page, "meanwhile", "say 4000 0") == "error"
        assert len(await get_messages(disk.address, KEY)) >= 2
    assert await outcome(page, "after", "say 2 0") == "completed"
    await page.close()
    assert "database or disk is full" in disk.log.read_text()


async def test_sigterm_ends_a_server_whose_disk_is_full(disk: SmallDisk) -> None:
    page = await Page.open(disk.address, KEY)
    assert await outcome(page, "before", "say 2 0") == "completed"
    with full(disk):
        await outcome(page, "meanwhile", "say 4000 0")
        os.kill(disk.process.pid, signal.SIGTERM)
        assert disk.process.wait(STOP_SECONDS) == 0
