"""Agents below others: side by side, destroyed from inside, called, with clients (section 27)."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import ramet
from ramet.errors import InstanceGone, MethodNotFound
from ramet.testing import Harness
from ramet.testing.harness import Below

HOOKED: list[str] = []


class Tree(ramet.Agent[dict[str, int]]):
    """Has others like it below."""

    initial_state = {"count": 0}

    async def on_before_sub_agent(self, request: ramet.Request, target: ramet.Target) -> None:
        HOOKED.append(target.name)

    async def grow(self, name: str) -> None:
        child = await self.sub_agent(Branch, name)
        await child.remember(f"{name} of {self.name}")

    async def remember(self, text: str) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        self.sql("INSERT INTO notes VALUES (?)", text)

    async def recall(self) -> list[str]:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        return [row["text"] for row in self.sql("SELECT text FROM notes")]

    async def count(self, to: int, tell: Callable[[int], object]) -> str:
        for number in range(to):
            tell(number)
        return "done"

    async def numbers(self, to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    async def plan(self) -> None:
        await self.schedule(3600, self.ring)

    async def ring(self) -> None:
        """Called by a schedule that never comes."""


class Branch(Tree):
    """One below a root."""

    async def meet(self, other: str) -> str:
        """Wait until another has come as far."""
        await MEETING.wait()
        return f"{self.name} met {other}"

    async def above(self) -> list[str]:
        return await (await self.parent_agent(Branch)).recall()


MEETING: asyncio.Barrier
ONE: Below = ((Branch, "one"),)
DEEP: Below = ((Branch, "one"), (Branch, "deep"))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    global MEETING
    MEETING = asyncio.Barrier(2)
    HOOKED.clear()
    async with Harness(agents=[Tree], sub_agents=[Branch], data_dir=tmp_path) as running:
        yield running


@pytest.mark.behaviour("SA-003")
async def test_children_work_side_by_side(host: Harness) -> None:
    root = await host.agent(Tree, "r")
    one, two = [await root.sub_agent(Branch, name) for name in ("one", "two")]
    said = await asyncio.gather(one.meet("two"), two.meet("one"))
    assert [*said] == ["one met two", "two met one"]


@pytest.mark.behaviour("SA-014", "SA-012")
async def test_a_child_that_destroys_itself_is_gone_with_all_below_it(host: Harness) -> None:
    root = await host.agent(Tree, "r")
    await root.grow("one")
    await (await host.agent(Tree, "r", ONE)).grow("deep")
    await (await host.agent(Tree, "r", DEEP)).plan()
    client = await host.connect(Tree, "r", ONE)
    with pytest.raises(InstanceGone):
        await (await root.sub_agent(Branch, "one")).destroy()
    await host.settle()
    assert not root.has_sub_agent(Branch, "one")
    assert client.closed is not None
    assert host.rows(Tree, "r", "SELECT id FROM cf_agents_schedules") == []
    for place in (ONE, DEEP):
        assert not host.host.files.file_of(host.path(Tree, "r", place)).exists()
    again = await root.sub_agent(Branch, "one")
    assert await again.recall() == []
    assert (await host.agent(Tree, "r", ONE)).list_sub_agents() == []


@pytest.mark.behaviour("SA-018", "SA-016")
async def test_a_parent_that_is_a_child_itself_is_called_like_any(host: Harness) -> None:
    await (await host.agent(Tree, "r")).grow("one")
    await (await host.agent(Tree, "r", ONE)).grow("deep")
    deep = await host.agent(Tree, "r", DEEP)
    assert isinstance(deep, Branch)
    assert await deep.above() == ["one of r"]
    with pytest.raises(MethodNotFound, match="Method fetch of Branch does not exist"):
        await (await deep.parent_agent(Branch)).fetch()  # type: ignore[attr-defined] # that is it


@pytest.mark.behaviour("SA-019", "D17")
async def test_a_call_to_a_child_may_carry_a_callback_or_stream(host: Harness) -> None:
    child = await (await host.agent(Tree, "r")).sub_agent(Branch, "one")
    told: list[int] = []
    assert await child.count(3, told.append) == "done"
    assert told == [0, 1, 2]
    assert [number async for number in child.numbers(3)] == [0, 1, 2]


@pytest.mark.behaviour("SA-019")
async def test_an_unknown_method_is_named_with_its_class(host: Harness) -> None:
    child = await (await host.agent(Tree, "r")).sub_agent(Branch, "one")
    with pytest.raises(MethodNotFound, match="Method whistle of Branch does not exist"):
        await child.whistle()  # type: ignore[attr-defined] # that is it


@pytest.mark.behaviour("SA-020")
async def test_a_stub_by_name_calls_without_asking_the_gate(host: Harness) -> None:
    await (await host.agent(Tree, "r")).grow("one")
    stub = host.host.stub(host.path(Tree, "r", ONE), Branch)
    assert not inspect.isawaitable(stub)
    assert await stub.recall() == ["one of r"]
    await host.evict(Tree, "r", sub=ONE)
    assert await stub.recall() == ["one of r"], "each call finds the agent anew"
    with pytest.raises(MethodNotFound, match="fetch"):
        stub.fetch()  # type: ignore[attr-defined] # that is it
    assert HOOKED == []


@pytest.mark.behaviour("SA-026")
async def test_connections_belong_to_the_agent_they_were_made_to(host: Harness) -> None:
    root = await host.agent(Tree, "r")
    await root.grow("one")
    child = await host.agent(Tree, "r", ONE)
    above, below = await host.connect(Tree, "r"), await host.connect(Tree, "r", ONE)
    assert len(list(child.get_connections())) == 1
    assert len(list(root.get_connections())) == 1
    child.broadcast("from below")
    root.broadcast("from above")
    await host.settle()
    assert [text for text in above.texts if text.startswith("from")] == ["from above"]
    assert [text for text in below.texts if text.startswith("from")] == ["from below"]


@pytest.mark.behaviour("SA-028")
async def test_the_state_of_a_child_reaches_its_own_clients_and_lasts(host: Harness) -> None:
    await (await host.agent(Tree, "r")).grow("one")
    above, below = await host.connect(Tree, "r"), await host.connect(Tree, "r", ONE)
    before = len(above.frames)
    (await host.agent(Tree, "r", ONE)).set_state({"count": 7})
    await host.settle()
    assert below.frames[-1] == {"type": "cf_agent_state", "state": {"count": 7}}
    assert len(above.frames) == before
    await host.crash()
    await host.restart()
    assert (await host.agent(Tree, "r", ONE)).state == {"count": 7}
