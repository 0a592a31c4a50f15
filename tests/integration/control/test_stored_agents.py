"""Reading all agents of a directory one by one, while others have their turn."""

from pathlib import Path

from ramet.control.stored_agents import StoredAgents
from ramet.control.without_host import NoHost
from ramet.core.paths import AgentPath
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
        await super().sleep(seconds)


async def test_others_have_their_turn_after_each_agent(tmp_path: Path) -> None:
    async with desks(tmp_path) as app:
        for name in ("ada", "bob"):
            await app.get_agent(Desk, name).plan()
    clock = Hurried()
    agents = StoredAgents(DataDirectory(tmp_path), NoHost(None), clock)
    found = [path async for path in agents.each(lambda path, _: path, unreadable=[])]
    assert [path.leaf.class_name for path in found] == ["Desk", "Folder", "Desk", "Folder"]
    assert (found[1].parent, found[3].parent) == (found[0], found[2])
    assert clock.waits == len(found)


async def test_a_deleted_agent_is_passed_over(tmp_path: Path) -> None:
    async with desks(tmp_path) as app:
        await app.get_agent(Desk, "ada").plan()
        path = AgentPath.of(("Desk", "ada"), ("Folder", "a/b"))
        file = app.host.files.file_of(path)
    file.unlink()
    agents = StoredAgents(DataDirectory(tmp_path), NoHost(None), ManualClock())
    unreadable: list[str] = []
    found = [path async for path in agents.each(lambda path, _: path, unreadable=unreadable)]
    assert (found, unreadable) == ([path.root], [])
