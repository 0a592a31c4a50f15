"""How soon all is well after a crash: a parent's children, and a host whose agents all answered.

`python -m benchmarks.recovery [--children N] [--agents N]`. A parent with 100 children at work,
then 1,000 agents in the middle of an answer, lose their process at once. The next process takes
them up by itself; a new user asks meanwhile, again and again. The floor is the same user on an idle
host.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from pathlib import Path

import ramet
from benchmarks.measure import RunningHost, milliseconds, percentiles
from ramet.core.json import dumps

PAUSE_SECONDS = 0.05
AHEAD_MS = 31_000
"""The next process starts half a minute later: by then every lost turn is due."""


class Talker(ramet.AIChatAgent[None]):
    """Says half of its answer, and the rest in the next process."""

    held = True
    begun = 0
    ended = 0

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        yield "par"
        Talker.begun += 1
        if Talker.held:
            await asyncio.get_running_loop().create_future()
        yield "tial"
        Talker.ended += 1


class Newcomer(ramet.AIChatAgent[None]):
    """Answers at once."""

    first_word = 0.0

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        Newcomer.first_word = time.perf_counter()
        yield "hello"


class Parent(ramet.Agent[None]):
    """Waits for many children."""

    async def fan_out(self, count: int) -> None:
        await asyncio.gather(*(self.run_agent_tool(Talker, input="go") for _ in range(count)))

    async def open_runs(self) -> int:
        return len(self.list_agent_tool_runs(status=["starting", "running"]))


async def interrupted(data: Path, roots: list[type], count: int) -> None:
    """Leave a data directory in which so many answers were cut off."""
    Talker.held, Talker.begun, Talker.ended = True, 0, 0
    running = RunningHost(data, roots, sub_agents=[Talker], most_open=2 * count + 100)
    await running.host.start()
    if Parent in roots:
        parent = running.host.stub(running.path(Parent, "p"), Parent)
        asked = asyncio.create_task(_all_of([parent.fan_out(count)]))
    else:
        stubs = [running.host.stub(running.path(Talker, f"a{n}"), Talker) for n in range(count)]
        asked = asyncio.create_task(_all_of(stub.save_messages("hi") for stub in stubs))
    while Talker.begun < count:  # noqa: ASYNC110 - a benchmark
        await asyncio.sleep(PAUSE_SECONDS)
    running.host.crash()
    asked.cancel()
    await asyncio.wait({asked})
    Talker.held = False
    gc.collect()  # the next process would not have to


async def _all_of(asked: Iterable[Awaitable[object]]) -> None:
    await asyncio.gather(*asked, return_exceptions=True)


async def newcomer(running: RunningHost, number: int) -> float:
    """Milliseconds until a new user has the first word of an answer."""
    began = time.perf_counter()
    stub = running.host.stub(running.path(Newcomer, f"n{number}"), Newcomer)
    await stub.save_messages("hi")
    return (Newcomer.first_word - began) * 1000


async def children(data: Path, count: int) -> float:
    await interrupted(data, [Parent], count)
    began = time.perf_counter()
    async with RunningHost(data, [Parent], sub_agents=[Talker], ahead_ms=AHEAD_MS) as running:
        parent = running.host.stub(running.path(Parent, "p"), Parent)
        while await parent.open_runs():  # noqa: ASYNC110 - a benchmark
            await asyncio.sleep(PAUSE_SECONDS)
        took = milliseconds(began)
    assert Talker.ended == count, f"{Talker.ended} of {count} children came to their end"
    return took


async def agents(data: Path, count: int) -> tuple[float, list[float], list[float]]:
    await interrupted(data, [Talker, Newcomer], count)
    kinds, most = [Talker, Newcomer], 2 * count + 100
    waited: list[float] = []
    began = time.perf_counter()
    async with RunningHost(data, kinds, most_open=most, ahead_ms=AHEAD_MS) as running:
        while Talker.ended < count:
            waited.append(await newcomer(running, len(waited)))
            await asyncio.sleep(PAUSE_SECONDS)
        took = milliseconds(began)
        idle = [await newcomer(running, len(waited) + n) for n in range(20)]
    return took, waited, idle


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--children", type=int, default=100)
    parser.add_argument("--agents", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        of_children = asyncio.run(children(Path(folder), options.children))
    print(f"{options.children:,} children of a parent are over {of_children:,.0f} ms after start")
    with tempfile.TemporaryDirectory() as folder:
        took, waited, idle = asyncio.run(agents(Path(folder), options.agents))
    print(f"{options.agents:,} interrupted agents have answered {took:,.0f} ms after start")
    print(f"first word for a new user meanwhile: {percentiles(waited, 'ms')}")
    print(f"first word on the idle host: {percentiles(idle, 'ms')}")
    found = {"children_ms": of_children, "agents_ms": took, "newcomer_ms": max(waited)}
    print(dumps({"benchmark": "recovery", **{key: round(value) for key, value in found.items()}}))


if __name__ == "__main__":
    main()
