"""100,000 schedules due over 10,000 agents within one minute: how late they run, in what memory.

An hour's worth pressed into a minute of real time. The agents are on disk when the host starts; the
lateness counts from the whole second for which a schedule was stored. Run it with
`python -m benchmarks.schedules [--agents N] [--each N] [--seconds N] [--open N]`.
"""

import argparse
import asyncio
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import ramet
from benchmarks.measure import RunningHost, percentiles, resident

LATE: list[float] = []
AHEAD_MS = 3_600_000


class Sleeper(ramet.Agent[None]):
    """Notes how late it is woken."""

    async def plan(self, moments: list[int]) -> None:
        for moment in moments:
            await self.schedule(datetime.fromtimestamp(moment, UTC), self.ring, moment)

    async def ring(self, moment: int) -> None:
        LATE.append(self._ramet.context.clock.now_ms() - moment * 1000)


async def prepare(data: Path, options: argparse.Namespace) -> int:
    """Write the schedules; returns the second in which the first is due."""
    first = int(time.time()) + AHEAD_MS // 1000
    step = options.seconds / (options.agents * options.each)
    async with RunningHost(data, [Sleeper]) as running:
        for agent in range(options.agents):
            numbers = range(agent, options.agents * options.each, options.agents)
            moments = [first + int(number * step) for number in numbers]
            await running.host.stub(running.path(Sleeper, f"a{agent}"), Sleeper).plan(moments)
    return first


async def run(data: Path, options: argparse.Namespace, first: int) -> None:
    expected = options.agents * options.each
    ahead_ms = (first - 2) * 1000 - int(time.time() * 1000)
    began = time.process_time()
    async with RunningHost(data, [Sleeper], most_open=options.open, ahead_ms=ahead_ms) as running:
        most = resident()
        end = time.monotonic() + options.seconds * 3 + 30
        while len(LATE) < expected and time.monotonic() < end:
            await asyncio.sleep(1)
            most = max(most, resident())
        used = time.process_time() - began
        opened = len(running.host.instances)
    print(f"{len(LATE):,} of {expected:,} ran; lateness {percentiles(LATE, 'ms')}")
    print(f"{used / max(1, len(LATE)) * 1000:.2f} ms of processor time for each")
    print(f"memory {most:,.0f} MiB at most, {opened:,} agents open in the end")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--open", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        first = asyncio.run(prepare(Path(folder), options))
        print(f"written in {time.perf_counter() - began:.0f} s")
        asyncio.run(run(Path(folder), options, first))


if __name__ == "__main__":
    main()
