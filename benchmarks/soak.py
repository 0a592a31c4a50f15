"""200 chats for ten minutes against one server: memory, files, threads and lateness stay flat.

Real sockets to a `ramet serve` of its own. Each chat asks, is answered in a stream, has schedules,
queue items and runs; its page breaks off in the middle, comes back, or stays away until the agent
has left memory. `python -m benchmarks.soak [--minutes N] [--chats N]`; the exit code says whether.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from benchmarks.measuring import report, say
from ramet.core.json import JsonObject, dumps, loads_object

SAMPLE_SECONDS = 5.0
WARM_UP = 0.35
"""The share of the time that does not count: caches fill, agents are made."""
MOST_GROWTH = {"memory_mib": 0.02, "files": 0.02, "threads": 0.02}
"""By how much of its mean a figure may grow in a minute."""
MOST_LATER = 1.5
"""How much later things may be in the last third than in the first: times the median."""


@dataclass(slots=True)
class Sample:
    """What the server held at a moment, and how it answered since the last."""

    minutes: float
    memory_mib: float
    files: float
    threads: float
    probe_ms: float
    late_ms: float


@dataclass(slots=True)
class Soak:
    """One run of it."""

    port: int
    process: int
    chats: int
    begun: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    answers: int = 0
    broken_off: int = 0
    lost: int = 0
    calls: JsonObject = field(default_factory=dict)

    async def chat(self, number: int, end: float) -> None:
        chance = random.Random(number)
        await asyncio.sleep(chance.uniform(0, 5))
        uri = f"ws://127.0.0.1:{self.port}/agents/chat/c{number}"
        while time.monotonic() < end:
            try:
                async with connect(uri, max_size=None, ping_interval=None, proxy=None) as socket:
                    await self._talk(socket, chance)
            except (OSError, WebSocketException):
                self.lost += 1
            await asyncio.sleep(chance.choice([0.1, 1, 3, 10]))

    async def _talk(self, socket: ClientConnection, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 4)):
            request_id = f"r-{chance.random()}"
            message = {"id": f"u-{request_id}", "role": "user"}
            message |= {"parts": [{"type": "text", "text": "go on"}]}
            body = dumps({"messages": [message], "trigger": "submit-message"})
            frame = {"type": "cf_agent_use_chat_request", "id": request_id}
            await socket.send(dumps({**frame, "init": {"method": "POST", "body": body}}))
            leaves_after = chance.randint(1, 20) if chance.random() < 0.3 else None
            if not await self._answered(socket, request_id, leaves_after):
                self.broken_off += 1
                return
            self.answers += 1
            await asyncio.sleep(chance.uniform(0.5, 4))

    async def _answered(
        self, socket: ClientConnection, request_id: str, leaves_after: int | None
    ) -> bool:
        seen = 0
        async for text in socket:
            frame = loads_object(text) or {}
            if frame.get("type") == "cf_agent_stream_resuming":
                ack = {"type": "cf_agent_stream_resume_ack", "id": frame.get("id")}
                await socket.send(dumps(ack))
            if frame.get("id") != request_id:
                continue
            seen += 1
            if frame.get("done"):
                return True
            if leaves_after is not None and seen >= leaves_after:
                return False
        return False

    async def watch(self, end: float) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            while time.monotonic() < end:
                await asyncio.sleep(SAMPLE_SECONDS)
                begun = time.perf_counter()
                answer = await http.get(f"http://127.0.0.1:{self.port}/agents/gauge/g/")
                probe_ms = (time.perf_counter() - begun) * 1000
                self.calls = loads_object(answer.content) or {}
                self.samples.append(self._sample(probe_ms))
                self._print_minute()

    def _sample(self, probe_ms: float) -> Sample:
        folder = Path(f"/proc/{self.process}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        late = self.calls.get("late_p99_ms")
        return Sample(
            minutes=(time.monotonic() - self.begun) / 60,
            memory_mib=int(status["VmRSS"].split()[0]) / 1024,
            files=float(len(list((folder / "fd").iterdir()))),
            threads=float(status["Threads"]),
            probe_ms=probe_ms,
            late_ms=float(late) if isinstance(late, int | float) else 0.0,
        )

    def _print_minute(self) -> None:
        *earlier, last = self.samples
        if earlier and int(earlier[-1].minutes) == int(last.minutes):
            return
        these = [each for each in self.samples if last.minutes - each.minutes < 1]
        say(
            f"{last.minutes:5.1f} min  {last.memory_mib:7.1f} MiB  {last.files:5.0f} files  "
            f"{last.threads:3.0f} threads  late p99 {max(s.late_ms for s in these):7.0f} ms  "
            f"probe {max(s.probe_ms for s in these):6.0f} ms  {self.answers:6} answers  "
            f"{self.broken_off:5} broken off  {self.lost:3} lost  {dumps(self.calls)}"
        )


def slope(samples: Sequence[Sample], name: str) -> float:
    """By which part of its mean a figure grows in a minute."""
    values = [getattr(sample, name) for sample in samples]
    line = statistics.linear_regression([sample.minutes for sample in samples], values)
    return float(line.slope / statistics.mean(values))


def verdict(samples: Sequence[Sample]) -> dict[str, float | bool]:
    counted = samples[int(len(samples) * WARM_UP) :]
    figures: dict[str, float | bool] = {}
    flat = True
    for name, most in MOST_GROWTH.items():
        growth = slope(counted, name)
        flat = flat and growth <= most
        say(f"{name}: {growth * 100:+.2f} % a minute, at most {most * 100:.0f} % is flat")
        figures[f"{name}_growth"] = growth
    third = len(counted) // 3
    for name in ("late_ms", "probe_ms"):
        first = statistics.median(getattr(sample, name) for sample in counted[:third])
        last = statistics.median(getattr(sample, name) for sample in counted[-third:])
        flat = flat and last <= first * MOST_LATER
        say(f"{name}: {first:,.0f} in the first third, {last:,.0f} in the last (medians)")
        figures |= {f"{name}_first": first, f"{name}_last": last}
    return {**figures, "flat": flat}


async def soak(port: int, process: int, options: argparse.Namespace) -> Soak:
    run = Soak(port, process, options.chats)
    end = run.begun + options.minutes * 60
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run.watch(end))
        for number in range(options.chats):
            tasks.create_task(run.chat(number, end))
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--port", type=int, default=8123)
    options = parser.parse_args()
    serve = "from ramet.cli.main import main; main()"
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-c", serve, "serve", "benchmarks.soak_app:app"]
        place = ["--port", str(options.port), "--data", data]
        with subprocess.Popen([*command, *place], stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            say(server.stderr.readline().strip())
            try:
                run = asyncio.run(soak(options.port, server.pid, options))
            finally:
                server.terminate()
                log = server.stderr.read()
    say(f"{len(log.splitlines())} lines in the server's log{':' if log else ''} {log[:2000]}")
    figures = verdict(run.samples)
    report("soak", {**figures, "answers": float(run.answers), "lost": float(run.lost)})
    sys.exit(0 if figures["flat"] else 1)


if __name__ == "__main__":
    main()
