"""Sub-agents that clients ask for by name."""

from pathlib import Path

import pytest

import ramet
from ramet.testing import Harness


class Child(ramet.Agent[None]):
    async def whoami(self) -> str:
        return self.name


class Open(ramet.Agent[None]):
    """Lets clients make any child but one."""

    async def on_before_sub_agent(
        self, request: ramet.Request, target: ramet.Target
    ) -> ramet.Response | None:
        return ramet.Response("No", status=403) if target.name == "forbidden" else None


class Shut(ramet.Agent[None]):
    """Has only the children it has made."""


def harness(path: Path) -> Harness:
    return Harness(agents=[Open, Shut], sub_agents=[Child], data_dir=path)


@pytest.mark.behaviour("SA-008", "SA-010")
async def test_a_child_that_a_client_was_let_through_to_is_one_of_its_parent(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        path = h.path(Open, "o", [(Child, "new")])
        assert isinstance(await h.host.admit(path, ramet.Request()), ramet.Request)
        parent = await h.agent(Open, "o")
        assert [child.name for child in parent.list_sub_agents()] == ["new"]


@pytest.mark.behaviour("SA-023")
@pytest.mark.parametrize(("root", "name"), [(Open, "forbidden"), (Shut, "new")])
async def test_a_child_that_a_client_is_refused_is_not_made(
    root: type[ramet.Agent[None]], name: str, tmp_path: Path
) -> None:
    async with harness(tmp_path) as h:
        verdict = await h.host.admit(h.path(root, "r", [(Child, name)]), ramet.Request())
        assert isinstance(verdict, ramet.Response)
        assert (await h.agent(root, "r")).list_sub_agents() == []
