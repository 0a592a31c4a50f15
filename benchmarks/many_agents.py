"""What many agents cost: memory with a socket each, open and hibernated; disk and start-up.

`python -m benchmarks.many_agents [--sockets N] [--stored N]`: 2,000 agents with an open socket
each, then 100,000 agents on disk with a wake-up each, against ten (they take 18 GiB and minutes).
"""

import argparse
import asyncio
import gc
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import ramet
from benchmarks.measure import MEBIBYTE, RunningHost, milliseconds, resident
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.host.memory import give_back


class Quiet(ramet.Agent[None]):
    """Has a schedule and does nothing."""

    async def plan(self) -> None:
        await self.schedule(1_000_000, self.plan)


async def sockets(data: Path, count: int) -> None:
    async with RunningHost(data, [Quiet], most_open=2 * count) as running:
        await running.host.stub(running.path(Quiet, "first"), Quiet).plan()
        before = resident()
        links = []
        for number in range(count):
            request = ramet.Request(url=f"ws://localhost/agents/quiet/a{number}")
            link = ClientLink(id=f"{number}", request=request, outbox=Outbox(limit_bytes=2**22))
            await running.host.connect(running.path(Quiet, f"a{number}"), link)
            link.outbox.take_now()
            links.append(link)
        opened = resident()
        for number in range(count):
            running.host.evict(running.path(Quiet, f"a{number}"))
        await asyncio.sleep(1)
        gc.collect()
        give_back()  # as a look at idle agents does
        hibernated = resident()
        began = time.perf_counter()
        for link in links[:100]:
            running.host.receive(link, '{"type":"rpc","id":"1","method":"none","args":[]}')
        while len(running.host.instances) < 100:  # noqa: ASYNC110 - a benchmark
            await asyncio.sleep(0)
        took = milliseconds(began) / 100
    print(f"{count:,} agents with a socket each, per agent:")
    print(f"  open {(opened - before) / count * 1024:,.1f} KiB", end=", ")
    print(f"hibernated {(hibernated - before) / count * 1024:,.1f} KiB", end=", ")
    print(f"opened again by a frame in {took:.1f} ms")


async def stored(data: Path, count: int) -> None:
    """One agent is made by the host; the others are copies of its file under their own names."""
    async with RunningHost(data, [Quiet]) as running:
        await running.host.stub(running.path(Quiet, "a0"), Quiet).plan()
        made = running.host.files.file_of(running.path(Quiet, "a0"))
        files = [running.host.files.file_of(running.path(Quiet, f"a{n}")) for n in range(1, count)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, file)
    _add_wakeups(data, count)
    size = _size(data)
    began = time.perf_counter()
    async with RunningHost(data, [Quiet]):
        took = milliseconds(began)
    print(f"{count:,} agents on disk: {size / MEBIBYTE:,.1f} MiB", end=", ")
    print(f"{size / count / 1024:,.1f} KiB each, start-up {took:.1f} ms")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _add_wakeups(data: Path, count: int) -> None:
    """As many wake-ups in the host's index as there are agents."""
    for file in data.iterdir():
        if not file.is_file() or not file.read_bytes().startswith(b"SQLite format 3"):
            continue
        with closing(sqlite3.connect(file)) as database, database:
            names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if "ramet_wakeups" in names:
                database.executemany(
                    "INSERT INTO ramet_wakeups (root, due_ms) VALUES (?, ?)",
                    ((f'[["Quiet","a{n}"]]', 2**45 + n) for n in range(1, count)),
                )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sockets", type=int, default=2_000)
    parser.add_argument("--stored", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(sockets(Path(folder), options.sockets))
    for count in (10, options.stored):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(stored(Path(folder), count))


if __name__ == "__main__":
    main()
