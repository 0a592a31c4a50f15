"""`kill -9` at each step of a turn and of its giving up; nobody opens the agent afterwards."""

from pathlib import Path

import pytest

from tests.support.telling import (
    WAIT_SECONDS,
    WORDS,
    Hopeless,
    Lead,
    Teller,
    harness,
    play_until_killed,
    said,
    told,
)

pytestmark = pytest.mark.kill

STEPS = [
    "turn.recorded",
    "turn.started",
    "chat.chunk.committed",
    "chat.chunk.committed:3",
    "turn.message_stored",
    "turn.ended",
]
OF_CHILDREN = [
    "schedule.promised",
    "schedule.stored",
    "turn.recorded:2",
    "turn.started:2",
    "chat.chunk.committed:3",
    "turn.message_stored",
    "turn.ended",
    "chat.run_sealed",
    "run.finalized",
    "turn.message_stored:2",
]
GIVE_UPS = ["recovery.exhausting", "recovery.turn_ended", "recovery.sealed"]


@pytest.mark.behaviour("CR-001", "D5", "D6")
@pytest.mark.parametrize("step", STEPS)
async def test_what_was_asked_is_answered_although_nobody_opens_the_agent(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "tell", step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(WAIT_SECONDS)
        rows = host.rows(Teller, "a", "SELECT outcome FROM cf_chat_turns ORDER BY rowid")
        assert rows[-1] == {"outcome": "completed"}
        assert said(await host.agent(Teller, "a")) == ["tell", WORDS]


@pytest.mark.behaviour("CR-001", "AT-321", "D5", "D8", "D9")
@pytest.mark.parametrize("step", OF_CHILDREN)
async def test_a_parent_gets_the_answer_of_its_child_although_nobody_opens_either(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "lead", step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(WAIT_SECONDS)
        query = "SELECT status FROM cf_agent_tool_runs"
        assert host.rows(Lead, "a", query) == [{"status": "completed"}]
        assert said(await host.agent(Lead, "a")) == ["tell", WORDS]


@pytest.mark.behaviour("CR-019", "CR-021")
@pytest.mark.parametrize("step", GIVE_UPS)
async def test_a_give_up_that_is_cut_is_carried_to_its_end(tmp_path: Path, step: str) -> None:
    play_until_killed(tmp_path, "lose_hope", step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(4 * WAIT_SECONDS)  # each process begins at the same moment
        rows = host.rows(Hopeless, "a", "SELECT outcome FROM cf_chat_turns ORDER BY rowid")
        assert [row["outcome"] for row in rows] == ["recovering", "error"]
        assert set(told(tmp_path)) == {"no_progress_timeout"}
        query = "SELECT value FROM cf_chat_recovery WHERE value LIKE '%attempt%'"
        [incident] = host.rows(Hopeless, "a", query)
        assert '"exhausted"' in str(incident["value"])
        assert said(await host.agent(Hopeless, "a")) == ["tell", "well"]
