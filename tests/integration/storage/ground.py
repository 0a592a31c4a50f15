"""An agent that stores something of everything, and ways to take the disk from under it."""

import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import ramet
import ramet.core.json
from ramet.core.json import JsonObject
from ramet.testing import Harness
from ramet.testing.client import TestClient

NOBODY = 65534


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
        self.sql("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
        return int(self.sql("SELECT count(*) AS n FROM notes")[0]["n"])

    async def remember(self, text: str) -> None:
        self.set_state({"text": text})

    async def recalled(self) -> JsonObject:
        return self.state or {}


def clerks(data: Path) -> Harness:
    return Harness(agents=[Clerk], data_dir=data)


async def ask(client: TestClient, request_id: str) -> JsonObject:
    """Ask a question; gives the last frame of its answer."""
    message = {"id": f"u-{request_id}", "role": "user", "parts": [{"type": "text", "text": "?"}]}
    body = ramet.core.json.dumps({"messages": [message]})
    await client.send(
        {
            "type": "cf_agent_use_chat_request",
            "id": request_id,
            "init": {"method": "POST", "body": body},
        }
    )
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
def as_nobody(*folders: Path) -> Iterator[None]:
    """Let go of root's right to ignore the modes of files, for the length of a block."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
