"""`kill -9` from the answer of a page to a tool call on, to the end of the turn that goes on."""

from pathlib import Path

import pytest

from tests.support.answering import Asking, harness, play_until_killed, ran, said, states

pytestmark = pytest.mark.kill

STEPS = ["chat.answer.stored", "continuation.accepted"]
OF_APPROVALS = [*STEPS, "step.late_result_committed"]


@pytest.mark.behaviour("AC-002", "CR-001", "D5", "D6")
@pytest.mark.parametrize("step", STEPS)
async def test_an_answer_goes_on_with_the_result_of_a_page_that_does_not_come_back(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "result", step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(40)
        query = "SELECT outcome FROM cf_chat_turns ORDER BY rowid"
        assert host.rows(Asking, "a", query)[-1] == {"outcome": "completed"}
        agent = await host.agent(Asking, "a")
        assert (said(agent), states(agent)) == ("It is so: sunny", ["output-available"])


@pytest.mark.behaviour("AC-002", "CR-001", "D5", "D6")
@pytest.mark.parametrize("step", OF_APPROVALS)
async def test_a_tool_that_was_approved_runs_once_although_the_page_does_not_come_back(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "approval", step)
    async with harness(tmp_path, seed=2) as host:
        await host.advance(40)
        agent = await host.agent(Asking, "a")
        assert (said(agent), states(agent)) == ("It is so: it is gone", ["output-available"])
        assert ran(tmp_path) == ["it"]
