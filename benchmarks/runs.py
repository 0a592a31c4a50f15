"""What runs cost: one, many at once, beside many that are over, and shown again to a page.

`python -m benchmarks.runs [--rounds N] [--part NAME]`. Everything is processor time of this
process, against a floor that does the bare work of the same rows and frames with sqlite3 and json
alone, in the same run and in turn. Registries are filled with rows that a measured operation has no
use for.
"""

import argparse
import asyncio
import contextlib
import cProfile
import itertools
import json
import pstats
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import ramet
from benchmarks.measure import RunningHost
from benchmarks.measuring import report, say
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox

CHUNK = json.dumps({"type": "text-delta", "id": "t", "delta": "one two three four"})
FANS = (1, 8, 64, 512)
REGISTRIES = (10, 1_000, 100_000)
SHOWN = 10
_numbers = itertools.count()


class OneChunk(ramet.Agent[None]):
    """A child that has nothing but the adapter, and gives one chunk."""

    def on_start(self) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS said (position INTEGER PRIMARY KEY, body TEXT)")

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: object = None
    ) -> ramet.Inspection:
        self.sql("INSERT INTO said VALUES (0, ?)", CHUNK)
        return ramet.Inspection(run_id=run_id, status="running", started_at=0)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        return

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection:
        return ramet.Inspection(run_id=run_id, status="completed", started_at=0, summary="said")

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[ramet.StoredChunk]:
        rows = self.sql("SELECT * FROM said WHERE position > ?", after_sequence)
        return [ramet.StoredChunk(sequence=row["position"], body=row["body"]) for row in rows]


class Teller(ramet.AIChatAgent):
    """A chat child that streams as many chunks as it is asked for."""

    async def on_chat_message(self, turn: ramet.Turn) -> object:
        count = turn.body["agentToolInput"]
        for number in range(int(str(count))):
            if number % 64 == 0:
                await asyncio.sleep(0)
            yield f"word{number} "


class Desk(ramet.Agent[None]):
    """A parent."""

    async def fan(self, count: int) -> None:
        runs = [self.run_agent_tool(OneChunk, input="go") for _ in range(count)]
        for result in await asyncio.gather(*runs):
            assert result.status == "completed", result

    async def tell(self, count: int) -> None:
        result = await self.run_agent_tool(Teller, input=count)
        assert result.status == "completed", result

    async def fill(self, count: int) -> None:
        """Runs that are over, as many as there are to be."""
        self.sql(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
            "WHERE n < ?) INSERT INTO cf_agent_tool_runs (run_id, agent_type, status, summary, "
            "started_at, completed_at) SELECT 'old' || n, 'OneChunk', 'completed', 'said', n, n "
            "FROM numbers",
            count,
        )
        self.sql(
            "INSERT INTO cf_agent_tool_frames SELECT run_id, number, kind, 0, NULL FROM "
            "cf_agent_tool_runs, (SELECT 0 AS number, 'started' AS kind UNION ALL "
            "SELECT 1, 'terminal')"
        )

    async def knows(self, times: int) -> None:
        for number in range(times):
            assert self.has_agent_tool_run(OneChunk, f"old{number % 10 + 1}")

    async def clear_one(self) -> None:
        self.sql("UPDATE cf_agent_tool_runs SET status = 'aborted' WHERE run_id = 'old1'")
        await self.clear_agent_tool_runs(status="aborted")
        self.sql(
            "INSERT INTO cf_agent_tool_runs (run_id, agent_type, status, started_at) "
            "VALUES ('old1', 'OneChunk', 'completed', 1)"
        )


class Bench:
    """A running host and its parents."""

    def __init__(self, running: RunningHost) -> None:
        self.running = running

    async def desk(self, name: str) -> Desk:
        """The live parent of a name."""
        instance = await self.running.host.instances.opened(self.running.path(Desk, name))
        agent: object = instance.built.agent
        assert isinstance(agent, Desk)
        return agent

    async def page(self, name: str) -> int:
        """Connect a page and take all that it is shown; how many frames that were."""
        request = ramet.Request(url=f"ws://localhost/agents/desk/{name}")
        link = ClientLink(
            id=f"c{next(_numbers)}", request=request, outbox=Outbox(limit_bytes=2**24)
        )
        await self.running.host.connect(self.running.path(Desk, name), link)
        frames = 0
        while True:
            batch = link.outbox.take_now()
            frames += len(batch)
            if not batch:
                if not link.behind:
                    break
                await asyncio.sleep(0)
        self.running.host.disconnect(link, 1000, "")
        return frames


async def processor(work: Awaitable[object]) -> float:
    """Milliseconds of processor time that something takes."""
    began = time.process_time()
    await work
    return (time.process_time() - began) * 1000


@contextlib.contextmanager
def database(file: Path) -> Iterator[sqlite3.Connection]:
    """A database as ramet opens one."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA synchronous = NORMAL")
        yield opened


class Floor:
    """The rows and frames of the same work, without ramet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._parent = folder / "parent.db"
        with database(self._parent) as parent:
            parent.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, status TEXT, summary TEXT)")
            parent.execute("CREATE TABLE frames (run TEXT, number INTEGER, kind TEXT)")
            parent.execute("CREATE TABLE children (name TEXT PRIMARY KEY)")

    async def run(self) -> None:
        """One run: a file for the child with a row, and the parent's four commits."""
        name = f"r{next(_numbers)}"
        with database(self._parent) as parent, database(self.folder / f"{name}.db") as child:
            with parent:
                parent.execute("INSERT INTO runs VALUES (?, 'starting', NULL)", (name,))
                parent.execute("INSERT INTO children VALUES (?)", (name,))
            parent.execute("INSERT INTO frames VALUES (?, 0, 'started')", (name,))
            child.execute("CREATE TABLE said (position INTEGER PRIMARY KEY, body TEXT)")
            child.execute("INSERT INTO said VALUES (0, ?)", (CHUNK,))
            parent.execute("UPDATE runs SET status = 'running' WHERE id = ?", (name,))
            rows = child.execute("SELECT position, body FROM said").fetchall()
            self.shown = [framed(name, *row) for row in rows]
            with parent:
                parent.execute("UPDATE runs SET status = 'completed' WHERE id = ?", (name,))
                parent.execute("INSERT INTO frames VALUES (?, 2, 'terminal')", (name,))

    def told(self, runs: int, chunks: int) -> None:
        """Files of children with so many chunks each."""
        for number in range(runs):
            with database(self.folder / f"told{number}.db") as child, child:
                child.execute("CREATE TABLE said (position INTEGER PRIMARY KEY, body TEXT)")
                rows = ((place, CHUNK) for place in range(chunks))
                child.executemany("INSERT INTO said VALUES (?, ?)", rows)

    async def show(self, runs: int) -> None:
        """Read them all and make frames of them."""
        for number in range(runs):
            with database(self.folder / f"told{number}.db") as child:
                rows = child.execute("SELECT position, body FROM said ORDER BY position")
                self.shown = [framed(f"told{number}", *row) for row in rows]


def framed(run: str, position: int, body: str) -> str:
    """A chunk as it is sent."""
    event = {"kind": "chunk", "runId": run, "body": body}
    return json.dumps({"type": "agent-tool-event", "sequence": position + 1, "event": event})


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def overhead(bench: Bench, floor: Floor, rounds: int) -> dict[str, float | bool]:
    """One run with one chunk, from dispatch to its end."""
    desk = await bench.desk("one")
    mine: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        mine.append(await processor(desk.fan(1)))
        bare.append(await processor(floor.run()))
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(rounds):
        await desk.fan(1)
    profile.disable()
    took, least = statistics.median(mine), statistics.median(bare)
    say(f"a run: {took:.2f} ms, the bare rows {least:.2f} ms, {took / least:.1f} of it")
    stats = pstats.Stats(profile)
    times = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:5]  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, own, _, _) in times:
        place = f"{Path(file).name}:{line} {name}" if line else name
        say(f"    {own / rounds * 1000:.3f} ms in {calls / rounds:.0f} calls of {place}")
    return {"run_ms": took, "run_ratio": took / least, "run_ok": took / least <= 2}


async def fan_out(bench: Bench, floor: Floor, rounds: int) -> dict[str, float | bool]:
    """Runs at once: the cost of each must not grow, nor the open files."""
    each: dict[int, float] = {}
    most = 0
    for count in FANS:
        times = []
        for round_ in range(max(1, min(rounds, 512 // count, 9))):
            desk = await bench.desk(f"fan{count}-{round_}")
            watching = asyncio.ensure_future(_most_files())
            times.append(await processor(desk.fan(count)) / count)
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                most = max(most, await watching)
            most = max(most, open_files())
        each[count] = statistics.median(times)
        say(f"{count} at once: {each[count]:.2f} ms each")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    say(f"{most:,} files open at most, {limit:,} allowed")
    growth = each[512] / each[8]
    return {"fan_growth": growth, "fan_ok": growth <= 1.5, "open_files": most}


async def _most_files() -> int:
    most = 0
    try:
        while True:
            most = max(most, open_files())
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return most


async def registries(bench: Bench, floor: Floor, rounds: int) -> dict[str, float | bool]:
    """The same operations beside more and more runs that are over."""
    for count in REGISTRIES:
        await (await bench.desk(f"full{count}")).fill(count)
        await bench.page(f"full{count}")
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for count in REGISTRIES:
            desk = await bench.desk(f"full{count}")
            work: dict[str, Callable[[], Awaitable[object]]] = {
                "dispatch": partial(desk.fan, 1),
                "known": partial(desk.knows, 100),
                "connect": partial(bench.page, f"full{count}"),
                "clear": desk.clear_one,
            }
            for name, call in work.items():
                times.setdefault((name, count), []).append(await processor(call()))
    figures: dict[str, float | bool] = {}
    for name in ("dispatch", "known", "connect", "clear"):
        took = [statistics.median(times[name, count]) for count in REGISTRIES]
        growth = took[-1] / took[0]
        rows = ", ".join(
            f"{ms:.2f} ms beside {count:,}" for ms, count in zip(took, REGISTRIES, strict=True)
        )
        say(f"{name}: {rows}; {growth:.2f} times")
        figures[f"{name}_growth"] = growth
    figures["registries_ok"] = max(v for v in figures.values()) <= 1.5
    return figures


async def shown_again(bench: Bench, floor: Floor, rounds: int) -> dict[str, float | bool]:
    """A page that comes back to 100 runs of 200 chunks, and to one of 5,000."""
    figures: dict[str, float | bool] = {}
    for name, runs, chunks in (("reconnect", 100, 200), ("replay", 1, 5_000)):
        desk = await bench.desk(name)
        for _ in range(runs):
            await desk.tell(chunks)
        for path in bench.running.host.instances.below(bench.running.path(Desk, name)):
            bench.running.host.evict(path.path)
        side = Floor(floor.folder / name)
        side.told(runs, chunks)
        mine, bare = [], []
        for _ in range(rounds):
            mine.append(await processor(bench.page(name)))
            bare.append(await processor(side.show(runs)))
        took, least = statistics.median(mine), statistics.median(bare)
        say(f"{name}: {took:.1f} ms, the bare rows and frames {least:.1f} ms")
        figures[f"{name}_ms"], figures[f"{name}_ratio"] = took, took / least
    figures["shown_ok"] = max(figures["reconnect_ratio"], figures["replay_ratio"]) <= 2.5
    return figures


PARTS = {
    "overhead": overhead,
    "fan_out": fan_out,
    "registries": registries,
    "shown_again": shown_again,
}


async def measured(data: Path, options: argparse.Namespace) -> dict[str, float | bool]:
    figures: dict[str, float | bool] = {}
    for name, part in PARTS.items():
        if options.part in {None, name}:
            running = RunningHost(
                data / name, [Desk], sub_agents=[OneChunk, Teller], replay_runs=1_000
            )
            if name == "registries":
                running = RunningHost(
                    data / name, [Desk], sub_agents=[OneChunk, Teller], replay_runs=SHOWN
                )
            async with running:
                floor = Floor(data / f"floor-{name}")
                figures |= await part(Bench(running), floor, options.rounds)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--part", choices=PARTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measured(Path(folder), options))
    report("runs", figures)


if __name__ == "__main__":
    main()
