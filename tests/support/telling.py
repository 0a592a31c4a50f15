"""A process with chat agents, root and child, that answer until an armed failpoint kills it."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import ramet
from ramet.chat.turn import Turn
from ramet.core import failpoints
from ramet.protocol.messages import text_of, user_message
from ramet.testing import Harness

WORDS = "one two three"
WAIT_SECONDS = 40.0
"""How long a process waits for lost turns to be taken up."""
_TOLD = "RAMET_TEST_TOLD"


class Teller(ramet.AIChatAgent[object]):
    """Says three words, each in a chunk of its own."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        for word in WORDS.split(" "):
            yield f" {word}" if word != "one" else word


class Lead(ramet.AIChatAgent[object]):
    """Has a `Teller` below it answer."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        run = await self.run_agent_tool(Teller, input="tell", run_id="run")
        yield str(run.summary)


class Hopeless(ramet.AIChatAgent[object]):
    """Says nothing for ever, and is given up the second time that it was lost."""

    def __init__(self) -> None:
        self.chat_recovery = ramet.ChatRecovery(no_progress_timeout=0, on_exhausted=self.note)

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        if not turn.continuation:
            yield "well"
        await asyncio.get_running_loop().create_future()

    def note(self, given_up: ramet.ChatRecoveryExhausted) -> None:
        """Note on disk that it was told."""
        file = os.open(os.environ[_TOLD], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(file, f"{given_up.reason}\n".encode())
        finally:
            os.close(file)


def harness(folder: Path, *, seed: int = 1) -> Harness:
    """A host; another process has another seed, since ids are not made twice."""
    os.environ[_TOLD] = str(folder / "told")
    classes = [Teller, Lead, Hopeless]
    return Harness(agents=classes, sub_agents=[Teller], data_dir=folder / "data", seed=seed)


def told(folder: Path) -> list[str]:
    """The reasons that `Hopeless` was told, over all processes."""
    file = folder / "told"
    return file.read_text().split() if file.exists() else []


async def ask(host: Harness, cls: type[ramet.AIChatAgent[object]]) -> ramet.AIChatAgent[object]:
    """Ask something, and let the answer go as far as it goes."""
    agent = await host.agent(cls, "a")
    work = agent.save_messages([user_message("tell", id="u")])
    agent._ramet_chat.ports.context.background.start(work, name="ask")
    await host.settle()
    return agent


async def tell(folder: Path) -> None:
    """A root answers."""
    async with harness(folder) as host:
        await ask(host, Teller)


async def lead(folder: Path) -> None:
    """A root has its child answer."""
    async with harness(folder) as host:
        await ask(host, Lead)


async def lose_hope(folder: Path) -> None:
    """A turn is lost twice, then given up in this process."""
    async with harness(folder) as host:
        await ask(host, Hopeless)
        for _ in range(2):
            await host.crash()
            await host.restart()
            await host.advance(WAIT_SECONDS)


SCENES: dict[str, Callable[[Path], Awaitable[None]]] = {
    scene.__name__: scene for scene in (tell, lead, lose_hope)
}


def play_until_killed(folder: Path, scene: str, failpoint: str) -> None:
    """Play in a process of its own, which the failpoint `name` or `name:pass` kills."""
    process = _PROCESSES.Process(target=_play_armed, args=(folder, scene, failpoint))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"{failpoint} was not reached"


def said(agent: ramet.AIChatAgent[object]) -> list[str]:
    """The texts of the transcript."""
    return [text_of(message) for message in agent.messages]


def _play_armed(folder: Path, scene: str, failpoint: str) -> None:
    name, _, passes = failpoint.partition(":")
    failpoints._ARMED, failpoints._passes_left = name, int(passes or 1)
    asyncio.run(_played(folder, scene))


async def _played(folder: Path, scene: str) -> None:
    await SCENES[scene](folder)


# Each process is forked from one that has its imports done, and no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])
