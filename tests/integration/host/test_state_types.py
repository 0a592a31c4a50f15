"""The state comes back from disk in the type that the class names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pytest
from pydantic import BaseModel

import ramet
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
