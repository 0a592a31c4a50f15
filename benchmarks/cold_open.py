"""How long a chat agent takes to open from disk, with 0, 1,000 and 100,000 messages.

`python -m benchmarks.cold_open [--rounds N] [--most N]`. What is measured goes from a call to its
answer; the first round of each size is left out.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import RunningHost, milliseconds, percentiles
from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Turn
from ramet.core.json import dumps

SIZES = (0, 1_000, 100_000)


class Talker(AIChatAgent[None]):
    """Has said much."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        yield "ok"

    async def fill(self, count: int) -> None:
        """Store messages as if they had been said."""
        for number in range(count):
            text = f"Message {number}: " + "a few words more " * 6
            role = "assistant" if number % 2 else "user"
            message = {"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": text}]}
            self.sql(
                "INSERT INTO cf_ai_chat_agent_messages (id, position, role, message, created_at) "
                "VALUES (?, ?, ?, ?, ?)",
                f"m{number}",
                number,
                role,
                dumps(message),
                number,
            )

    async def hello(self) -> str:
        return "hello"


async def measure(data: Path, count: int, rounds: int) -> None:
    async with RunningHost(data, [Talker]) as running:
        path = running.path(Talker, "a")
        stub = running.host.stub(path, Talker)
        await stub.fill(count)
        took = []
        for _ in range(rounds + 1):
            running.host.evict(path)
            began = time.perf_counter()
            await stub.hello()
            took.append(milliseconds(began))
    print(f"{count:,} messages: {percentiles(took[1:], 'ms')}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--most", type=int, default=max(SIZES))
    options = parser.parse_args()
    for count in SIZES:
        if count <= options.most:
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(measure(Path(folder), count, options.rounds))


if __name__ == "__main__":
    main()
