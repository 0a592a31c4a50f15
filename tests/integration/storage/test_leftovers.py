"""What is kept for work that is under way goes with it, also when a crash has ended it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import ramet
from ramet.testing import Harness
from tests.integration.storage.ground import question

ASKED = "SELECT key FROM cf_chat_recovery WHERE key LIKE '%:request:%'"


class Forgetful(ramet.AIChatAgent):
    """Never comes to an end, and does not go on after a crash."""

    chat_recovery: ramet.ChatRecovery | bool = False

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        yield "a beginning"
        await asyncio.Event().wait()


async def test_what_was_asked_is_forgotten_with_a_turn_that_does_not_go_on(tmp_path: Path) -> None:
    async with Harness(agents=[Forgetful], data_dir=tmp_path) as harness:
        client = await harness.connect(Forgetful, "a")
        await client.send(question("one", tone="friendly"))
        await harness.crash()
        assert len(harness.rows(Forgetful, "a", ASKED)) == 1
        await harness.restart()
        await harness.agent(Forgetful, "a")
        assert harness.rows(Forgetful, "a", ASKED) == []
