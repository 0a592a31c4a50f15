"""`ramet inspect`: what it tells of agents and of the host, with one running and without."""

from pathlib import Path

import pytest

from ramet.cli.asking import objects
from ramet.core.json import JsonValue
from ramet.core.paths import AgentPath
from ramet.testing import Gate
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
    assert below.json["next_wakeup"] is None


async def test_the_next_wake_up_of_a_sub_agent_is_its_own(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").plan()
        await app.get_agent(Desk, "ada").plan_below()
        said = await shell.run("inspect", "Desk/ada/sub/Folder/f", "--json")
        root = await shell.run("inspect", "Desk/ada", "--json")
    schedules = said.json["schedules"]
    assert isinstance(schedules, dict)
    [schedule] = objects(schedules["first"])
    assert said.json["next_wakeup"] == schedule["due_at"]
    assert said.json["next_wakeup"] != root.json["next_wakeup"]


async def test_all_agents_are_listed_each_before_those_below_it(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "bob").ask("r1")
        await app.get_agent(Desk, "ada").give("slow")
        await Clerk.gates.setdefault("slow", Gate()).reached()
        await app.get_agent(HTTPDesk, "a").plan()
        app.host.evict(AgentPath.of(("Desk", "bob")), force=True)
        said = await shell.run("inspect", "--all", "--json")
        people = await shell.run("inspect", "--all")
    agents = objects(said.json["agents"])
    assert [agent["agent"] for agent in agents] == [
        "Desk/ada",
        "Desk/ada/sub/Clerk/slow",
        "Desk/bob",
        "Desk/bob/sub/Clerk/r1",
        "HTTPDesk/a",
        "HTTPDesk/a/sub/Folder/a%2Fb",
    ]
    assert [agent["open"] for agent in agents] == [True, True, False, False, True, True]
    assert [agent["runs_under_way"] for agent in agents] == [1, 0, 0, 0, 0, 0]
    assert all(isinstance(agent["bytes"], int) and agent["bytes"] > 0 for agent in agents)
    assert agents[0]["busy"]
    assert (said.json["more"], said.json["server_running"]) == (False, True)
    assert len(people.out.splitlines()) == 7
    left = shell.run_here("inspect", "--all", "--json")
    assert [agent["open"] for agent in objects(left.json["agents"])] == [False] * 6
    assert left.json["server_running"] is False


async def test_pages_of_agents_follow_each_other(shell: Shell) -> None:
    async with desks(shell.data) as app:
        for name in ("b", "c", "a"):
            await app.get_agent(Desk, name).remind("")
    first = shell.run_here("inspect", "--all", "--limit", "2")
    last = shell.run_here("inspect", "--all", "--limit", "2", "--skip", "2", "--json")
    assert [line.split()[0] for line in first.out.splitlines()] == ["AGENT", "Desk/a", "Desk/b"]
    assert first.err == "There are more: --skip 2 shows the next.\n"
    assert [agent["agent"] for agent in objects(last.json["agents"])] == ["Desk/c"]
    assert last.json["more"] is False


def test_one_agent_or_all_are_inspected(shell: Shell) -> None:
    assert shell.run_here("inspect", "Desk/ada", "--all").code == 2


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
    clear = "runs clear --agent Desk/ada --dry-run"
    looks = ("runs list", "runs show r1", clear, "inspect Desk/ada", "inspect --all", "inspect")
    for command in looks:
        assert shell.run_here(*command.split()).code == 0
    assert contents(shell.data) == before


def contents(folder: Path) -> dict[str, bytes]:
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}
