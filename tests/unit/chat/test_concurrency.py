"""What becomes of overlapping questions, without a host."""

from datetime import timedelta

import pytest

from ramet.chat.concurrency import (
    Debounce,
    Drop,
    Enqueue,
    MessageConcurrency,
    Supersede,
    admission_of,
    checked_policy,
    merged_question,
)
from ramet.core.json import JsonObject
from ramet.errors import InvalidOptions
from ramet.protocol.ui_message import UIMessage


def question(message_id: str, *parts: JsonObject) -> UIMessage:
    return {"id": message_id, "role": "user", "parts": [*parts]}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


@pytest.mark.behaviour("TQ-016")
@pytest.mark.parametrize("policy", ["queue", "latest", "merge", "drop", Debounce()])
def test_a_question_that_overlaps_nothing_is_queued_whatever_the_policy(
    policy: MessageConcurrency,
) -> None:
    assert admission_of(policy, overlaps=False) == Enqueue()


@pytest.mark.parametrize(
    ("policy", "admission"),
    [
        ("queue", Enqueue()),
        ("drop", Drop()),
        ("latest", Supersede()),
        ("merge", Supersede(merges=True)),
        (Debounce(2), Supersede(quiet=2.0)),
    ],
)
def test_an_overlapping_question_goes_by_the_policy(
    policy: MessageConcurrency, admission: object
) -> None:
    assert admission_of(policy, overlaps=True) == admission


@pytest.mark.behaviour("TQ-020")
@pytest.mark.parametrize(
    ("quiet", "seconds"),
    [
        (2, 2.0),
        (0, 0.0),
        (timedelta(seconds=3), 3.0),
        (-1, 0.75),
        (float("nan"), 0.75),
        (float("inf"), 0.75),
        ("1", 0.75),
        (None, 0.75),
        (True, 0.75),
    ],
)
def test_a_quiet_period_that_is_no_duration_is_750_ms(quiet: object, seconds: float) -> None:
    assert Debounce(quiet).seconds == seconds  # type: ignore[arg-type] # what users may write
    assert Debounce().seconds == 0.75


@pytest.mark.parametrize("wrong", ["lates", "", None, 0.75, ["queue"]])
def test_an_unknown_policy_is_refused_by_its_name(wrong: object) -> None:
    with pytest.raises(InvalidOptions, match="or a Debounce, not") as caught:
        checked_policy(wrong)
    assert repr(wrong) in str(caught.value)


@pytest.mark.behaviour("TQ-019")
def test_merged_questions_join_their_texts_with_a_blank_line() -> None:
    file: JsonObject = {"type": "file", "url": "x", "mediaType": "image/png"}
    merged = merged_question(
        [question("u2", text("Second"), file), question("u3"), question("u4", text("Third"))]
    )
    assert merged == question("u4", text("Second\n\nThird"), file)


def test_merged_questions_without_text_keep_their_other_parts() -> None:
    file: JsonObject = {"type": "file", "url": "x", "mediaType": "image/png"}
    assert merged_question([question("u1", file), question("u2")]) == question("u2", file)
