"""What a client that comes back is answered (PROTOCOL 4.5)."""

import pytest

from ramet.chat.resume import (
    Answer,
    Idle,
    Ignore,
    Offer,
    ReplayStream,
    Situation,
    Wait,
    answer_to_ack,
    answer_to_probe,
    greeting,
)
from ramet.chat.turn import TurnOutcome
from ramet.chat.turn_store import StoredTurn, TurnStatus


def turn(request_id: str, status: TurnStatus, outcome: TurnOutcome | None) -> StoredTurn:
    return StoredTurn(
        turn_id=f"turn-{request_id}",
        recovery_root=f"turn-{request_id}",
        request_ids=[request_id],
        trigger="ws-chat",
        status=status,
        outcome=outcome,
        assistant_message_id="asst",
        created_at=0,
    )


LOST = turn("lost", "orphaned", "aborted")
FAILED = turn("failed", "ended", "error")


@pytest.mark.behaviour("CW-014")
@pytest.mark.parametrize(
    ("situation", "answer"),
    [
        (Situation(streaming="s", waiting=["a"], orphan=LOST, newest=FAILED), Offer("s")),
        (Situation(orphan=LOST, newest=LOST), Offer("lost")),
        (Situation(newest=FAILED), Offer("failed")),
        (Situation(waiting=["a"], newest=turn("a", "accepted", None)), Wait("a")),
        (Situation(newest=turn("x", "ended", "completed")), Idle()),
        (Situation(newest=turn("x", "ended", "aborted")), Idle()),
        (Situation(newest=turn("x", "cleared", "error")), Idle()),
        (Situation(), Idle()),
    ],
)
def test_a_probe_is_answered_by_what_comes_first(situation: Situation, answer: Answer) -> None:
    assert answer_to_probe(situation) == answer


@pytest.mark.behaviour("CW-003")
def test_a_new_connection_is_not_bothered_with_an_old_failure() -> None:
    assert greeting(Situation(newest=FAILED)) == Idle()
    assert greeting(Situation(orphan=LOST)) == Offer("lost")
    assert greeting(Situation(streaming="s", orphan=LOST)) == Offer("s")
    assert greeting(Situation(waiting=["a"])) == Wait("a")


@pytest.mark.behaviour("CW-008", "CW-009")
def test_while_a_turn_streams_only_that_one_may_be_acknowledged() -> None:
    assert answer_to_ack(Situation(streaming="s"), "s") == ReplayStream("s")
    assert answer_to_ack(Situation(streaming="s"), "x") == Ignore()
    assert answer_to_ack(Situation(waiting=["a", "b"]), "a") == Wait("a")
    assert answer_to_ack(Situation(waiting=["a", "b"]), "b") == Wait("b")
    assert answer_to_ack(Situation(streaming="s", waiting=["a"]), "a") == Wait("a")
    assert answer_to_ack(Situation(waiting=["a"]), "x") == ReplayStream("x")
    assert answer_to_ack(Situation(), "x") == ReplayStream("x")
