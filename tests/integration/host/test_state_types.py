"""The state comes back from disk in the type that the class names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

import ramet
from ramet.errors import StateRejected
from ramet.testing import Harness

S = TypeVar("S")


class Notes(BaseModel):
    titles: list[str] = []


@dataclass
class Count:
    count: int = 0


class ModelAgent(ramet.Agent[Notes]):
    initial_state = Notes()


class DataclassAgent(ramet.Agent[Count]):
    initial_state = Count()


class ChatWithState(ramet.AIChatAgent[Notes]):
    initial_state = Notes()


class Shared(ramet.Agent[S], Generic[S]):
    """A class between the agent and the one that names the type."""


class Indirect(Shared[Notes]):
    initial_state = Notes()


class Derived(ModelAgent):
    """The type is inherited too."""


class Unnamed(ramet.Think):
    initial_state = Count()


AGENTS = [ModelAgent, DataclassAgent, ChatWithState, Indirect, Derived, Unnamed]


@pytest.mark.parametrize(
    ("cls", "value"),
    [
        (ModelAgent, Notes(titles=["a"])),
        (DataclassAgent, Count(3)),
        (ChatWithState, Notes(titles=["a"])),
        (Indirect, Notes(titles=["a"])),
        (Derived, Notes(titles=["a"])),
        (Unnamed, Count(3)),
    ],
)
async def test_a_state_keeps_its_type_over_a_restart(
    cls: type[ramet.Agent[object]], value: object, tmp_path: Path
) -> None:
    async with Harness(agents=AGENTS, data_dir=tmp_path) as harness:
        agent = await harness.agent(cls, "a")
        agent.set_state(value)
        await harness.crash()
        await harness.restart()
        assert (await harness.agent(cls, "a")).state == value


async def test_a_state_of_a_client_that_does_not_fit_the_type_is_rejected(tmp_path: Path) -> None:
    async with Harness(agents=AGENTS, data_dir=tmp_path) as harness:
        client = await harness.connect(ModelAgent, "a")
        await client.send({"type": "cf_agent_state", "state": {"titles": 5}})
        assert [frame["error"] for frame in client.of_type("cf_agent_state_error")] == [
            "State update rejected"
        ]
        assert client.of_type("cf_agent_state")[-1]["state"] == {"titles": []}


class Numbers(ramet.Agent[dict[str, int]]):
    initial_state = {"count": 0}

    def __init__(self) -> None:
        self.checked: list[object] = []

    def validate_state_change(self, state: dict[str, int], source: ramet.Connection | None) -> None:
        self.checked.append(state)


class Untyped(ramet.Agent):
    """Any JSON value is a state."""


async def test_code_cannot_set_a_state_that_does_not_fit_its_type(tmp_path: Path) -> None:
    async with Harness(agents=[Numbers], data_dir=tmp_path) as harness:
        agent = await harness.agent(Numbers, "n")
        client = await harness.connect(Numbers, "n")
        agent.set_state({"count": 1})
        wrong: dict[str, Any] = {"count": "many"}

        with pytest.raises(StateRejected) as refused:
            agent.set_state(wrong)
        await harness.settle()

        assert str(refused.value) == (
            "The value does not fit the type of Numbers's state: count: "
            "Input should be a valid integer, unable to parse string as an integer"
        )
        assert agent.state == {"count": 1}
        assert agent.checked == [{"count": 1}]
        assert [frame["state"] for frame in client.of_type("cf_agent_state")] == [
            {"count": 0},
            {"count": 1},
        ]
        await harness.crash()
        await harness.restart()
        assert (await harness.agent(Numbers, "n")).state == {"count": 1}


async def test_code_sets_a_state_in_the_type_that_is_read(tmp_path: Path) -> None:
    async with Harness(agents=[ModelAgent], data_dir=tmp_path) as harness:
        agent = await harness.agent(ModelAgent, "m")
        plain: Any = {"titles": ["a"]}
        agent.set_state(plain)
        assert agent.state == Notes(titles=["a"])


async def test_any_value_fits_an_agent_that_names_no_type(tmp_path: Path) -> None:
    async with Harness(agents=[Untyped], data_dir=tmp_path) as harness:
        agent = await harness.agent(Untyped, "u")
        value = {"count": "many"}
        agent.set_state(value)
        assert agent.state is value
