"""Answers from synchronous generators, which may block: they do so in a thread."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Turn
from ramet.core.current import current_agent
from ramet.testing import Harness
from tests.integration.chat.support import ask, endings, text_of


class Blocking(AIChatAgent[object]):
    """Says in which thread it is asked for words, for ever if told so."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.agents: list[object] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        """Set for an answer without end, which is cancelled after its third word."""

    def on_chat_message(self, turn: Turn) -> Iterator[str]:
        yield from ("a", " b")
        self.threads.add(threading.get_ident())
        self.agents.append(current_agent())
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._ramet_chat.turns.cancel_all)
            yield from itertools.repeat(".", 100_000)


async def test_a_synchronous_generator_runs_outside_the_event_loop(tmp_path: Path) -> None:
    async with Harness(agents=[Blocking], data_dir=tmp_path) as h:
        client = await h.connect(Blocking, "a")
        agent = await h.agent(Blocking, "a")
        await ask(client)
        await h.settle()
        assert text_of(client) == "a b"
        assert endings(client)[0]["outcome"] == "completed"
        assert agent.threads
        assert threading.get_ident() not in agent.threads
        assert agent.agents == [agent]


async def test_an_endless_generator_is_cancelled_between_two_items(tmp_path: Path) -> None:
    async with Harness(agents=[Blocking], data_dir=tmp_path) as h:
        client = await h.connect(Blocking, "a")
        agent = await h.agent(Blocking, "a")
        agent.loop = asyncio.get_running_loop()
        await ask(client)
        await h.settle()
        assert endings(client)[0]["outcome"] == "aborted"
        assert text_of(client).startswith("a b")
