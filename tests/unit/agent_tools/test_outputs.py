"""Typed outputs."""

from datetime import date

import pytest
from pydantic import BaseModel

from ramet.agent_tools.outputs import OutputMisfit, OutputType, checked_ending, result_of
from ramet.agent_tools.policy import Ending, failure
from ramet.agent_tools.run_store import StoredRun
from ramet.errors import InvalidArguments
from ramet.protocol.run_events import ABSENT


class Answer(BaseModel):
    day: date


@pytest.mark.behaviour("AT-165", "D29")
def test_an_output_is_read_as_json_of_its_type() -> None:
    assert OutputType(Answer).read({"day": "2026-01-02"}) == Answer(day=date(2026, 1, 2))
    assert OutputType(list[int] | None).read(None) is None


@pytest.mark.behaviour("AT-166", "D29")
def test_an_output_that_is_missing_or_misfits_says_so() -> None:
    with pytest.raises(OutputMisfit, match="without the structured output"):
        OutputType(Answer).read(ABSENT)
    with pytest.raises(OutputMisfit, match=r"does not fit its type: day: .*date"):
        OutputType(Answer).read({"day": "soon"})
    with pytest.raises(OutputMisfit, match="type: output: "):
        OutputType(int).read("x")


def test_a_type_that_nothing_can_be_checked_by_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="no type that an output can be checked by"):
        OutputType(object.__new__)


@pytest.mark.behaviour("D29")
def test_only_a_completed_run_is_checked() -> None:
    wanted = OutputType(Answer)
    good = Ending(status="completed", output={"day": "2026-01-02"})

    assert checked_ending(failure("x"), wanted) == failure("x")
    assert checked_ending(good, wanted) == good
    assert checked_ending(good, None) == good
    assert checked_ending(Ending(status="completed"), wanted).status == "error"


@pytest.mark.behaviour("AT-004")
def test_a_run_that_is_under_way_has_no_result_but_being_interrupted() -> None:
    run = StoredRun(run_id="r", agent_type="A", status="running")

    assert result_of(run).status == "interrupted"
    assert result_of(run).output is None
