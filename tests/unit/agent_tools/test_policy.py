"""What is decided about runs."""

from typing import get_args

import pytest

from ramet.agent_tools.policy import (
    Ending,
    cancellation,
    ending_of,
    failure,
    interruption,
    redispatch,
    refusal,
    rewrite,
    run_id_of_call,
    same_question,
)
from ramet.agent_tools.records import ChildStatus, Inspection
from ramet.protocol.run_events import ABSENT, InterruptedReason, RunStatus

HARD: list[RunStatus] = ["completed", "error", "aborted"]
OPEN: list[RunStatus] = ["starting", "running", "interrupted"]


def inspected(status: ChildStatus, error: str | None = None) -> Inspection:
    return Inspection(
        run_id="r", status=status, started_at=1, completed_at=9, summary="s", error=error, output=1
    )


@pytest.mark.behaviour("AT-007", "AT-073", "AT-074")
@pytest.mark.parametrize("status", ["starting", "running"])
def test_a_child_at_work_has_not_ended(status: ChildStatus) -> None:
    assert ending_of(inspected(status)) is None
    assert ending_of(None) is None


@pytest.mark.behaviour("AT-044", "AT-046", "AT-049")
def test_a_run_ends_as_its_child_says() -> None:
    assert ending_of(inspected("completed")) == Ending(
        status="completed", output=1, summary="s", completed_at=9
    )
    assert ending_of(inspected("error", "why")) == Ending(
        status="error", error="why", completed_at=9
    )
    assert ending_of(inspected("error")) == Ending(
        status="error", error="The agent tool run failed.", completed_at=9
    )
    assert ending_of(inspected("aborted", "told to")) == Ending(
        status="aborted", error="told to", completed_at=9
    )
    assert ending_of(inspected("aborted")) == Ending(status="aborted", completed_at=9)


@pytest.mark.behaviour("AT-008", "AT-324")
def test_every_reason_of_an_interruption_has_a_text_of_its_own() -> None:
    reasons: tuple[InterruptedReason, ...] = get_args(InterruptedReason)

    texts = {interruption(reason).error for reason in (*reasons, None)}

    assert len(texts) == len(reasons) + 1 == 8


@pytest.mark.behaviour("AT-058", "AT-060")
@pytest.mark.parametrize("stored", HARD)
@pytest.mark.parametrize(
    "late", [Ending(status="completed"), failure("x"), cancellation("x"), interruption(None)]
)
def test_a_hard_terminal_is_never_overwritten(stored: RunStatus, late: Ending) -> None:
    filled = stored == "completed" and late.status == "completed"
    assert rewrite(stored, late) == ("fill" if filled else "keep")


@pytest.mark.behaviour("AT-059")
@pytest.mark.parametrize("stored", OPEN)
@pytest.mark.parametrize("late", [Ending(status="completed"), failure("x"), interruption(None)])
def test_an_open_or_interrupted_run_takes_any_terminal(stored: RunStatus, late: Ending) -> None:
    assert rewrite(stored, late) == "seal"


@pytest.mark.behaviour("AT-050", "AT-053", "AT-054", "AT-055")
def test_what_a_known_run_id_leads_to() -> None:
    assert [redispatch(status, 1) for status in HARD] == ["stored"] * 3
    assert [redispatch(status, ABSENT) for status in HARD] == ["ask-child", "stored", "stored"]
    assert [redispatch(status, ABSENT) for status in OPEN] == ["attach"] * 3
    assert redispatch("completed", None) == "stored"


@pytest.mark.behaviour("AT-192", "AT-193")
def test_the_cap_counts_what_is_open() -> None:
    assert refusal(1, 2) is None
    assert refusal(2, 2) == refusal(3, 2) == "maxConcurrentAgentTools (2) exceeded"


@pytest.mark.behaviour("AT-012", "D9", "D8")
def test_run_ids_of_a_tool_call_are_the_same_again_when_it_is_re_entered() -> None:
    def ids(root: str, taken: set[str]) -> list[str]:
        return [
            run_id_of_call("T", position, root=root, taken_by_another=taken.__contains__)
            for position in range(3)
        ]

    first = ids("turn1", set())
    assert first == ["agent-tool:T", "agent-tool:T:1", "agent-tool:T:2"]
    assert ids("turn2", set(first)) == [
        "agent-tool:T:turn2",
        "agent-tool:T:turn2:1",
        "agent-tool:T:turn2:2",
    ]


@pytest.mark.behaviour("D8")
def test_a_run_answers_one_question_where_it_is_known_which() -> None:
    assert same_question("turn1", "turn1")
    assert same_question(None, "turn1")
    assert same_question("turn1", None)
    assert not same_question("turn1", "turn2")
