"""Managed fibers after a crash: interrupted, handed to the hook, settled as it says."""

import asyncio

import pytest

from ramet.errors import InvalidArguments
from ramet.fibers.records import FiberContext, FiberInspection, FiberResult, InterruptedFiber
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import Agent, World, forever, no_result


async def stash_and_wait(fiber: FiberContext) -> None:
    fiber.stash({"page": 3})
    await forever(fiber)


async def interrupted(world: World, id: str = "f") -> None:
    """Leave a managed fiber whose process died, with a snapshot."""
    agent = await world.open()
    await agent.start_fiber(
        "work", stash_and_wait, fiber_id=id, idempotency_key=f"key {id}", metadata={"for": "you"}
    )
    await quiet()
    await world.crash()


def found(agent: Agent, id: str = "f") -> FiberInspection:
    fiber = agent.inspect_fiber(id)
    assert fiber is not None
    return fiber


@pytest.mark.behaviour("FB-011", "FB-040", "FB-042", "FB-022")
async def test_a_managed_fiber_becomes_interrupted_and_stays_so_without_a_result(
    world: World,
) -> None:
    await interrupted(world)
    statuses: list[str] = []

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        statuses.append(found(world.opened[World.path()].agent).status)
        return None

    world.hook = hook
    agent = await world.open()
    told = InterruptedFiber(
        id="f",
        name="work",
        snapshot={"page": 3},
        created_at=START_MS,
        status="interrupted",
        idempotency_key="key f",
        metadata={"for": "you"},
    )
    assert [fiber for _, fiber in world.told] == [told]
    assert statuses == ["interrupted"]
    assert (found(agent).status, found(agent).snapshot) == ("interrupted", {"page": 3})
    assert world.runs() == []
    assert world.log.named("fiber:recovery:handled")[-1]["status"] == "managed"
    await world.fire()
    assert len(world.told) == 1


@pytest.mark.behaviour("FB-040")
async def test_a_fiber_that_was_accepted_but_had_not_begun_is_interrupted_too(
    world: World,
) -> None:
    agent = await world.open()
    await agent.start_fiber("work", forever, fiber_id="f")
    await world.crash()
    agent = await world.open()
    assert [fiber.id for _, fiber in world.told] == ["f"]
    assert found(agent).status == "interrupted"


@pytest.mark.behaviour("FB-041")
@pytest.mark.parametrize(
    ("result", "snapshot", "metadata", "error"),
    [
        (FiberResult(status="completed"), {"page": 3}, {"for": "you"}, None),
        (FiberResult(status="completed", snapshot=[9], metadata="m"), [9], "m", None),
        (FiberResult(status="completed", error="no"), {"page": 3}, {"for": "you"}, None),
        (FiberResult(status="error", error="no"), {"page": 3}, {"for": "you"}, "no"),
        (
            FiberResult(status="aborted", metadata="m", error="no"),
            {"page": 3},
            {"for": "you"},
            "no",
        ),
        (FiberResult(status="interrupted", snapshot=9, error="later"), 9, {"for": "you"}, "later"),
    ],
)
async def test_the_hooks_result_settles_the_fiber(
    world: World, result: FiberResult, snapshot: object, metadata: object, error: str | None
) -> None:
    await interrupted(world)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        return result

    world.hook = hook
    agent = await world.open()
    fiber = found(agent)
    assert (fiber.status, fiber.snapshot) == (result.status, snapshot)
    assert (fiber.metadata, fiber.error) == (metadata, error)
    assert world.runs() == []


@pytest.mark.behaviour("FB-043", "QK-015")
@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (ValueError("no luck"), "no luck"),
        ("yes", "A fiber is settled by a FiberResult or None, not 'yes'"),
        (
            FiberResult(status="completed", snapshot=float("nan")),
            "The snapshot of a fiber's result is not JSON: nan (nan is not a JSON number)",
        ),
    ],
)
async def test_a_hook_that_fails_ends_a_managed_fiber_for_good(
    world: World, outcome: object, error: str
) -> None:
    await interrupted(world)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    world.hook = hook
    agent = await world.open()
    assert found(agent).status == "error"
    if isinstance(outcome, FiberResult):
        assert str(world.log.errors[0][1]) == error
    else:
        assert found(agent).error == error
    assert (world.runs(), len(world.log.errors)) == ([], 1)
    await world.advance(3_600)
    assert len(world.told) == 1
    assert world.due() is None


@pytest.mark.behaviour("FB-044")
@pytest.mark.parametrize("status", ["pending", "running"])
async def test_a_ledger_row_without_a_run_is_recovered_too(world: World, status: str) -> None:
    world.write(
        "INSERT INTO cf_agents_fibers (fiber_id, name, status, snapshot, created_at)"
        " VALUES ('f', 'work', ?, '7', 5)",
        status,
    )
    agent = await world.open()
    assert [(fiber.id, fiber.snapshot) for _, fiber in world.told] == [("f", 7)]
    assert found(agent).status == "interrupted"
    assert world.runs() == []


@pytest.mark.behaviour("FB-045")
@pytest.mark.parametrize("status", ["completed", "aborted", "error"])
async def test_the_run_row_of_a_fiber_that_is_over_just_goes(world: World, status: str) -> None:
    world.write(
        "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at)"
        " VALUES ('f', 'work', ?, 5)",
        status,
    )
    world.orphan("f")
    agent = await world.open()
    assert (world.told, world.runs(), found(agent).status) == ([], [], status)
    assert world.events() == ["on_start"]


@pytest.mark.behaviour("FB-034")
async def test_a_duplicate_that_waits_has_a_dead_fiber_recovered(world: World) -> None:
    agent = await world.open()
    world.write(
        "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at)"
        " VALUES ('f', 'work', 'running', 5)"
    )

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        return FiberResult(status="completed", snapshot="after all")

    world.hook = hook
    ended = await agent.start_fiber("work", forever, fiber_id="f", wait=True)
    assert (ended.accepted, ended.status, ended.snapshot) == (False, "completed", "after all")


@pytest.mark.behaviour("FB-034", "FB-020")
async def test_a_waiter_stays_until_the_scan_that_is_under_way_comes_to_its_fiber(
    world: World,
) -> None:
    agent = await world.open()
    for id in ("a", "f"):
        world.write(
            "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at)"
            " VALUES (?, 'work', 'running', 5)",
            id,
        )
    gates = {"a": asyncio.Event(), "f": asyncio.Event()}

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        await gates[fiber.id].wait()
        return FiberResult(status="completed")

    world.hook = hook
    await world.fire()
    waiting = asyncio.create_task(agent.start_fiber("work", forever, fiber_id="f", wait=True))
    await quiet()
    assert not waiting.done()
    gates["a"].set()
    await quiet()
    assert found(agent).status == "interrupted"
    assert not waiting.done(), "the hook has not said yet what becomes of it"
    joining = asyncio.create_task(agent.start_fiber("work", forever, fiber_id="f", wait=True))
    await quiet()
    assert agent.delete_fibers(status="interrupted") == 0
    assert await agent.cancel_fiber("f") is False
    gates["f"].set()
    assert [(await one).status for one in (waiting, joining)] == ["completed", "completed"]
    assert [fiber.id for _, fiber in world.told] == ["a", "f"]


async def test_a_hook_cannot_wait_for_a_fiber_that_comes_after_it(world: World) -> None:
    await interrupted(world)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        agent = world.opened[World.path()].agent
        done = await agent.start_fiber("new", no_work, wait=True)
        assert done.status == "completed"
        return await agent.start_fiber("work", forever, fiber_id="f", wait=True)

    world.hook = hook
    agent = await world.open()
    assert found(agent).error == (
        "The fiber 'work' cannot be waited for in a recovery hook: it is recovered after the hook"
    )


async def no_work(fiber: FiberContext) -> None:
    """Return at once."""


@pytest.mark.behaviour("FB-039")
async def test_only_an_interrupted_fiber_is_resolved_by_hand(world: World) -> None:
    await interrupted(world)
    agent = await world.open()
    result = FiberResult(status="completed", snapshot="by hand", metadata="m")
    world.clock.move(7)
    assert agent.resolve_fiber("f", result) is True
    fiber = found(agent)
    assert (fiber.status, fiber.snapshot, fiber.metadata) == ("completed", "by hand", "m")
    assert fiber.settled_at == START_MS + 7_000
    assert agent.resolve_fiber("f", FiberResult(status="error")) is False
    assert agent.resolve_fiber("unknown", result) is False
    await agent.start_fiber("work", forever, fiber_id="g")
    assert agent.resolve_fiber("g", result) is False
    with pytest.raises(InvalidArguments) as caught:
        FiberResult(status="running")  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == (
        "A fiber is settled as aborted, completed, error or interrupted, not as 'running'"
    )


@pytest.mark.behaviour("FB-039")
async def test_what_is_resolved_in_the_hook_stays_resolved(world: World) -> None:
    await interrupted(world)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        agent = world.opened[World.path()].agent
        agent.resolve_fiber(fiber.id, FiberResult(status="completed"))
        return FiberResult(status="error", error="too late")

    world.hook = hook
    agent = await world.open()
    assert (found(agent).status, found(agent).error) == ("completed", None)
    assert world.runs() == []


@pytest.mark.behaviour("FB-036", "FB-040")
async def test_a_fiber_that_is_cancelled_while_others_are_recovered_is_left_alone(
    world: World,
) -> None:
    agent = await world.open()
    for id in ("a", "f"):
        world.write(
            "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at)"
            " VALUES (?, 'work', 'running', 5)",
            id,
        )

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        assert await agent.cancel_fiber("f", "no more") is True
        return None

    world.hook = hook
    await world.fire()
    assert [fiber.id for _, fiber in world.told] == ["a"]
    assert (found(agent).status, found(agent).error) == ("aborted", "no more")


@pytest.mark.behaviour("D11", "FB-040")
async def test_a_hook_that_a_crash_ends_is_called_again_for_a_managed_fiber(
    world: World,
) -> None:
    await interrupted(world)
    agent = None

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        await asyncio.get_running_loop().create_future()
        return None

    world.hook = hook
    opening = asyncio.create_task(world.open())
    await quiet()
    assert world.rows("SELECT status FROM cf_agents_fibers") == [{"status": "interrupted"}]
    opening.cancel()
    await world.crash()
    world.hook = no_result
    agent = await world.open()
    assert [fiber.id for _, fiber in world.told] == ["f", "f"]
    assert (found(agent).status, world.runs()) == ("interrupted", [])
