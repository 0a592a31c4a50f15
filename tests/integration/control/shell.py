"""Types commands in, as an operator does, while the agents of a test run in the same process."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

import ramet
from ramet.cli.main import main
from ramet.core.json import JsonObject, loads_object
from tests.integration.control.desk import Clerk, Desk, Folder, HTTPDesk, Stranger


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> JsonObject:
        """What it wrote for programs."""
        assert self.code == 0, self.err
        answer = loads_object(self.out)
        assert answer is not None, self.out
        return answer

    @property
    def sentence(self) -> str:
        """The one sentence with which it refused."""
        assert self.code == 1, self.out
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("Error: ").removesuffix("\n")


class Shell:
    """A terminal, with the data directory in every command."""

    def __init__(self, data: Path) -> None:
        self.data = data

    async def run(self, *words: str) -> Said:
        """Run a command beside the agents, as another process does."""
        return await asyncio.to_thread(self._run, *words)

    def run_here(self, *words: str) -> Said:
        """Run a command while no agents run in this process."""
        with ThreadPoolExecutor(1) as another:
            return another.submit(self._run, *words).result()

    def _run(self, *words: str) -> Said:
        done = CliRunner().invoke(main, [*words, "--data", str(self.data)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Said(code=done.exit_code, out=done.stdout, err=done.stderr)


@asynccontextmanager
async def desks(data: Path) -> AsyncIterator[ramet.App]:
    """The agents, running in this process as long as the block."""
    app = ramet.App(
        agents=[Desk, HTTPDesk],
        sub_agents=[Clerk, Stranger, Folder],
        data_dir=data,
        options=ramet.HostOptions(grace_period=0),
    )
    async with app:
        yield app
