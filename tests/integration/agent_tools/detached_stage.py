"""A parent that lets go of runs and notes what it is told, with children that a test moves."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import ramet
from ramet.core.current import current_agent
from ramet.core.json import JsonObject, loads_object
from ramet.observability.channels import Event, subscribe
from ramet.testing import Gate, Harness, TestClient
from tests.integration.agent_tools.children import HandChild, Parent

TICK = "_cfDetachedReconcileTick"


class Reporter(HandChild):
    """A child whose inspection tells of its progress and milestones, as a chat agent's does."""

    def progress(self, fraction: float) -> None:
        super().progress(fraction)
        self.sql("CREATE TABLE IF NOT EXISTS latest (fraction, at)")
        self.sql("DELETE FROM latest")
        self.sql("INSERT INTO latest VALUES (?, ?)", fraction, self.now())

    def now(self) -> int:
        """The time of the test."""
        return self._ramet.context.clock.now_ms()

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        inspection = await super().inspect_agent_tool_run(run_id)
        if inspection is None:
            return None
        self.sql("CREATE TABLE IF NOT EXISTS latest (fraction, at)")
        rows = self.sql("SELECT * FROM latest")
        progress = ramet.Progress(fraction=rows[0]["fraction"], at=rows[0]["at"]) if rows else None
        milestones = [_milestone(item.body) for item in self.stored() if item.kind == "milestone"]
        return replace(inspection, progress=progress, milestones=milestones)


class NoTail(Reporter):
    """The same, but it cannot be followed."""

    tail_agent_tool_run = None  # type: ignore[assignment] # a class without that method


class Boss(Parent):
    """Lets go of runs."""

    options = ramet.AgentOptions(detached_max_budget=7200, detached_no_progress_budget=600)

    failures: ClassVar[list[Exception]] = []
    """What the callback raises, one after another."""
    gate: ClassVar[Gate | None] = None
    """Where the callback waits."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[ramet.RunInfo, ramet.RunResult[object]]] = []

    async def done(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        self.log.append(f"done {run.run_id} {result.status}")
        self.results.append((run, result))
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

    async def goes_on(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that starts the next run and waits for it."""
        assert current_agent() is self
        following = await self.run_agent_tool(Reporter, run_id="next", input=result.summary)
        self.set_state(following.summary)


class CappedBoss(Boss):
    """May have one run under way."""

    options = ramet.AgentOptions(max_concurrent_agent_tools=1)


@dataclass
class Office:
    """A boss, its children and its clients."""

    harness: Harness
    root: type[Boss] = Boss
    told: list[Event] = field(default_factory=list)

    async def boss(self) -> Boss:
        """The live parent."""
        return await self.harness.agent(self.root, "b")

    async def let_go(
        self, run_id: str = "r", cls: type = Reporter, **detached: Any
    ) -> ramet.DetachedRun:
        """Start a run whose end goes to `done`."""
        detached.setdefault("on_finish", "done")
        boss = await self.boss()
        return await boss.run_agent_tool(
            cls, run_id=run_id, input="go", detached=ramet.Detached(**detached)
        )

    async def child(self, run_id: str = "r", cls: type[Reporter] = Reporter) -> Reporter:
        """The live child of a run."""
        agent: object = await self.harness.agent(self.root, "b", [(cls, run_id)])
        assert isinstance(agent, Reporter)
        return agent

    async def client(self) -> TestClient:
        """A new client of the parent."""
        return await self.harness.connect(self.root, "b")

    async def settle(self) -> None:
        """Run what can run."""
        await self.harness.settle()

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await self.harness.advance(seconds)

    async def restart(self) -> None:
        """Kill the server and start it again; nobody has opened an agent."""
        await self.harness.crash()
        await self.harness.restart()

    def row(self, run_id: str = "r") -> JsonObject:
        """The stored row of a run."""
        query = "SELECT * FROM cf_agent_tool_runs WHERE run_id = ?"
        return self.harness.rows(self.root, "b", query, run_id)[0]

    def ticks(self) -> list[tuple[float, JsonObject]]:
        """The ticks that are armed: in how many seconds, and with what."""
        query = "SELECT time, payload FROM cf_agents_schedules WHERE callback = ?"
        now = self.harness.clock.now_ms() / 1000
        return [
            (float(str(row["time"])) - now, loads_object(str(row["payload"])) or {})
            for row in self.harness.rows(self.root, "b", query, TICK)
        ]

    def calls(self) -> list[str]:
        """What the callback was called with, over all processes."""
        return [line for line in Boss.log if line.startswith("done")]


@contextmanager
def listening(channel: str = "agent_tool") -> Iterator[list[Event]]:
    """The events of a channel while the block runs."""
    told: list[Event] = []
    unsubscribe = subscribe(channel, told.append)
    try:
        yield told
    finally:
        unsubscribe()


async def opened_office(path: Path) -> AsyncIterator[Office]:
    """An office of its own for a test, left as it was found."""
    async with Harness(
        agents=[Boss, CappedBoss, Parent], sub_agents=[Reporter, NoTail, Boss], data_dir=path
    ) as harness:
        yield Office(harness)
        if Boss.gate is not None:
            Boss.gate.open()
    Boss.failures.clear()
    Boss.gate = None
    Boss.log.clear()
    Parent.finish_error = Parent.start_error = None
    HandChild.stalls_on.clear()
    HandChild.fails_on.clear()
    HandChild.calls.clear()


def _milestone(body: str) -> ramet.Milestone:
    chunk = loads_object(body)
    data = chunk["data"] if chunk else None
    assert isinstance(data, dict)
    name, sequence, at = data["name"], data["sequence"], data["at"]
    assert isinstance(sequence, int)
    assert isinstance(at, int)
    return ramet.Milestone(name=str(name), sequence=sequence, at=at)
