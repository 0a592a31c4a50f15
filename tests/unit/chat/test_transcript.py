"""The messages of a chat in order, in memory and on disk."""

from pathlib import Path

import pytest

from ramet.chat.transcript import Transcript
from ramet.core.json import dumps, loads
from ramet.protocol.ui_message import UIMessage, UIRole
from ramet.storage import Database
from ramet.testing.manual_clock import ManualClock
from tests.unit.chat.support import chat_database


def message(message_id: str, text: str = "x", role: UIRole = "user") -> UIMessage:
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": text}]}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return chat_database(tmp_path)


@pytest.fixture
def transcript(database: Database) -> Transcript:
    return Transcript(database, ManualClock())


def ids(transcript: Transcript) -> list[object]:
    return [each["id"] for each in transcript.all()]


def stored(database: Database) -> list[object]:
    return [each["id"] for each in Transcript(database, ManualClock()).all()]


def test_a_new_message_goes_to_the_end_and_a_known_one_stays_in_its_place(
    transcript: Transcript, database: Database
) -> None:
    for each in (message("a"), message("b"), message("a", "changed")):
        transcript.put(each)
    assert transcript.all() == [message("a", "changed"), message("b")]
    assert Transcript(database, ManualClock()).all() == transcript.all()


def test_an_answer_goes_behind_its_question_even_when_more_was_said_meanwhile(
    transcript: Transcript, database: Database
) -> None:
    for each in (message("q1"), message("q2"), message("q3")):
        transcript.put(each)
    transcript.put(message("a1"), after="q1")
    transcript.put(message("a3"), after="q3")
    transcript.put(message("a2"), after="q2")
    transcript.put(message("z"), after="unknown")
    assert ids(transcript) == ["q1", "a1", "q2", "a2", "q3", "a3", "z"]
    assert stored(database) == ids(transcript)


def test_replacing_deletes_what_is_not_wanted_and_takes_the_given_order(
    transcript: Transcript, database: Database
) -> None:
    for each in ("a", "b", "c"):
        transcript.put(message(each))
    transcript.replace([message("c"), message("a", "changed"), message("d")])
    assert ids(transcript) == ["c", "a", "d"]
    assert stored(database) == ids(transcript)
    transcript.replace([message("c"), message("a", "changed"), message("d"), message("e")])
    assert stored(database) == ["c", "a", "d", "e"]


def test_what_was_cut_or_cleared_is_gone(transcript: Transcript, database: Database) -> None:
    for each in ("a", "b", "c"):
        transcript.put(message(each))
    transcript.cut_after("unknown")
    transcript.cut_after("b")
    assert stored(database) == ["a", "b"]
    transcript.clear()
    assert (stored(database), len(transcript)) == ([], 0)


def test_a_turn_sees_what_was_said_up_to_its_question(transcript: Transcript) -> None:
    for each in ("a", "b", "c"):
        transcript.put(message(each))
    assert [each["id"] for each in transcript.until("b")] == ["a", "b"]
    assert [each["id"] for each in transcript.until("unknown")] == ["a", "b", "c"]
    assert [each["id"] for each in transcript.some(["c", "unknown", "a"])] == ["c", "a"]
    assert loads(transcript.json()) == transcript.all()


def test_what_is_given_out_can_be_changed_without_harm(transcript: Transcript) -> None:
    transcript.put(message("a"))
    transcript.all()[0]["role"] = "assistant"
    assert transcript.all() == [message("a")]


def test_changes_that_fail_half_way_leave_nothing(
    transcript: Transcript, database: Database
) -> None:
    transcript.put(message("a"))

    def change() -> None:
        with transcript.changing():
            transcript.put(message("b"))
            transcript.delete(["a"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert ids(transcript) == stored(database) == ["a"]


@pytest.mark.behaviour("RS-016")
def test_a_message_too_large_for_a_row_is_stored_shortened(
    transcript: Transcript, database: Database
) -> None:
    transcript.put(message("a", "x" * 2_000_000, role="assistant"))
    (row,) = database.query("SELECT message FROM cf_ai_chat_agent_messages")
    assert len(row["message"]) < 1_800_000
    assert transcript.all()[0]["metadata"] == {"compactedTextParts": [0]}
    transcript.put(message("b", "x" * 1000))
    assert dumps(transcript.all()[1]) == dumps(message("b", "x" * 1000))


def test_the_tool_calls_are_those_of_the_messages_as_they_are_now(transcript: Transcript) -> None:
    called: UIMessage = {
        "id": "a1",
        "role": "assistant",
        "parts": [{"type": "tool-look", "toolCallId": "w1", "state": "input-available"}],
    }
    transcript.put(message("q1", 'no "toolCallId"'))
    transcript.put(called)
    assert transcript.tool_calls() == {"w1"}
    assert transcript.tool_calls() == {"w1"}
    transcript.put({**called, "parts": [{"type": "tool-look", "toolCallId": "w2"}]})
    assert transcript.tool_calls() == {"w2"}
    transcript.clear()
    assert transcript.tool_calls() == set()
