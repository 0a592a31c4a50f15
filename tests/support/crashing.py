"""A process that works on schedules and queues until an armed failpoint kills it.

What it had called before it died is in `calls` in its folder, its wake-up in `wake`.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from ramet.core import failpoints
from ramet.testing.quiet import quiet
from tests.support.ground import ROOT, Ground, Index, Verbs


class FileIndex(Index):
    """An index that is on disk when a call returns."""

    def __init__(self, file: Path) -> None:
        super().__init__(due_ms=int(file.read_text()) if file.exists() else None)
        self._file = file

    def set(self, due_ms: int | None) -> None:
        super().set(due_ms)
        if due_ms is None:
            self._file.unlink(missing_ok=True)
        else:
            self._file.write_text(str(due_ms))


class Worker(Verbs):
    """Notes on disk what it is called with."""

    async def work(self, payload: object) -> None:
        file = os.open(self.ground.folder / "calls", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(file, f"{payload}\n".encode())
        finally:
            os.close(file)


async def delayed(ground: Ground[Worker]) -> None:
    await ground.root.agent.schedule(5, "work", "delayed")


async def interval(ground: Ground[Worker]) -> None:
    await ground.root.agent.schedule_every(60, "work", "interval")


async def cron(ground: Ground[Worker]) -> None:
    await ground.root.agent.schedule("* * * * *", "work", "cron")


async def below(ground: Ground[Worker]) -> None:
    agent = await ground.sub(Worker, "a")
    await agent.schedule(5, "work", "below")


async def queued(ground: Ground[Worker]) -> None:
    for number in range(3):
        await ground.root.agent.queue("work", number)


async def queued_below(ground: Ground[Worker]) -> None:
    agent = await ground.sub(Worker, "a")
    await agent.queue("work", "below")


SCENES: dict[str, Callable[[Ground[Worker]], Awaitable[None]]] = {
    scene.__name__: scene for scene in (delayed, interval, cron, below, queued, queued_below)
}


def ground_in(folder: Path) -> Ground[Worker]:
    """The root in a folder, as a process finds it."""
    ground = Ground(folder, Worker)
    ground.keep(FileIndex(folder / "wake"))
    ground.registered[ROOT.child("Sub", "a")] = Worker
    return ground


async def play(folder: Path, scene: str) -> None:
    """Play a scene until nothing is left to do for a minute."""
    ground = ground_in(folder)
    await ground.open()
    await SCENES[scene](ground)
    await ground.advance(60)
    await quiet()
    await ground.close()


def play_until_killed(folder: Path, scene: str, failpoint: str) -> None:
    """Play a scene in a process of its own, which the failpoint `name` or `name:pass` kills."""
    process = _PROCESSES.Process(target=_play_armed, args=(folder, scene, failpoint))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"{failpoint} was not reached"


def _play_armed(folder: Path, scene: str, failpoint: str) -> None:
    name, _, passes = failpoint.partition(":")
    failpoints._ARMED, failpoints._passes_left = name, int(passes or 1)
    asyncio.run(play(folder, scene))


# Each process is forked from one that has its imports done, and no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])
