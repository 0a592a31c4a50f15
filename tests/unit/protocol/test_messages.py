"""Reading and normalising UI messages."""

import pytest

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.messages import (
    normalise_tool_inputs,
    parts_of,
    text_of,
    trailing_user_ids,
    user_message,
)


def message(message_id: str, role: str, *parts: JsonValue) -> JsonObject:
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


def test_a_user_message_has_one_text_part() -> None:
    assert user_message("u", "hi") == message("u", "user", {"type": "text", "text": "hi"})
    assert parts_of(user_message("u", "hi")) == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    ("roles", "ids"),
    [
        ([], []),
        (["user"], ["0"]),
        (["user", "assistant"], []),
        (["user", "assistant", "user", "user"], ["2", "3"]),
    ],
)
def test_a_turn_answers_the_user_messages_at_the_end(roles: list[str], ids: list[str]) -> None:
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
