"""What the benchmarks share: hosts on a clock of their own, memory, percentiles."""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import ramet
from ramet.core.clock import SystemClock
from ramet.core.ids import Ids
from ramet.core.paths import AgentPath
from ramet.host import ClassTable, Host

MEBIBYTE = 2**20


class ShiftedClock(SystemClock):
    """The machine's clock, some milliseconds ahead."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


class RunningHost:
    """A host for the length of an `async with` block."""

    def __init__(
        self,
        data: Path,
        agents: Iterable[type],
        *,
        sub_agents: Iterable[type] = (),
        most_open: int = 2_000,
        ahead_ms: int = 0,
        replay_runs: int = 1_000,
    ) -> None:
        self.clock = ShiftedClock(ahead_ms)
        self.classes = ClassTable(roots=agents, sub_agents=sub_agents)
        options = ramet.HostOptions(
            max_open_agents=most_open, idle_timeout=3_600, replay_runs=replay_runs
        )
        self.host = Host(self.classes, data, options=options, clock=self.clock, ids=Ids())

    def path(self, cls: type, name: str) -> AgentPath:
        return AgentPath.of((self.classes.name_of(cls), name))

    async def __aenter__(self) -> Self:
        await self.host.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.host.stop()


def resident() -> float:
    """Resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def percentiles(values: Sequence[float], unit: str) -> str:
    """The median and the 99th percentile."""
    ordered = sorted(values)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"p50 {middle:,.1f} {unit}, p99 {late:,.1f} {unit}, most {ordered[-1]:,.1f} {unit}"


def milliseconds(began: float) -> float:
    return (time.perf_counter() - began) * 1000
