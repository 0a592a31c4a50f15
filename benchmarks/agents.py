"""What an agent costs to open: time, memory and disk, against a copied SQLite file that is opened.

The floor copies a database of the same size, connects, sets the write-ahead log and writes one row.
"""

import argparse
import asyncio
import gc
import multiprocessing
import resource
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from measuring import report, say

import ramet
from ramet.core.json import JsonObject


class Plain(ramet.Agent[JsonObject]):
    """An agent without anything."""

    async def ping(self) -> None:
        return


class Chat(ramet.AIChatAgent):
    """A chat agent."""

    async def ping(self) -> None:
        return

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        yield ""


class Thinker(ramet.Think):
    """A chat agent with a model."""

    async def ping(self) -> None:
        return


def _measured(cls: type[Plain | Chat | Thinker], count: int) -> dict[str, float]:
    return asyncio.run(opened(cls, count))


async def opened(cls: type[Plain | Chat | Thinker], count: int) -> dict[str, float]:
    """Open agents one after the other; the medians, and what all of them hold."""
    with tempfile.TemporaryDirectory() as data:
        app = ramet.App(agents=[cls], data_dir=data)
        async with app:
            await app.get_agent(cls, "warm-up").ping()
            gc.collect()
            before, times = _resident(), []
            for number in range(count):
                begun = time.perf_counter()
                await app.get_agent(cls, f"agent-{number}").ping()
                times.append(time.perf_counter() - begun)
            gc.collect()
            memory = (_resident() - before) / count
            warm = await _warm(app, cls, count)
            floor = _floor(_files(data)[0], Path(data), count)
        size = statistics.mean(file.stat().st_size for file in _files(data))
    return {
        "cold_ms": statistics.median(times) * 1000,
        "floor_ms": floor * 1000,
        "warm_call_us": warm * 1e6,
        "memory_kib": memory,
        "file_kib": size / 1024,
    }


async def _warm(app: ramet.App, cls: type[Plain | Chat | Thinker], count: int) -> float:
    begun = time.perf_counter()
    for number in range(count):
        await app.get_agent(cls, f"agent-{number}").ping()
    return (time.perf_counter() - begun) / count


def _floor(template: Path, folder: Path, count: int) -> float:
    times, connections = [], []
    for number in range(count):
        begun = time.perf_counter()
        file = folder / f"floor-{number}" / "floor.db"
        file.parent.mkdir()
        shutil.copyfile(template, file)
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("INSERT INTO cf_agents_state VALUES (?, 'x')", (f"floor-{number}",))
        times.append(time.perf_counter() - begun)
        connections.append(connection)
    for connection in connections:
        connection.close()
    return statistics.median(times)


def _files(data: str) -> list[Path]:
    return sorted(Path(data).rglob("agent.db"))


def _resident() -> float:
    """KiB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for cls in (Plain, Chat, Thinker):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            found = process.submit(_measured, cls, options.agents).result()
        ratio = found["cold_ms"] / found["floor_ms"]
        say(
            f"{cls.__name__}: cold {found['cold_ms']:.2f} ms ({ratio:.1f} times a copied file), "
            f"warm call {found['warm_call_us']:.0f} us, {found['memory_kib']:.0f} KiB in memory, "
            f"{found['file_kib']:.0f} KiB on disk"
        )
        figures |= {f"{cls.__name__.lower()}_{key}": value for key, value in found.items()}
        figures[f"{cls.__name__.lower()}_cold_ratio"] = ratio
    report("agents", figures)


if __name__ == "__main__":
    main()
