"""`kill -9` at each step of a detached run and its deliveries; the next process goes on."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.crash.detached_app import TOLD
from tests.crash.forked import ForkServer
from tests.crash.victim import Victim

ROUNDS = 4
"""How often a server is started again until all is over; between them minutes pass on disk."""
MINUTES = 130
"""Seconds that pass on disk: more than a lease, and than what a child may take to begin."""
PATIENCE = 3.0
_PAUSE = 0.05

PASS_TIME = {
    "cf_agent_tool_runs": """
        UPDATE cf_agent_tool_runs SET started_at = started_at - :s * 1000,
            detached_max_budget_at = detached_max_budget_at - :s * 1000,
            last_progress_at = last_progress_at - :s * 1000,
            finish_claimed_at = finish_claimed_at - :s * 1000,
            give_up_claimed_at = give_up_claimed_at - :s * 1000
    """,
    "cf_agents_schedules": "UPDATE cf_agents_schedules SET time = time - :s",
    "ramet_wakeups": "UPDATE ramet_wakeups SET due_ms = due_ms - :s * 1000",
}
OPEN_ENDS = {
    "cf_agent_tool_runs": """
        SELECT count(*) FROM cf_agent_tool_runs WHERE finish_delivered_at IS NULL
    """,
    "cf_agents_schedules": """
        SELECT count(*) FROM cf_agents_schedules WHERE callback = '_cfDetachedReconcileTick'
    """,
}


@dataclass(frozen=True, slots=True)
class Case:
    """Where a process is killed in a scene, and what the parent has been told in the end."""

    name: str
    scene: str
    told: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}-{self.scene}"


CASES = [
    Case("detached.armed", "finish", ()),
    Case("run.registering", "finish", ()),
    Case("run.registered", "finish", ("error",)),
    Case("run.announced", "finish", ("error",)),
    Case("run.started", "finish", ("completed",)),
    Case("run.signal_stored", "finish", ("completed",)),
    Case("chat.run_sealed", "finish", ("completed",)),
    Case("run.finalizing", "finish", ("completed",)),
    Case("run.finalized", "finish", ("completed",)),
    Case("detached.finish_claimed", "finish", ("completed",)),
    Case("detached.finish_called", "finish", ("completed", "completed")),
    Case("detached.finish_delivered", "finish", ("completed",)),
    Case("detached.tick_armed", "give-up", ("interrupted", "aborted")),
    Case("detached.child_stopped", "give-up", ("aborted",)),
    Case("run.finalized", "give-up", ("interrupted", "aborted")),
    Case("detached.give_up_claimed", "give-up", ("interrupted", "aborted")),
    Case("detached.give_up_called", "give-up", ("interrupted", "interrupted", "aborted")),
    Case("detached.give_up_delivered", "give-up", ("interrupted", "aborted")),
]

CHAT_CASES = [
    "detached.milestone_noticed",
    "detached.finish_claimed",
    "turn.recorded:1",
    "turn.recorded:2",
    "turn.message_stored",
    "detached.finish_called",
    "detached.finish_delivered",
]


@dataclass(frozen=True, slots=True)
class Ground:
    """A data directory with the file of what the parent was told beside it."""

    victim: Victim
    file: Path

    def start(self, failpoint: str | None = None) -> None:
        """Start a server, armed if a place is given."""
        armed = {} if failpoint is None else {"RAMET_FAILPOINT": failpoint}
        self.victim.start({TOLD: str(self.file), **armed})

    def told(self, run_id: str = "r") -> tuple[str, ...]:
        """How a run has ended, as often as the parent was told."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return tuple(line.split()[1] for line in lines if line.split()[0] == run_id)

    async def ask(self, path: str) -> httpx.Response | None:
        """Send a request; None when it was not answered."""
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            try:
                return await client.get(f"http://{self.victim.address}/agents/{path}")
            except httpx.TransportError:
                return None

    def let_time_pass(self) -> None:
        """Move everything on disk into the past; while no server runs."""
        for file in self.victim.data.rglob("*.db"):
            with closing(sqlite3.connect(file)) as database:
                _shift(database)

    def open_ends(self) -> int:
        """How many runs have still to report back, and ticks have still to come."""
        found = 0
        for file in self.victim.data.rglob("*.db"):
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                for table, query in OPEN_ENDS.items():
                    if _has(database, table):
                        found += database.execute(query).fetchone()[0]
        return found

    async def until(self, over: Callable[[], bool], path: str) -> None:
        """Start servers, with minutes between them, until something is over."""
        for _ in range(ROUNDS):
            self.let_time_pass()
            self.start()
            await self.ask(path)
            for _ in range(int(PATIENCE / _PAUSE)):
                if over():
                    return
                await asyncio.get_running_loop().run_in_executor(None, _wait)
            self.victim.kill()


@pytest.fixture
def ground(tmp_path: Path, forks: ForkServer) -> Iterator[Ground]:
    victim = Victim(forks, tmp_path, app="tests.crash.detached_app:app")
    yield Ground(victim, tmp_path / "told")
    victim.kill()


@pytest.mark.kill
@pytest.mark.behaviour("D36", "D6", "AT-244", "AT-247", "AT-252", "AT-263")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_parent_is_told_of_its_run_whenever_the_process_dies(
    ground: Ground, case: Case
) -> None:
    ground.start(case.name)
    await ground.ask(f"boss/b/{case.scene}")
    assert ground.victim.await_death() == -signal.SIGKILL
    await ground.until(lambda: ground.told() == case.told and not ground.open_ends(), "boss/b")
    assert ground.told() == case.told
    assert not ground.open_ends()
    await _works(ground)


@pytest.mark.kill
@pytest.mark.behaviour("D36", "AT-274", "AT-275", "AT-278")
@pytest.mark.parametrize("place", CHAT_CASES)
async def test_a_chat_has_each_notice_once_whenever_the_process_dies(
    ground: Ground, place: str
) -> None:
    ground.start(place)
    await ground.ask("chatter/c/r")
    assert ground.victim.await_death() == -signal.SIGKILL
    await ground.until(lambda: not ground.open_ends(), "chatter/c")
    expected = [
        "Background run Worker (r) has reached 'begun'.",
        "Background run Worker (r) finished.\n\nworking done",
        "Heard of detached-finish:r:completed",
    ]
    texts: list[str] = []
    for _ in range(int(PATIENCE / _PAUSE)):
        texts = await _texts(ground)
        if len(texts) >= len(expected):
            break
        await asyncio.get_running_loop().run_in_executor(None, _wait)
    assert texts == expected


async def _texts(ground: Ground) -> list[str]:
    answer = await ground.ask("chatter/c/get-messages")
    assert answer is not None
    return [
        "".join(part["text"] for part in message["parts"] if part["type"] == "text")
        for message in json.loads(answer.text)
    ]


async def _works(ground: Ground) -> None:
    """Whatever was cut, the next run reports back."""
    assert await ground.ask("boss/b/again") is not None
    for _ in range(int(PATIENCE / _PAUSE)):
        if ground.told("again"):
            break
        await asyncio.get_running_loop().run_in_executor(None, _wait)
    assert ground.told("again") == ("completed",)


def _shift(database: sqlite3.Connection) -> None:
    for table, statement in PASS_TIME.items():
        if _has(database, table):
            database.execute(statement, {"s": MINUTES})
    database.commit()


def _has(database: sqlite3.Connection, table: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return database.execute(query, (table,)).fetchone() is not None


def _wait() -> None:
    signal.sigtimedwait([], _PAUSE)
