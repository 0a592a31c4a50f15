"""What `durability="power"` costs: commits, chunks and new agents a second, against "process".

Both sides in turn, on the disk of a folder of your choice, since a flush is a property of the disk:
`python -m benchmarks.power [--folder PATH] [--rounds N]`.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, get_args

import ramet
from benchmarks.measuring import interleaved, medians, report, say
from ramet.core.fence import Fence
from ramet.storage import Database

Durability = Literal["process", "power"]
COMMITS, CHUNKS, AGENTS = 300, 300, 30
QUESTION = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "?"}]}


class Streaming(ramet.AIChatAgent):
    """Streams short chunks as fast as it can."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        for number in range(CHUNKS):
            yield f"word {number} "
            await asyncio.sleep(0)

    async def answer(self) -> None:
        await self.save_messages([QUESTION])

    async def ping(self) -> None:
        return


def commits(folder: Path, durability: Durability) -> float:
    database = Database(folder / "commits.db", fence=Fence("a"), durability=durability)
    database.run("CREATE TABLE notes (text)")
    begun = time.perf_counter()
    for number in range(COMMITS):
        database.run("INSERT INTO notes VALUES (?)", f"note {number}")
    took = time.perf_counter() - begun
    database.close()
    return COMMITS / took


async def chunks(folder: Path, durability: Durability) -> float:
    options = ramet.HostOptions(durability=durability)
    async with ramet.App(agents=[Streaming], data_dir=folder, options=options) as app:
        agent = app.get_agent(Streaming, "a")
        await agent.ping()
        begun = time.perf_counter()
        await agent.answer()
        return CHUNKS / (time.perf_counter() - begun)


async def agents(folder: Path, durability: Durability) -> float:
    options = ramet.HostOptions(durability=durability)
    async with ramet.App(agents=[Streaming], data_dir=folder, options=options) as app:
        await app.get_agent(Streaming, "warm-up").ping()
        begun = time.perf_counter()
        for number in range(AGENTS):
            await app.get_agent(Streaming, f"agent-{number}").ping()
        return AGENTS / (time.perf_counter() - begun)


def measured(what: str, durability: Durability, folder: Path) -> float:
    data = Path(tempfile.mkdtemp(dir=folder))
    try:
        match what:
            case "commits":
                return commits(data, durability)
            case "chunks":
                return asyncio.run(chunks(data, durability))
            case _:
                return asyncio.run(agents(data, durability))
    finally:
        shutil.rmtree(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for what in ("commits", "chunks", "agents"):
        sides = {
            durability: lambda what=what, durability=durability: measured(
                what, durability, options.folder
            )
            for durability in get_args(Durability)
        }
        found = medians(interleaved(sides, rounds=options.rounds))
        ratio = found["process"] / found["power"]
        say(
            f"{what} a second: {found['process']:,.0f} with process, {found['power']:,.0f} "
            f"with power: {ratio:.1f} times slower"
        )
        figures |= {f"{what}_{side}": value for side, value in found.items()}
        figures[f"{what}_ratio"] = ratio
    report("power", figures)


if __name__ == "__main__":
    main()
