"""What the two families make of a run's messages (AT-083, AT-346)."""

import pytest

from ramet.chat.family import AI_CHAT, THINK, Output
from ramet.protocol.run_events import ABSENT
from ramet.protocol.ui_message import UIMessage


def answer(*texts: str) -> UIMessage:
    return {
        "id": "asst",
        "role": "assistant",
        "parts": [{"type": "text", "text": text} for text in texts],
    }


@pytest.mark.behaviour("AT-346")
def test_an_ai_chat_agents_output_is_the_text_of_its_latest_answer() -> None:
    assert AI_CHAT.child_output([answer("first"), answer("la", "st")]) == "last"
    assert AI_CHAT.child_output([answer()]) is ABSENT
    assert AI_CHAT.child_output([]) is ABSENT


@pytest.mark.behaviour("AT-346")
@pytest.mark.parametrize(
    ("output", "summary"),
    [("given", "given"), ({"a": 1}, '{"a":1}'), (ABSENT, "last"), (None, "last")],
)
def test_an_ai_chat_agents_summary_is_its_output_else_its_latest_text(
    output: Output, summary: str
) -> None:
    assert AI_CHAT.child_summary([answer("first"), answer("last")], output) == summary


@pytest.mark.behaviour("AT-083", "AT-084")
@pytest.mark.parametrize(
    ("messages", "output", "summary"),
    [
        ([answer("a", "b"), answer("later")], "given", "a\nb"),
        ([answer()], "given", "given"),
        ([], {"a": 1}, '{"a":1}'),
        ([], ABSENT, ""),
    ],
)
def test_a_thinks_summary_is_its_first_text_else_its_output(
    messages: list[UIMessage], output: Output, summary: str
) -> None:
    assert THINK.child_summary(messages, output) == summary
    assert THINK.child_output(messages) is ABSENT
