"""Runs a command so that it can neither outlive its turn nor the server: on a leash."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ramet.demo import leash
from ramet.demo.command_output import LineSplitter

GRACE_SECONDS = 5.0
"""How long a command that is told to end may take before it is killed."""

_BLOCK = 16 * 1024
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER")


class LeashedCommand:
    """A command that is running."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def lines(self) -> AsyncIterator[list[str]]:
        """What it prints, standard error too, as blocks of lines; ends when it has ended."""
        assert self._process.stdout is not None
        splitter = LineSplitter()
        while block := await self._process.stdout.read(_BLOCK):
            if lines := splitter.feed(block):
                yield lines
        if lines := splitter.end():
            yield lines

    async def exit_code(self) -> int:
        """How it ended; 128 and more for a signal."""
        return await self._process.wait()

    async def stop(self) -> None:
        """Let go of the leash, and wait until the command's process group is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        while await self._process.stdout.read(_BLOCK):
            pass
        await self._process.wait()


@asynccontextmanager
async def leashed(
    command: Sequence[str], *, folder: Path, grace: float = GRACE_SECONDS
) -> AsyncIterator[LeashedCommand]:
    """Run a command in a folder; whatever ends the block, the command has ended with it.

    No shell reads the command, and of this process's environment, keys among it, it gets next to
    nothing. Its leash is a pipe that only this process holds: `kill -9` lets go of it too.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(leash.__file__), str(grace), *command),
        cwd=folder,
        env=_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    running = LeashedCommand(process)
    try:
        yield running
    finally:
        await running.stop()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
