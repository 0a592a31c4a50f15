"""How often a lost turn is taken up, and why it is given up in the end."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.chat.recovery_options import ChatRecovery, resolved
from ramet.chat.recovery_policy import (
    Incident,
    Loss,
    after_loss,
    awaits_client,
    classify,
    exhaustion,
    incident_id,
    still_to_answer,
)
from ramet.core.json import JsonObject
from ramet.protocol.messages import user_message
from ramet.protocol.ui_message import UIMessage

LOSSES = st.lists(
    st.tuples(st.integers(0, 400_000), st.integers(0, 3), st.booleans()), min_size=1, max_size=12
)


def loss(now: int, progress: int = 0, *, awaits: bool = False, oom: bool = False) -> Loss:
    """A turn that was lost."""
    return Loss(
        incident_id="i",
        turn_id="t",
        request_id="r",
        kind="continue",
        now=now,
        progress=progress,
        awaits_client=awaits,
        out_of_memory=oom,
    )


def reason(incident: Incident, budgets: ChatRecovery, now: int, *, keep: bool = True) -> str | None:
    """Why the turn would be given up now."""
    return exhaustion(incident, budgets, now=now, keep_going=lambda: keep)


@pytest.mark.behaviour("CR-004")
@pytest.mark.parametrize(
    ("streamed", "is_last", "kind"),
    [(False, True, "retry"), (True, True, "continue"), (False, False, "continue")],
)
def test_only_an_untouched_question_is_asked_again(
    *, streamed: bool, is_last: bool, kind: str
) -> None:
    assert classify(streamed=streamed, is_last=is_last) == kind


@pytest.mark.behaviour("CR-005")
def test_an_incident_is_named_by_its_root_and_its_question() -> None:
    assert incident_id("root", ["u1", "u2"]) == "root:u2"


@pytest.mark.behaviour("CR-006", "CR-007")
def test_detections_in_quick_succession_are_one_attempt() -> None:
    first = after_loss(None, loss(0))
    assert first.attempt == 1
    assert after_loss(first, loss(29_999)).attempt == 1
    assert after_loss(first, loss(30_000)).attempt == 2


@pytest.mark.behaviour("CR-008")
def test_progress_begins_the_count_and_the_clock_anew() -> None:
    tried = replace(after_loss(None, loss(0)), attempt=7)
    again = after_loss(tried, loss(200_000, 1))
    assert (again.attempt, again.last_progress_at) == (1, 200_000)


@pytest.mark.behaviour("CR-009")
def test_the_reasons_to_give_up_have_an_order() -> None:
    budgets = ChatRecovery(
        max_attempts=1, no_progress_timeout=1, max_recovery_work=1, max_oom_retries=0
    )
    incident = Incident(
        incident_id="i",
        turn_id="t",
        request_id="r",
        kind="continue",
        attempt=2,
        opened_at=0,
        last_attempt_at=5_000,
        last_progress_at=0,
        opened_work=0,
        progress=2,
        oom_attempts=1,
    )
    assert reason(incident, budgets, 5_000, keep=False) == "out_of_memory"
    incident = replace(incident, oom_attempts=0)
    assert reason(incident, budgets, 5_000, keep=False) == "work_budget_exceeded"
    incident = replace(incident, progress=1)
    assert reason(incident, budgets, 5_000, keep=False) == "no_progress_timeout"
    incident = replace(incident, last_progress_at=5_000)
    assert reason(incident, budgets, 5_000, keep=False) == "recovery_aborted"
    assert reason(incident, budgets, 5_000) == "max_attempts_exceeded"
    assert reason(replace(incident, attempt=1), budgets, 5_000) is None


@pytest.mark.behaviour("CR-009")
def test_a_wall_clock_that_is_set_back_neither_prolongs_a_turn_nor_ends_it() -> None:
    hour, budgets = 3_600_000, ChatRecovery(max_attempts=9, no_progress_timeout=300)
    incident = after_loss(after_loss(None, loss(2 * hour)), loss(2 * hour + 40_000))
    for now, gone_by in (
        (hour, None),
        (hour + 299_000, None),
        (hour + 301_000, "no_progress_timeout"),
    ):
        incident = after_loss(incident, loss(now))
        assert reason(incident, budgets, now) == gone_by
    assert incident.attempt <= budgets.max_attempts


@pytest.mark.behaviour("CR-007", "CR-009")
def test_attempts_are_counted_on_when_the_wall_clock_was_set_back() -> None:
    hour, budgets = 3_600_000, ChatRecovery(max_attempts=2, no_progress_timeout=inf)
    incident = after_loss(None, loss(2 * hour))
    told = []
    for now in (hour, hour + 31_000, hour + 62_000):
        incident = after_loss(incident, loss(now))
        told.append((incident.attempt, reason(incident, budgets, now)))
    assert told == [(1, None), (2, None), (3, "max_attempts_exceeded")]


@pytest.mark.behaviour("CR-009", "CR-007")
@given(LOSSES)
def test_without_progress_a_turn_is_given_up_after_so_many_attempts(
    steps: list[tuple[int, int, bool]],
) -> None:
    budgets = ChatRecovery(max_attempts=3, no_progress_timeout=inf)
    incident, now, attempts = after_loss(None, loss(0)), 0, 1
    for wait, _, _ in steps:
        attempts += int(wait >= 30_000)
        now += wait
        incident = after_loss(incident, loss(now))
        assert incident.attempt == attempts
        given_up = reason(incident, budgets, now) == "max_attempts_exceeded"
        assert given_up == (attempts > 3)


@pytest.mark.behaviour("CR-011")
@given(LOSSES)
def test_a_turn_that_waits_for_somebody_spends_nothing(
    steps: list[tuple[int, int, bool]],
) -> None:
    incident, now = after_loss(None, loss(0, awaits=True)), 0
    for wait, _, _ in steps:
        now += wait
        incident = after_loss(incident, loss(now, awaits=True))
        assert incident.attempt == 1
        assert incident.last_progress_at == now


@pytest.mark.behaviour("CR-011")
def test_only_what_a_browser_or_a_person_answers_is_waited_for() -> None:
    def message(**part: str) -> UIMessage:
        tool: JsonObject = {"type": "tool-locate", "toolCallId": "c", **part}
        return {"id": "m", "role": "assistant", "parts": [tool]}

    assert awaits_client(message(state="input-available"), {"locate"})
    assert awaits_client(message(state="approval-requested"), set())
    assert not awaits_client(message(state="input-available"), set())
    assert not awaits_client(message(state="output-available"), {"locate"})
    assert not awaits_client(None, {"locate"})


@pytest.mark.behaviour("CR-017")
def test_a_question_is_to_be_answered_while_nothing_else_follows_it() -> None:
    transcript = [user_message("?", id=each) for each in ("u1", "a1", "u2")]
    assert still_to_answer(transcript, "u1", besides={"a1", "u2"})
    assert not still_to_answer(transcript, "u1", besides={"a1"})
    assert not still_to_answer(transcript, "gone", besides=set())
    assert still_to_answer(transcript, "u2", besides=set())


@pytest.mark.behaviour("CR-002")
def test_numbers_that_make_no_sense_fall_back_to_the_defaults() -> None:
    given_options = ChatRecovery(
        max_attempts=0, stable_timeout=-1, no_progress_timeout=float("nan"), max_recovery_work=-5
    )
    assert (given_options.max_attempts, given_options.stable_timeout) == (1, 10.0)
    assert (given_options.no_progress_timeout, given_options.max_recovery_work) == (300.0, 1000)
    assert ChatRecovery(max_attempts=-2).max_attempts == 10
    assert resolved(True) == ChatRecovery()
    assert resolved(False) is None
