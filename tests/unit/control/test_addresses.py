"""How an operator writes which agent is meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.control.addresses import address_of, means, steps_of
from ramet.core.paths import AgentPath, PathStep
from ramet.errors import InvalidArguments

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
paths = st.lists(st.tuples(names, names), min_size=1, max_size=4).map(
    lambda steps: AgentPath.of(*steps)
)


@given(paths)
def test_every_agent_can_be_written_and_is_meant_then(path: AgentPath) -> None:
    assert tuple(steps_of(address_of(path))) == path.steps


def test_an_address_reads_well() -> None:
    path = AgentPath.of(("Desk", "ada b"), ("Clerk", "a/b%"))
    assert address_of(path) == "Desk/ada%20b/sub/Clerk/a%2Fb%25"
    assert steps_of("/Desk/ada b/") == [PathStep("Desk", "ada b")]


@pytest.mark.parametrize(
    "address", ["", "/", "Desk", "Desk/", "Desk/a/b", "Desk/a/sub", "Desk/a/x/Clerk/b", "Desk//b"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidArguments, match="is no agent's address"):
        steps_of(address)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (PathStep("ResearchAgent", "a"), True),
        (PathStep("research-agent", "a"), True),
        (PathStep("researchagent", "a"), False),
        (PathStep("ResearchAgent", "b"), False),
    ],
)
def test_a_class_may_be_in_its_url_form(written: PathStep, *, meant: bool) -> None:
    assert means(written, class_name="ResearchAgent", name="a") is meant
