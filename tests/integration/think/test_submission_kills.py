"""A process killed at each durable step of a submission: each is answered, and only once."""

from pathlib import Path

import pytest

from tests.support.submitting import Clerk, harness, play_until_killed, said

pytestmark = pytest.mark.kill

STEPS = [
    "submission.stored",
    "submission.stored:2",
    "submission.started",
    "submission.started:2",
    "turn.recorded",
    "turn.recorded:2",
    "turn.started",
    "chat.chunk.committed:3",
    "step.committed",
    "turn.message_stored",
    "turn.ended",
    "turn.ended:2",
    "submission.ended",
    "submission.ended:2",
]


@pytest.mark.behaviour("SB-006", "SB-007", "SB-008", "SB-011", "SB-015", "D5")
@pytest.mark.parametrize("step", STEPS)
async def test_what_was_submitted_is_answered_once_although_nobody_opens_the_agent(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(40)
        query = "SELECT submission_id, status FROM cf_think_submissions ORDER BY rowid"
        stored = {row["submission_id"]: row["status"] for row in host.rows(Clerk, "c", query)}
        assert stored == dict.fromkeys(stored, "completed")
        assert "s1" in stored
        one, two = ["1a", "1b", "done"], ["2a", "2b", "done"]
        assert said(await host.agent(Clerk, "c")) == one + (two if "s2" in stored else [])


@pytest.mark.behaviour("D6", "SB-002")
async def test_killed_between_the_promise_and_the_row_it_wakes_for_nothing(tmp_path: Path) -> None:
    play_until_killed(tmp_path, "schedule.promised")
    async with harness(tmp_path, seed=2) as host:
        await host.advance(40)
        assert host.rows(Clerk, "c", "SELECT 1 FROM cf_think_submissions") == []
        assert said(await host.agent(Clerk, "c")) == []
