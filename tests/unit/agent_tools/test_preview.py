"""What is shown of an input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ramet.agent_tools.preview import PREVIEW_LENGTH, input_preview
from ramet.core.json import NotJson, dumps, loads
from ramet.protocol.run_events import ABSENT


class Question(BaseModel):
    q: str


@pytest.mark.behaviour("D30")
def test_a_short_input_previews_as_itself() -> None:
    assert input_preview({"q": [1, None]}) == {"q": [1, None]}
    assert input_preview(Question(q="why")) == {"q": "why"}
    exact = ["x" * (PREVIEW_LENGTH - 4)]
    assert len(dumps(exact)) == PREVIEW_LENGTH
    assert input_preview(exact) == exact


@pytest.mark.behaviour("AT-067", "D30")
def test_a_long_input_previews_as_the_beginning_of_its_json() -> None:
    preview = input_preview(["x" * PREVIEW_LENGTH])

    assert isinstance(preview, str)
    assert len(preview) == PREVIEW_LENGTH
    assert preview.startswith('["xxx')
    assert preview.endswith("...")


@pytest.mark.behaviour("AT-066")
def test_a_text_previews_as_its_first_characters() -> None:
    assert input_preview("a" * 499 + "bcd") == "a" * 499 + "b"


@pytest.mark.behaviour("AT-068")
def test_null_is_an_input_and_none_at_all_is_not() -> None:
    assert input_preview(None) is None
    assert input_preview(ABSENT) is ABSENT


@pytest.mark.behaviour("AT-069")
def test_what_is_not_json_previews_as_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd " * 200

    preview = input_preview(Odd())
    assert isinstance(preview, str)
    assert preview == ("odd " * 200)[:PREVIEW_LENGTH]


@pytest.mark.behaviour("AT-065")
def test_a_preview_that_is_given_is_taken() -> None:
    assert input_preview({"secret": 1}, "a question") == "a question"
    assert input_preview({"q": 1}, None) == {"q": 1}
    with pytest.raises(NotJson):
        input_preview(1, object())


@given(st.text())
def test_a_text_can_always_be_sent_and_stored(text: str) -> None:
    preview = input_preview(text + "\ud800")
    assert loads(dumps(preview)) == preview
