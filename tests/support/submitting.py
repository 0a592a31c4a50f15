"""A process with an agent that works on what is submitted, until an armed failpoint kills it."""

import asyncio
import multiprocessing
import signal
from pathlib import Path

import ramet
from ramet.core import failpoints
from ramet.protocol.messages import text_of, user_message
from ramet.testing import Harness
from ramet.testing.scripted_model import ScriptedModel

NUMBERS = (1, 2)


class Clerk(ramet.Think):
    """Answers each submission with `done`."""

    def get_model(self) -> ScriptedModel:
        return ScriptedModel.by_rule(lambda messages, tools: "done")


def harness(folder: Path, *, seed: int = 1) -> Harness:
    """A host; another process has another seed, since ids are not made twice."""
    return Harness(agents=[Clerk], data_dir=folder, seed=seed)


async def play(folder: Path) -> None:
    """Submit two questions of two messages each, and let both be answered."""
    async with harness(folder) as host:
        clerk = await host.agent(Clerk, "c")
        for number in NUMBERS:
            several = [user_message(f"{number}{part}", id=f"u{number}{part}") for part in "ab"]
            await clerk.submit_messages(several, submission_id=f"s{number}")
        await host.settle()


def play_until_killed(folder: Path, failpoint: str) -> None:
    """Play in a process of its own, which the failpoint `name` or `name:pass` kills."""
    process = _PROCESSES.Process(target=_play_armed, args=(folder, failpoint))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"{failpoint} was not reached"


def said(clerk: Clerk) -> list[str]:
    """The texts of the transcript."""
    return [text_of(message) for message in clerk.messages]


def _play_armed(folder: Path, failpoint: str) -> None:
    name, _, passes = failpoint.partition(":")
    failpoints._ARMED, failpoints._passes_left = name, int(passes or 1)
    asyncio.run(play(folder))


# Each process is forked from one that has its imports done, and no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])
