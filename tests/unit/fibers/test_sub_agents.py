"""Fibers of sub-agents: rows in the child, leases and the alarm at its root."""

import asyncio

import pytest

from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import World, forever, no_result


async def failing(path: str, fiber: InterruptedFiber) -> object:
    raise OSError("not now")


@pytest.mark.behaviour("FB-046", "D6")
async def test_the_root_keeps_a_lease_and_holds_on_while_a_sub_agents_fiber_runs(
    world: World,
) -> None:
    root = await world.open()
    child = await world.sub("child")
    order: list[object] = []
    world.index.on_set = lambda: order.append((world.due(), world.leases()))

    async def work(fiber: FiberContext) -> None:
        order.append("work")
        path = '[["Root","r"],["Sub","child"]]'
        assert world.rows("SELECT * FROM cf_agents_facet_runs") == [
            {
                "owner_path": path,
                "owner_path_key": path,
                "run_id": fiber.id,
                "created_at": START_MS,
            }
        ]
        assert world.runs("child") == [fiber.id]
        assert world.runs() == []
        assert root.fibers.holders == 1

    await child.run_fiber("work", work)
    assert order == [(START_MS + 30_000, []), "work", (None, [])]
    started = await child.start_fiber("work", work, wait=True)
    assert (started.error, started.status) == (None, "completed")
    assert (world.leases(), world.runs("child"), root.fibers.holders) == ([], [], 0)


@pytest.mark.behaviour("FB-046")
async def test_a_fiber_that_is_set_up_in_vain_leaves_no_lease(world: World) -> None:
    root = await world.open()
    child = await world.sub("child")
    running = asyncio.create_task(child.run_fiber("work", forever))
    await quiet()
    (id,) = world.runs("child")
    refused = await child.start_fiber("other", forever, fiber_id=id)
    assert refused.status == "error"
    assert world.leases() == [id]
    running.cancel()
    await asyncio.wait({running})
    assert (world.leases(), root.fibers.holders) == ([], 0)


@pytest.mark.behaviour("FB-047", "FB-018")
async def test_the_roots_alarm_has_sub_agents_recover_even_nested_ones(world: World) -> None:
    child, below = await world.sub("child"), await world.sub("child", "below")
    running = [
        asyncio.create_task(child.run_fiber("a", forever)),
        asyncio.create_task(below.run_fiber("b", forever)),
    ]
    await quiet()
    await world.crash()
    for task in running:
        task.cancel()
    assert len(world.leases()) == 2
    await world.advance(30)
    assert [(path, fiber.name) for path, fiber in world.told] == [
        ("Root:r/Sub:child", "a"),
        ("Root:r/Sub:child/Sub:below", "b"),
    ]
    assert (world.leases(), world.runs("child"), world.due()) == ([], [], None)


@pytest.mark.behaviour("FB-047")
async def test_a_root_that_opens_first_recovers_its_sub_agents_soon_after(world: World) -> None:
    child = await world.sub("child")
    running = asyncio.create_task(child.run_fiber("a", forever))
    await quiet()
    await world.crash()
    running.cancel()
    root = await world.open()
    assert root.fibers.busy() == "interrupted fibers wait for recovery"
    assert world.told == []
    await world.advance(0)
    assert [path for path, _ in world.told] == ["Root:r/Sub:child"]
    assert (world.leases(), root.fibers.busy()) == ([], None)


@pytest.mark.behaviour("FB-048")
async def test_a_lease_is_kept_while_the_child_cannot_recover_and_tried_again(
    world: World,
) -> None:
    child = await world.sub("child")
    running = asyncio.create_task(child.run_fiber("a", forever))
    await quiet()
    await world.crash()
    running.cancel()
    world.hook = failing
    await world.open()
    await world.advance(1)
    assert len(world.leases()) == 1
    assert world.due() == START_MS + 60_000
    world.hook = no_result
    await world.advance(60)
    assert (world.leases(), world.due()) == ([], None)


@pytest.mark.behaviour("FB-048")
async def test_leases_without_a_fiber_or_a_child_go_and_a_failing_check_keeps_one(
    world: World,
) -> None:
    one, other = await world.sub("one"), await world.sub("two")
    running = [asyncio.create_task(agent.run_fiber("work", forever)) for agent in (one, other)]
    await quiet()
    await world.crash()
    for task in running:
        task.cancel()
    world.write("DELETE FROM cf_agents_runs", path=world.path("one"))
    world.unreachable[world.path("two")] = OSError("no disk")
    await world.open()
    await world.advance(1)
    assert world.told == []
    assert [row["owner_path"] for row in world.rows("SELECT * FROM cf_agents_facet_runs")] == [
        '[["Root","r"],["Sub","two"]]'
    ]
    assert [str(error) for _, error in world.log.errors] == ["no disk"]
    assert world.due() is not None
    world.unreachable.clear()
    world.registered.discard(world.path("two"))
    await world.advance(60)
    assert (world.leases(), world.told, world.due()) == ([], [], None)


@pytest.mark.behaviour("D11", "FB-047")
async def test_a_sub_agent_that_dies_alone_is_opened_again_for_its_fibers(world: World) -> None:
    root = await world.open()
    child = await world.sub("child")
    await child.start_fiber("work", forever, fiber_id="f")
    await quiet()
    await world.die("child")
    assert (world.leases(), world.runs("child"), root.fibers.holders) == (["f"], ["f"], 0)
    assert world.due() == START_MS + 30_000
    await world.advance(30)
    assert [(path, fiber.id) for path, fiber in world.told] == [("Root:r/Sub:child", "f")]
    assert (world.leases(), world.runs("child"), world.due()) == ([], [], None)


@pytest.mark.behaviour("FB-046", "FB-047")
async def test_a_lease_of_a_running_fiber_needs_no_look_and_is_not_pruned(world: World) -> None:
    child = await world.sub("child")
    await child.start_fiber("work", forever, fiber_id="f")
    await world.advance(300)
    assert (world.dispatched, world.leases()) == ([], ["f"])
    await child.cancel_fiber("f")
    await world.advance(60)
    assert (world.leases(), world.due()) == ([], None)


@pytest.mark.behaviour("FB-048")
async def test_a_fiber_that_starts_during_the_recovery_keeps_its_lease(world: World) -> None:
    child = await world.sub("child")
    await child.start_fiber("work", forever, fiber_id="old")
    await world.crash()

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        agent = world.opened[world.path("child")].agent
        await agent.start_fiber("again", forever, fiber_id="new")
        return None

    world.hook = hook
    await world.advance(31)
    assert (world.leases(), world.runs("child")) == (["new"], ["new"])


async def test_leases_below_a_deleted_sub_agent_are_forgotten_by_steps(world: World) -> None:
    root = await world.open()
    for names in (("a",), ("a", "b"), ("ab",)):
        agent = await world.sub(*names)
        await agent.start_fiber("work", forever, fiber_id="-".join(names))
    root.fibers.forget(world.path("a"))
    assert world.leases() == ["ab"]
