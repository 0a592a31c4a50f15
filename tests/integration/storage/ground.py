"""An agent that stores something of everything, and ways to take the disk from under it."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import ramet
from ramet.core.json import JsonObject, dumps
from ramet.testing import Harness
from ramet.testing.client import TestClient

NOBODY = 65534
HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


class Clerk(ramet.AIChatAgent):
    """Answers, keeps a state and a table, and notes what it is told of errors."""

    initial_state: JsonObject = {}

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(error)

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        for number in range(40):
            yield f"{number:0100} "

    async def note(self, text: str) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
        self.sql("INSERT INTO notes VALUES (?)", text)

    async def count(self) -> int:
        if not self.sql("SELECT 1 FROM sqlite_schema WHERE name = 'notes'"):
            return 0
        return int(self.sql("SELECT count(*) AS n FROM notes")[0]["n"])

    async def remember(self, text: str) -> None:
        self.set_state({"text": text})

    async def recalled(self) -> JsonObject:
        return self.state or {}


def clerks(data: Path, *, seed: int = 1) -> Harness:
    return Harness(agents=[Clerk], data_dir=data, seed=seed)


def question(request_id: str, **body: str) -> JsonObject:
    """The frame that asks something."""
    message = {"id": f"u-{request_id}", "role": "user", "parts": [{"type": "text", "text": "?"}]}
    init: JsonObject = {"method": "POST", "body": dumps({"messages": [message], **body})}
    return {"type": "cf_agent_use_chat_request", "id": request_id, "init": init}


async def ask(client: TestClient, request_id: str) -> JsonObject:
    """Ask a question; gives the last frame of its answer."""
    await client.send(question(request_id))
    frames = client.of_type("cf_agent_use_chat_response")
    return [frame for frame in frames if frame["id"] == request_id][-1]


def file_of(harness: Harness, name: str) -> Path:
    return harness.host.files.file_of(harness.path(Clerk, name))


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Have the system refuse to let any file of this process grow beyond a size (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def bound_by_modes() -> Iterator[Path]:
    """A folder in which the modes of files hold, also for root: it acts as nobody meanwhile."""
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Have another process hold a database for itself."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate("")
