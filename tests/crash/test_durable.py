"""`kill -9` at each durable step of schedules, the queue and fibers; the next process goes on."""

import asyncio
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.crash.durable_app import CALLS
from tests.crash.forked import ForkServer
from tests.crash.victim import Victim

WAIT_SECONDS = 15.0
_PAUSE = 0.05
STASH = "recovered {'step': 1}"
COUNTS = {
    "cf_agents_schedules": "SELECT count(*) FROM cf_agents_schedules",
    "cf_agents_queues": "SELECT count(*) FROM cf_agents_queues",
    "cf_agents_runs": "SELECT count(*) FROM cf_agents_runs",
    "cf_agents_facet_runs": "SELECT count(*) FROM cf_agents_facet_runs",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Where a process is killed in a scene, and what has been called in the end.

    An interval goes on for ever: of it `calls` is what there is at least.
    """

    name: str
    scene: str
    calls: tuple[str, ...] = ()
    before: str | None = None
    """Where an earlier process was killed, so that this one has something to recover."""

    def __str__(self) -> str:
        return f"{self.name}-{self.scene}"


CASES = [
    Case("schedule.promised", "delayed"),
    Case("schedule.stored", "delayed", ("delayed",)),
    Case("schedule.executed", "delayed", ("delayed", "delayed")),
    Case("schedule.removed", "delayed", ("delayed",)),
    Case("schedule.promised", "interval"),
    Case("schedule.claimed", "interval", ("interval",)),
    Case("schedule.next_promised", "interval", ("interval",) * 3),
    Case("schedule.rescheduled", "interval", ("interval",) * 3),
    Case("queue.stored", "queued", ("queued",)),
    Case("queue.executed", "queued", ("queued", "queued")),
    Case("queue.removed", "queued", ("queued",)),
    Case("fiber.promised", "fiber"),
    Case("fiber.added", "fiber", ("recovered None",)),
    Case("fiber.stashed", "fiber", ("begun", STASH)),
    Case("fiber.returned", "fiber", ("begun", "ended", STASH)),
    Case("fiber.removed", "fiber", ("begun", "ended")),
    Case("fiber.promised", "managed"),
    Case("fiber.accepted", "managed", ("recovered None",)),
    Case("fiber.begun", "managed", ("recovered None",)),
    Case("fiber.stashed", "managed", ("begun", STASH)),
    Case("fiber.returned", "managed", ("begun", "ended", STASH)),
    Case("fiber.settled", "managed", ("begun", "ended")),
    Case("fiber.leased", "below"),
    Case("fiber.added", "below", ("recovered None",)),
    Case("fiber.stashed", "below", ("begun", STASH)),
    Case("fiber.released", "below", ("begun", "ended")),
    Case("fiber.interrupted", "fiber", ("begun", STASH), "fiber.stashed"),
    Case("fiber.recovered", "fiber", ("begun", STASH, STASH), "fiber.stashed"),
    Case("fiber.forgotten", "fiber", ("begun", STASH), "fiber.stashed"),
    Case("fiber.interrupted", "managed", ("begun", STASH), "fiber.stashed"),
    Case("fiber.resolved", "managed", ("begun", STASH), "fiber.stashed"),
    Case("fiber.forgotten", "below", ("begun", STASH), "fiber.stashed"),
]


@dataclass(frozen=True, slots=True)
class Ground:
    """A data directory with the file of calls beside it."""

    victim: Victim
    file: Path

    def start(self, failpoint: str | None = None) -> None:
        """Start a server, armed if a place is given."""
        armed = {} if failpoint is None else {"RAMET_FAILPOINT": failpoint}
        self.victim.start({CALLS: str(self.file), **armed})

    def calls(self) -> list[str]:
        """What was called so far."""
        return self.file.read_text().splitlines() if self.file.exists() else []

    async def ask(self, scene: str) -> bool:
        """Have the agent play a scene; whether it answered."""
        url = f"http://{self.victim.address}/agents/worker/a/{scene}"
        async with httpx.AsyncClient(timeout=WAIT_SECONDS) as client:
            try:
                return (await client.get(url)).is_success
            except httpx.TransportError:
                return False

    def left(self) -> dict[str, int]:
        """Rows that wait for something, by table; of all agents, in whatever file they are."""
        found: dict[str, int] = {}
        for file in self.victim.data.rglob("*.db"):
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
                for table in names.intersection(COUNTS):
                    count = database.execute(COUNTS[table]).fetchone()[0]
                    found[table] = found.get(table, 0) + count
        return {table: count for table, count in found.items() if count}


@pytest.fixture
def ground(tmp_path: Path, forks: ForkServer) -> Iterator[Ground]:
    victim = Victim(forks, tmp_path, app="tests.crash.durable_app:app")
    yield Ground(victim, tmp_path / "calls")
    victim.kill()


@pytest.mark.kill
@pytest.mark.behaviour("D6", "SC-031", "FB-010", "FB-046")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_what_a_kill_has_cut_is_taken_up_by_the_next_process(
    ground: Ground, case: Case
) -> None:
    ground.start(case.before or case.name)
    await ground.ask(case.scene)
    assert ground.victim.await_death() == -signal.SIGKILL
    if case.before is not None:
        ground.start(case.name)
        assert ground.victim.await_death() == -signal.SIGKILL
    ground.start()
    if case.scene == "queued":
        assert await ground.ask("")  # it goes on when it is opened, at the latest after 30 s
    for _ in range(int(WAIT_SECONDS / _PAUSE)):
        if _is_over(ground, case):
            break
        await asyncio.get_running_loop().run_in_executor(None, _wait)
    assert ground.calls()[: len(case.calls)] == list(case.calls)
    assert _is_over(ground, case), ground.left()
    await _works(ground)


def _is_over(ground: Ground, case: Case) -> bool:
    if case.scene == "interval":
        return len(ground.calls()) >= len(case.calls)
    left = ground.left()
    if case.scene == "queued":
        left.pop("cf_agents_schedules", None)  # a wake-up for which there is nothing any more
    return ground.calls() == list(case.calls) and not left


async def _works(ground: Ground) -> None:
    """Whatever was cut, the agent takes on new work."""
    before = ground.calls().count("delayed")
    assert await ground.ask("delayed")
    for _ in range(int(WAIT_SECONDS / _PAUSE)):
        if ground.calls().count("delayed") > before:
            return
        await asyncio.get_running_loop().run_in_executor(None, _wait)
    raise AssertionError(f"The agent does not work any more: {ground.calls()}")


def _wait() -> None:
    signal.sigtimedwait([], _PAUSE)
