"""A turn survives `kill -9`: whatever is killed when, the page ends with one whole answer."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest

from ramet.protocol.messages import parts_of, text_of
from tests.crash.disk import AgentKey
from tests.crash.page import Page, get_messages
from tests.crash.victim import Victim
from tests.crash.watching import Question, watch_turn

SAY, RESEARCH, THINK_RESEARCH = "say 8 1", "research bees 2", "think-research bees 2"
WOKEN_SECONDS = 15.0
"""How long a server may take to go on with a turn whose wake-up is due."""
_PAUSE = 0.1
SAID = " ".join(f"w{number}" for number in range(1, 9))
REPORTED = "Report: bees summary"


@dataclass(frozen=True, slots=True)
class Case:
    """Where the server is killed first, and where once more when it has been started again."""

    name: str
    root: str
    text: str
    first: str = "chat.chunk.committed:5"

    @property
    def expected(self) -> str:
        """The answer."""
        return SAID if self.text == SAY else REPORTED


CASES = [
    Case(name, root, text)
    for name in ("recovery.detected", "recovery.scheduled", "recovery.accepted")
    for root, text in (("ChatAgent", SAY), ("ThinkAgent", RESEARCH))
]
KILLED_ONCE = [
    Case("", root, text, first)
    for root in ("ChatAgent", "ThinkAgent")
    for text, places in (
        (SAY, ["turn.recorded:1", "turn.started:1", "chat.chunk.committed:6", "turn.ended:1"]),
        (
            RESEARCH,
            [
                "chat.chunk.committed:3",
                "chat.chunk.committed:9",
                "run.registered:1",
                "run.started:1",
                "run.finalized:1",
                "chat.run_sealed:1",
            ],
        ),
        (THINK_RESEARCH, ["chat.chunk.committed:8", "run.finalizing:1"]),
    )
    for first in places
] + [
    Case("", "ThinkAgent", RESEARCH, "step.committed:1"),
    Case("", "ThinkAgent", RESEARCH, "step.result_committed:1"),
    Case("", "ThinkAgent", RESEARCH, "step.committed:2"),
]


@pytest.mark.kill
@pytest.mark.behaviour("D5", "D9", "AT-321", "CR-004", "CR-018")
@pytest.mark.parametrize(
    "case", KILLED_ONCE, ids=lambda case: f"{case.first}-{case.root}-{case.text}"
)
async def test_a_turn_that_was_killed_ends_whole(fresh: Victim, case: Case) -> None:
    await _killed(fresh, case)
    fresh.start()
    await _check(fresh, case)


@pytest.mark.kill
@pytest.mark.behaviour("CR-015", "CR-020")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.root}")
async def test_a_recovery_that_was_killed_too_is_taken_up_again(fresh: Victim, case: Case) -> None:
    await _killed(fresh, case)
    fresh.start({"RAMET_FAILPOINT": f"{case.name}:1"})
    page = await Page.open(fresh.address, ((case.root, "a"),))
    assert fresh.await_death() == -signal.SIGKILL
    await page.close()
    fresh.start()
    await _check(fresh, case)


@pytest.mark.kill
@pytest.mark.behaviour("CR-001", "D6")
async def test_a_turn_that_was_killed_ends_although_nobody_comes(fresh: Victim) -> None:
    case = Case("", "ThinkAgent", RESEARCH, "step.result_committed:1")
    await _killed(fresh, case)
    _let_half_a_minute_pass(fresh)
    fresh.start()
    for _ in range(int(WOKEN_SECONDS / _PAUSE)):
        if _turns(fresh, case)[-1] == "completed":
            break
        await asyncio.sleep(_PAUSE)  # noqa: TID251 - a server in another process is waited for
    assert _turns(fresh, case)[-1] == "completed"
    await _check(fresh, case)


async def _killed(fresh: Victim, case: Case) -> None:
    fresh.recovers = True
    key: AgentKey = ((case.root, "a"),)
    fresh.start({"RAMET_FAILPOINT": case.first})
    await watch_turn(fresh, key, Question(request_id="request", text=case.text))
    assert fresh.await_death() == -signal.SIGKILL


async def _check(fresh: Victim, case: Case) -> None:
    key: AgentKey = ((case.root, "a"),)
    page = await Page.open(fresh.address, key)
    assert await page.probe() is not None
    assert await page.until(lambda: _is_idle(page))
    assert await page.resume("request")
    messages = await get_messages(fresh.address, key)
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert text_of(messages[-1], separator="") == case.expected
    parts = parts_of(messages[-1])
    assert all(part.get("state") in {None, "done", "output-available"} for part in parts)
    assert len([part for part in parts if "toolCallId" in part]) == int(case.text != SAY)
    for run_id in page.seen.runs:
        assert page.seen.terminals(run_id)[-1].kind == "finished"
    await page.close()
    fresh.kill()
    turns = _turns(fresh, case)
    assert turns[-1] == "completed"
    assert set(turns[:-1]) <= {"recovering"}


def _let_half_a_minute_pass(fresh: Victim) -> None:
    """Move all wake-ups of the dead server half a minute back."""
    for file in fresh.data.rglob("*.db"):
        with closing(sqlite3.connect(file)) as database, database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
            if "ramet_wakeups" in tables:
                database.execute("UPDATE ramet_wakeups SET due_ms = due_ms - 30000")
            if "cf_agents_schedules" in tables:
                database.execute("UPDATE cf_agents_schedules SET time = time - 30")


def _is_idle(page: Page) -> bool:
    """Whether the last turn that the page was told of has ended."""
    requests = [
        str(frame["id"])
        for frame in page.frames
        if frame.get("type") in {"cf_agent_stream_resuming", "cf_agent_use_chat_response"}
    ]
    flags = [f["recovering"] for f in page.frames if f.get("type") == "cf_agent_chat_recovering"]
    return not (flags and flags[-1]) and all(map(page.has_end, requests))


def _turns(fresh: Victim, case: Case) -> list[object]:
    for file in sorted(fresh.data.rglob("*.db")):
        with closing(sqlite3.connect(file)) as database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
            if "cf_chat_turns" not in tables or "cf_agents_sub_agents" not in tables:
                continue
            rows = database.execute("SELECT outcome FROM cf_chat_turns ORDER BY rowid").fetchall()
            questions = database.execute("SELECT message FROM cf_ai_chat_agent_messages").fetchall()
            if any(case.text in str(row[0]) for row in questions):
                return [row[0] for row in rows]
    return []
