"""A process that deletes agents, until an armed failpoint kills it."""

import asyncio
import multiprocessing
import signal
from pathlib import Path

import ramet
from ramet.core import failpoints
from ramet.errors import InstanceGone
from ramet.testing import Harness
from ramet.testing.harness import Below

SCENES = ("child", "root")


class Keeper(ramet.Agent[dict[str, str]]):
    """Keeps something, and has it looked at every minute."""

    initial_state: dict[str, str] = {}

    def on_start(self) -> None:
        STARTED.append(self.name)

    async def fill(self) -> None:
        """Store what must be gone later."""
        self.set_state({"of": self.name})
        await self.schedule_every(60, self.look)

    async def look(self) -> None:
        """Called by the schedule."""


class Box(Keeper):
    """The same, below another."""


STARTED: list[str] = []
ONE: Below = ((Box, "one"),)
DEEP: Below = ((Box, "one"), (Box, "deep"))


def harness(folder: Path, *, seed: int = 1) -> Harness:
    """A host; another process has another seed, since ids are not made twice."""
    return Harness(agents=[Keeper], sub_agents=[Box], data_dir=folder, seed=seed)


async def play(folder: Path, scene: str) -> None:
    """Make a root with a child and a grandchild, all with something, and delete some of it."""
    async with harness(folder) as host:
        root = await host.agent(Keeper, "r")
        one = await root.sub_agent(Box, "one")
        await (await host.agent(Keeper, "r", ONE)).sub_agent(Box, "deep")
        for filled in (root, one, await host.agent(Keeper, "r", DEEP)):
            await filled.fill()
        try:
            await (root.delete_sub_agent(Box, "one") if scene == "child" else root.destroy())
        except InstanceGone:
            return


def play_until_killed(folder: Path, scene: str, failpoint: str) -> None:
    """Play in a process of its own, which the failpoint `name` or `name:pass` kills."""
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
