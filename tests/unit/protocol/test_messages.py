"""Reading and normalising UI messages."""

from collections.abc import Callable
from typing import Any

import pytest

from ramet.core.json import JsonObject
from ramet.errors import InvalidArguments
from ramet.protocol.messages import (
    normalise_tool_inputs,
    parts_of,
    text_of,
    tool_calls,
    trailing_user_ids,
    user_message,
)
from ramet.protocol.ui_message import UIMessage, UIRole


def message(message_id: str, role: UIRole, *parts: Any) -> UIMessage:
    return {"id": message_id, "role": role, "parts": [*parts]}


def test_the_text_of_a_message_is_its_text_parts_joined() -> None:
    talk = message(
        "m",
        "assistant",
        {"type": "text", "text": "one"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "text", "text": "two"},
        {"type": "text"},
        "no part",
    )

    assert text_of(talk) == "one\ntwo"
    assert text_of(talk, separator="") == "onetwo"
    assert text_of({"id": "m", "role": "user"}) == ""


def test_what_an_answer_says_around_a_tool_call_stands_on_lines_of_its_own() -> None:
    answer = message(
        "a",
        "assistant",
        {"type": "text", "text": "Let me look."},
        {"type": "tool-look", "toolCallId": "c1", "state": "output-available", "output": 1},
        {"type": "text", "text": "It is 1."},
    )

    assert text_of(answer) == "Let me look.\nIt is 1."


def test_the_tool_calls_of_a_message_are_the_parts_that_stand_for_one() -> None:
    look = {"type": "tool-look", "toolCallId": "c1", "state": "output-available", "output": 1}
    found_later = {"type": "dynamic-tool", "toolName": "find", "toolCallId": "c2"}
    answer = message(
        "a",
        "assistant",
        {"type": "text", "text": "Let me look."},
        look,
        {"type": "data-note", "data": 1},
        {"type": "tool-without-an-id"},
        found_later,
    )

    assert tool_calls(answer) == [look, found_later]
    assert tool_calls({"id": "m", "role": "user"}) == []


def test_a_turn_without_a_message_has_no_text_and_no_calls() -> None:
    assert text_of(None) == ""
    assert tool_calls(None) == []


@pytest.mark.parametrize("read", [text_of, tool_calls])
@pytest.mark.parametrize(
    ("given", "shown"),
    [("hi", "'hi'"), ([{"id": "m", "role": "user", "parts": []}] * 5, "a list of them"), (7, "7")],
)
def test_what_is_no_message_is_refused_in_one_sentence(
    read: Callable[[Any], object], given: object, shown: str
) -> None:
    said = rf"\w+ takes one UI message, such as messages\[-1\], not {shown}$"

    with pytest.raises(InvalidArguments, match=said):
        read(given)


def test_a_user_message_has_one_text_part() -> None:
    assert user_message("hi", id="u") == message("u", "user", {"type": "text", "text": "hi"})
    assert parts_of(user_message("hi", id="u")) == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    ("roles", "ids"),
    [
        ([], []),
        (["user"], ["0"]),
        (["user", "assistant"], []),
        (["user", "assistant", "user", "user"], ["2", "3"]),
    ],
)
def test_a_turn_answers_the_user_messages_at_the_end(roles: list[UIRole], ids: list[str]) -> None:
    transcript = [message(str(place), role) for place, role in enumerate(roles)]

    assert trailing_user_ids(transcript) == ids


@pytest.mark.behaviour("MB-005")
@pytest.mark.parametrize(
    ("part", "normal"),
    [
        ({"state": "input-available", "input": '{"q":1}'}, {"q": 1}),
        ({"state": "output-error", "input": "{"}, {}),
        ({"state": "output-available", "input": [1]}, {}),
        ({"state": "output-available", "input": None}, {}),
        ({"state": "output-available"}, {}),
        ({"state": "input-streaming", "input": "{"}, {}),
    ],
)
def test_a_tool_input_becomes_an_object(part: JsonObject, normal: JsonObject) -> None:
    call: JsonObject = {"type": "tool-search", "toolCallId": "c", **part}

    assert normalise_tool_inputs(message("m", "assistant", call)) == message(
        "m", "assistant", {**call, "input": normal}
    )


@pytest.mark.behaviour("MB-005")
@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-search", "toolCallId": "c", "state": "input-streaming"},
        {"type": "tool-search", "toolCallId": "c", "state": "output-error", "input": {}},
        {"type": "text", "text": "x", "input": "mine"},
    ],
)
def test_a_message_that_is_right_is_given_back_as_it_is(part: JsonObject) -> None:
    right = message("m", "assistant", part)

    assert normalise_tool_inputs(right) is right
