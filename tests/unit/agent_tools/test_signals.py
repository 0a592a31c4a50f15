"""What progress and milestone chunks say."""

import pytest

from ramet.agent_tools.records import Progress
from ramet.agent_tools.signals import milestone_key, progress_of
from ramet.core.json import dumps
from ramet.protocol import chunks


@pytest.mark.behaviour("AT-210")
def test_a_progress_says_what_it_holds_at_the_parents_time() -> None:
    body = dumps(chunks.progress("p", {"fraction": 0.5, "message": "m", "phase": "f", "data": [1]}))

    assert progress_of(body, at=9) == Progress(fraction=0.5, message="m", phase="f", data=[1], at=9)


@pytest.mark.behaviour("AT-210")
def test_a_milestone_says_its_name() -> None:
    body = dumps(chunks.milestone({"name": "half", "sequence": 3, "at": 1}))

    assert progress_of(body, at=9) == Progress(milestone="half", at=9)
    assert milestone_key(body) == milestone_key(body.replace("half", "other"))


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"data":3}', "{"])
def test_a_signal_that_cannot_be_read_says_nothing(body: str) -> None:
    assert progress_of(body, at=9) is None
    assert milestone_key(body) == body


def test_fields_of_the_wrong_type_are_left_out() -> None:
    body = dumps({"data": {"fraction": True, "message": 1, "phase": [], "name": None}})

    assert progress_of(body, at=9) == Progress(at=9)
