"""A process that is killed at each durable step of a fiber, and what the next one finds."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ramet.core import failpoints
from ramet.fibers.records import FiberContext, FiberResult, InterruptedFiber
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import World

Scenario = Callable[[World], Awaitable[object]]

# Only a test runner with threads of its own is warned; the child does nothing but its scenario.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


async def work(fiber: FiberContext) -> None:
    fiber.stash({"page": 3})


async def plain(world: World) -> None:
    await (await world.open()).run_fiber("work", work)


async def managed(world: World) -> None:
    await (await world.open()).start_fiber("work", work, fiber_id="f", wait=True)


async def below(world: World) -> None:
    await (await world.sub("child")).run_fiber("work", work)


async def recovering(world: World) -> None:
    world.orphan("f")
    await world.open()


async def recovering_managed(world: World) -> None:
    world.write(
        "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at)"
        " VALUES ('f', 'work', 'running', 5)"
    )
    await world.open()


async def done(path: str, fiber: InterruptedFiber) -> object:
    return FiberResult(status="completed")


def killed_at(point: str, scenario: Scenario, folder: Path) -> None:
    """Run the scenario in a process of its own that dies at a failpoint."""
    pid = os.fork()
    if pid == 0:
        failpoints._ARMED = point
        try:
            asyncio.run(_run(scenario, folder))
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"{point} was not passed"
    assert os.WTERMSIG(status) == signal.SIGKILL


async def _run(scenario: Scenario, folder: Path) -> None:
    await scenario(_world(folder))


def _world(folder: Path) -> World:
    """A world whose index of wake-ups outlives the process."""
    world = World(folder)
    world.hook = done
    world.registered = {world.path("child")}
    stored = folder / "index"
    if stored.exists():
        world.index.due_ms = int(stored.read_text()) or None
    watch = world.index.on_set

    def keep() -> None:
        stored.write_text(str(world.index.due_ms or 0))
        watch()

    world.index.on_set = keep
    return world


@pytest.mark.behaviour("D6", "FB-001", "FB-005", "FB-040", "FB-046", "FB-048")
@pytest.mark.parametrize(
    ("scenario", "point", "told", "woken"),
    [
        (plain, "fiber.promised", [], True),
        (plain, "fiber.added", [None], True),
        (plain, "fiber.stashed", [{"page": 3}], True),
        (plain, "fiber.returned", [{"page": 3}], True),
        (plain, "fiber.removed", [], True),
        (managed, "fiber.promised", [], True),
        (managed, "fiber.accepted", [None], True),
        (managed, "fiber.begun", [None], True),
        (managed, "fiber.stashed", [{"page": 3}], True),
        (managed, "fiber.returned", [{"page": 3}], True),
        (managed, "fiber.settled", [], True),
        (below, "fiber.leased", [], True),
        (below, "fiber.promised", [], True),
        (below, "fiber.added", [None], True),
        (below, "fiber.stashed", [{"page": 3}], True),
        (below, "fiber.removed", [], True),
        (below, "fiber.released", [], True),
        # From here on the agent was open already when it found the fiber, and is opened again.
        (recovering, "fiber.interrupted", [None], False),
        (recovering, "fiber.recovered", [None], False),
        (recovering, "fiber.forgotten", [], False),
        (recovering_managed, "fiber.interrupted", [None], False),
        (recovering_managed, "fiber.recovered", [None], False),
        (recovering_managed, "fiber.resolved", [], False),
        (recovering_managed, "fiber.forgotten", [], False),
    ],
)
def test_a_process_that_is_killed_leaves_what_the_next_one_needs(
    tmp_path: Path, scenario: Scenario, point: str, told: list[object], *, woken: bool
) -> None:
    killed_at(point, scenario, tmp_path)

    async def next_process() -> None:
        world = _world(tmp_path)
        assert (world.index.due_ms is not None) is woken
        if woken:
            await world.advance(0)
            world.index.set(world.index.due_ms)  # the host watches its index from its start
        else:
            await world.open()
        await world.advance(31)
        await quiet()
        assert [fiber.snapshot for _, fiber in world.told] == told
        assert (world.runs(), world.leases(), world.index.due_ms) == ([], [], None)
        ledger = world.rows("SELECT status FROM cf_agents_fibers")
        assert {row["status"] for row in ledger} <= {"completed"}
        if scenario is below:
            assert world.rows("SELECT * FROM cf_agents_runs", path=world.path("child")) == []
        await world.close()

    asyncio.run(next_process())
