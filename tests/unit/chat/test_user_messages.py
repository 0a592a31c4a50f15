"""Messages that programs make with `ramet.user_message`."""

from typing import Any

import pytest

import ramet
from ramet.errors import InvalidArguments


def test_a_user_message_has_the_text_the_id_and_the_metadata_that_it_was_given() -> None:
    assert ramet.user_message("Where?", id="q1", metadata={"from": ("a", 1)}) == {
        "id": "q1",
        "role": "user",
        "parts": [{"type": "text", "text": "Where?"}],
        "metadata": {"from": ["a", 1]},
    }


def test_without_an_id_each_message_gets_one_of_its_own() -> None:
    first, second = ramet.user_message("Where?"), ramet.user_message("Where?")

    assert first["id"].startswith("user_")
    assert first["id"] != second["id"]
    assert "metadata" not in first


def test_a_message_does_not_change_with_the_metadata_that_it_was_given() -> None:
    metadata = {"tags": ["a"]}
    message = ramet.user_message("Where?", metadata=metadata)
    metadata["tags"].append("b")

    assert message.get("metadata") == {"tags": ["a"]}


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        (None, {}, "A message is made of a text, not of None"),
        (["hi"], {}, r"A message is made of a text, not of \['hi'\]"),
        ("hi", {"id": ""}, "The id of a message is a text that is not empty, not ''"),
        ("hi", {"id": 7}, "The id of a message is a text that is not empty, not 7"),
        ("hi", {"metadata": "x"}, "The metadata of a message is a mapping, not 'x'"),
        ("hi", {"metadata": {"at": object()}}, "The metadata of a message is not JSON: .*object"),
        ("hi", {"metadata": {"at": float("nan")}}, "The metadata of a message is not JSON: nan"),
    ],
)
def test_what_makes_no_message_is_refused_in_one_sentence(
    text: Any, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArguments, match=said):
        ramet.user_message(text, **settings)
