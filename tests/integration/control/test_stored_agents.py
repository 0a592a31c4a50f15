"""Reading all agents of a directory one by one, while others have their turn."""

import asyncio
from pathlib import Path

import pytest

from ramet.control.stored_agents import StoredAgents
from ramet.control.without_host import NoHost
from ramet.core.clock import SystemClock
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.errors import DataDirectoryInUse
from ramet.host import ClassTable, Host
from ramet.host.host import READERS_SECONDS
from ramet.storage import DataDirectory
from ramet.testing import ManualClock
from tests.integration.control.desk import Desk
from tests.integration.control.shell import desks


class Hurried(ManualClock):
    """A clock on which every look finds that much time has passed; it counts who waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def monotonic(self) -> float:
        self.move(1)
        return super().monotonic()

    async def sleep(self, seconds: float) -> None:
        self.waits += 1
        await super().sleep(0)


async def test_others_have_their_turn_after_each_agent(tmp_path: Path) -> None:
    async with desks(tmp_path) as app:
        for name in ("ada", "bob"):
            await app.get_agent(Desk, name).plan()
    clock = Hurried()
    files = DataDirectory(tmp_path)
    agents = StoredAgents(files, NoHost(files, clock), clock)
    found = [path async for path in agents.each(lambda path, _: path, unreadable=[])]
    assert [path.leaf.class_name for path in found] == ["Desk", "Folder", "Desk", "Folder"]
    assert (found[1].parent, found[3].parent) == (found[0], found[2])
    assert clock.waits == len(found)
    files.release()


class Restless(SystemClock):
    """The machine's clock, on which each look finds a second later."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return super().monotonic() + self._looks


async def test_a_host_may_start_while_much_is_read(tmp_path: Path) -> None:
    async with desks(tmp_path) as app:
        await app.get_agent(Desk, "ada").plan()
    clock, files = Restless(), DataDirectory(tmp_path)
    files.acquire_to_read()
    agents = StoredAgents(files, NoHost(files, clock), clock)

    async def read() -> None:
        while True:
            assert [path async for path in agents.each(lambda path, _: path, unreadable=[])]

    reading = asyncio.get_running_loop().create_task(read())
    await clock.sleep(0)
    async with desks(tmp_path):
        with pytest.raises(DataDirectoryInUse):
            await reading


async def moved(clock: ManualClock, seconds: float) -> None:
    """Move the clock once everybody waits for it, and let all go on who did."""
    await clock.sleep(0)
    clock.move(seconds)
    await clock.sleep(0)


async def test_a_host_waits_for_those_who_read_but_not_for_ever(tmp_path: Path) -> None:
    files, clock = DataDirectory(tmp_path), ManualClock()
    (tmp_path / "ramet.lock").touch()
    files.acquire_to_read()
    host = Host(ClassTable(roots=[Desk]), tmp_path, options=HostOptions(), clock=clock, ids=Ids())
    starting = asyncio.get_running_loop().create_task(host.start())
    await moved(clock, READERS_SECONDS / 2)
    assert not starting.done()
    files.release()
    await moved(clock, 1)
    await starting
    await host.stop()
    files.acquire_to_read()
    starting = asyncio.get_running_loop().create_task(host.start())
    await moved(clock, READERS_SECONDS + 1)
    with pytest.raises(DataDirectoryInUse):
        await starting
    files.release()


async def test_a_deleted_agent_is_passed_over(tmp_path: Path) -> None:
    async with desks(tmp_path) as app:
        await app.get_agent(Desk, "ada").plan()
        path = AgentPath.of(("Desk", "ada"), ("Folder", "a/b"))
        file = app.host.files.file_of(path)
    file.unlink()
    files, clock = DataDirectory(tmp_path), ManualClock()
    agents = StoredAgents(files, NoHost(files, clock), clock)
    unreadable: list[str] = []
    found = [path async for path in agents.each(lambda path, _: path, unreadable=unreadable)]
    assert (found, unreadable) == ([path.root], [])
