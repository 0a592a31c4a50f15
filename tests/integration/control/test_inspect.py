"""`ramet inspect`: what it tells of agents and of the host, with one running and without."""

from pathlib import Path

import pytest

from ramet.core.json import JsonValue
from ramet.core.paths import AgentPath
from tests.integration.control.desk import Clerk, Desk, HTTPDesk
from tests.integration.control.shell import Said, Shell, desks

pytestmark = pytest.mark.behaviour("D15")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    Clerk.gates.clear()
    return Shell(tmp_path / "data")


def counts(said: Said) -> dict[str, JsonValue]:
    kinds = ("schedules", "queue", "fibers", "submissions", "sub_agents")
    found = {kind: said.json[kind] for kind in kinds}
    return {kind: some["count"] if isinstance(some, dict) else None for kind, some in found.items()}


BUSY = {"schedules": 1, "queue": 1, "fibers": 1, "submissions": None, "sub_agents": 1}


async def test_an_agent_in_memory_is_shown_with_all_it_waits_for(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").plan()
        said = await shell.run("inspect", "Desk/ada", "--json")
        people = await shell.run("inspect", "Desk/ada")
    answer = said.json
    assert (answer["class_name"], answer["name"], answer["open"]) == ("Desk", "ada", True)
    assert answer["busy"]
    assert isinstance(answer["next_wakeup"], int)
    assert isinstance(answer["bytes"], int)
    assert answer["bytes"] > 0
    assert counts(said) == BUSY
    assert "remind delayed due 2" in people.out
    assert "Desk/ada/sub/Folder/a%2Fb" in people.out


async def test_an_agent_of_a_stopped_host_is_read_from_its_file(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").plan()
        await app.get_agent(Desk, "ada").ask("r1")
    said = shell.run_here("inspect", "Desk/ada", "--json")
    assert (said.json["open"], said.json["busy"]) == (False, None)
    assert said.json["runs"] == {"completed": 1}
    assert counts(said) == {**BUSY, "sub_agents": 2}
    assert isinstance(said.json["next_wakeup"], int)
    below = shell.run_here("inspect", "Desk/ada/sub/Folder/a%2Fb", "--json")
    assert below.json["name"] == "a/b"
    assert counts(below)["schedules"] == 0


async def test_looking_at_a_closed_agent_does_not_open_it(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        path = AgentPath.of(("Desk", "ada"))
        app.host.evict(path, force=True)
        said = await shell.run("inspect", "Desk/ada", "--json")
        assert app.host.instances.live(path) is None
    assert said.json["open"] is False


@pytest.mark.parametrize("address", ["HTTPDesk/a", "h-t-t-p-desk/a", "/HTTPDesk/a/"])
async def test_a_class_may_be_written_as_in_a_url(shell: Shell, address: str) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(HTTPDesk, "a").ask("r1")
        assert (await shell.run("inspect", address, "--json")).json["agent"] == "HTTPDesk/a"
    assert shell.run_here("inspect", address, "--json").json["agent"] == "HTTPDesk/a"


async def test_the_host_tells_how_much_there_is(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "bob").plan()
        said = await shell.run("inspect", "--json")
        people = await shell.run("inspect")
    assert said.json["running"] is True
    assert isinstance(said.json["pid"], int)
    assert (said.json["root_agents"], said.json["sub_agents"]) == (2, 2)
    assert said.json["agents_open"] == 4
    assert said.json["wakeups_due"] == 0
    assert people.out.startswith("server ")
    without = shell.run_here("inspect", "--json").json
    assert (without["running"], without["pid"]) == (False, None)
    assert (without["root_agents"], without["sub_agents"]) == (2, 2)
    assert isinstance(without["next_wakeup"], int)
    assert "none runs" in shell.run_here("inspect").out


async def test_reading_leaves_a_stopped_directory_as_it_is(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
    before = contents(shell.data)
    for command in ("runs list", "runs show r1", "inspect Desk/ada", "inspect"):
        assert shell.run_here(*command.split()).code == 0
    assert contents(shell.data) == before


def contents(folder: Path) -> dict[str, bytes]:
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}
