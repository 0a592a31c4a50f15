"""The rules of durable submissions that need only values."""

import pytest

from ramet.errors import InvalidArguments
from ramet.think.submission_records import (
    HALF_APPLIED,
    INTERRUPTED,
    OVERTAKEN,
    TERMINAL,
    UNREADABLE,
    AfterRestart,
    End,
    LeaveRunning,
    RunAgain,
    Submission,
    after_restart,
    listed,
    recorded_end,
    the_one,
)


@pytest.mark.behaviour("SB-011", "SB-012", "SB-013", "SB-014")
@pytest.mark.parametrize(
    ("applied", "readable", "in_history", "owned", "expected"),
    [
        (False, True, 0, False, RunAgain()),
        (False, True, 0, True, RunAgain()),
        (False, True, 1, False, End("error", HALF_APPLIED)),
        (False, False, 0, False, End("error", UNREADABLE)),
        (True, True, 2, True, LeaveRunning()),
        (True, False, 0, True, LeaveRunning()),
        (True, True, 2, False, End("error", INTERRUPTED)),
    ],
)
def test_after_a_restart_only_what_left_no_trace_is_run_again(
    *, applied: bool, readable: bool, in_history: int, owned: bool, expected: AfterRestart
) -> None:
    decision = after_restart(
        applied=applied, readable=readable, in_history=in_history, owned=owned, recorded=None
    )
    assert decision == expected


@pytest.mark.behaviour("SB-015", "D10")
def test_a_turn_that_had_ended_decides_unless_recovery_goes_on_with_it() -> None:
    end = End("completed")

    def decided(*, owned: bool) -> AfterRestart:
        return after_restart(applied=True, readable=True, in_history=1, owned=owned, recorded=end)

    assert decided(owned=False) == end
    assert decided(owned=True) == LeaveRunning()


@pytest.mark.behaviour("SB-015")
@pytest.mark.parametrize(
    ("outcome", "given_up_for", "end"),
    [
        ("completed", None, End("completed")),
        ("skipped", None, End("skipped")),
        ("error", "no_progress_timeout", End("error", "text")),
        ("aborted", None, End("aborted")),
        ("aborted", "cancelled", End("aborted")),
        ("aborted", "conversation_changed", End("skipped", OVERTAKEN)),
        ("aborted", "no_unanswered_user_message", End("skipped", OVERTAKEN)),
        ("recovering", None, None),
        (None, None, None),
    ],
)
def test_the_end_of_a_turn_is_the_end_of_its_submission(
    outcome: str | None, given_up_for: str | None, end: End | None
) -> None:
    assert recorded_end(outcome, "text", given_up_for=given_up_for) == end


def submission(submission_id: str, key: str | None = None) -> Submission:
    return Submission(
        submission_id=submission_id,
        request_id=submission_id,
        status="pending",
        created_at=0,
        idempotency_key=key,
    )


@pytest.mark.behaviour("SB-005")
def test_an_id_and_a_key_name_one_submission_or_are_refused() -> None:
    one, other = submission("s1", "k1"), submission("s2", "k2")
    assert the_one(one, one, submission_id="s1", key="k1") is one
    assert the_one(one, None, submission_id="s1", key=None) is one
    assert the_one(None, one, submission_id=None, key="k1") is one
    assert the_one(None, None, submission_id="s3", key="k3") is None
    with pytest.raises(InvalidArguments, match="'k2' belongs to the submission 's2', not to 's1'"):
        the_one(one, other, submission_id="s1", key="k2")
    with pytest.raises(InvalidArguments, match="has the idempotency key 'k1', not 'k9'"):
        the_one(one, None, submission_id="s1", key="k9")


@pytest.mark.behaviour("SB-016")
def test_statuses_are_asked_for_by_name() -> None:
    assert listed(None) == TERMINAL | {"pending", "running"}
    assert listed("error") == {"error"}
    assert listed(["error", "pending"]) == {"error", "pending"}
    with pytest.raises(InvalidArguments, match="'done' is not one of the statuses"):
        listed("done")
