"""Asking about agents that an older program has left: renamed classes, other versions, options."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import ramet
from ramet.core.paths import AgentPath
from ramet.host.host import Host
from tests.integration.control.desk import Clerk, Desk, Folder, Stranger
from tests.integration.control.shell import Shell, desks

pytestmark = pytest.mark.behaviour("D15")

VERSION_OF_RUNS = "cf_schema_version:agent:agent_tools"


class Bureau(Desk):
    options = ramet.AgentOptions(name="Bureau")


class Agency(Desk):
    options = ramet.AgentOptions(name="Agency", former_names=("Bureau",))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    Clerk.gates.clear()
    return Shell(tmp_path / "data")


def desk_of(cls: type, data: Path, options: ramet.HostOptions | None = None) -> ramet.App:
    below: list[type] = [Clerk, Stranger, Folder]
    options = options or ramet.HostOptions(grace_period=0)
    return ramet.App(agents=[cls], sub_agents=below, data_dir=data, options=options)


def set_version(file: Path, version: str) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "UPDATE cf_agents_state SET state = ? WHERE id = ?", (version, VERSION_OF_RUNS)
        )


async def file_of_ada(shell: Shell) -> Path:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "bob").ask("r2")
        host: Host = app.host
        return host.files.file_of(AgentPath.of(("Desk", "ada")))


@pytest.mark.parametrize("address", ["Agency/ada", "agency/ada", "Bureau/ada"])
async def test_a_host_finds_an_agent_under_the_former_name_of_its_class(
    shell: Shell, address: str
) -> None:
    async with desk_of(Bureau, shell.data) as app:
        await app.get_agent(Bureau, "ada").ask("r1")
    async with desk_of(Agency, shell.data) as app:
        closed = (await shell.run("inspect", address, "--json")).json
        assert len(app.host.instances) == 0
        await app.get_agent(Agency, "ada").ask("r2")
        opened = (await shell.run("inspect", address, "--json")).json
        listed = await shell.run("runs", "list", "--agent", address)
    assert (closed["open"], closed["runs"]) == (False, {"completed": 1})
    assert (opened["open"], opened["runs"]) == (True, {"completed": 2})
    assert [line.split()[0] for line in listed.out.splitlines()] == ["RUN", "r2", "r1"]


async def test_runs_of_an_older_version_are_left_out_and_the_file_is_not_migrated(
    shell: Shell,
) -> None:
    file = await file_of_ada(shell)
    set_version(file, "3")
    before = file.read_bytes()
    listed = shell.run_here("runs", "list")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["RUN", "r2"]
    assert listed.err == (
        f"Left out: The database {file} of Desk/ada is of an older ramet: "
        "open the agent once to update it\n"
    )
    inspected = shell.run_here("inspect", "Desk/ada")
    assert "of an older version: open the agent once to update it" in inspected.out
    assert file.read_bytes() == before


async def test_what_a_newer_version_wrote_is_refused(shell: Shell) -> None:
    file = await file_of_ada(shell)
    set_version(file, "99")
    assert "Use the newer ramet that wrote it" in shell.run_here("inspect", "Desk/ada").sentence
    assert "Use the newer ramet that wrote it" in shell.run_here("runs", "list").err


async def test_agents_are_read_where_other_processes_may_not_read_their_files(
    shell: Shell,
) -> None:
    options = ramet.HostOptions(grace_period=0, locking="exclusive")
    async with desk_of(Desk, shell.data, options) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        listed = await shell.run("runs", "list")
        inspected = await shell.run("inspect", "Desk/ada", "--json")
    assert (listed.err, "r1" in listed.out) == ("", True)
    assert inspected.json["open"] is True
