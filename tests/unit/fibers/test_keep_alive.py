"""Keep-alive: while anybody holds on the alarm is near, afterwards it is what else there is."""

import pytest

from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import World

NEAR = START_MS + 30_000
FAR = START_MS + 3_600_000


@pytest.mark.behaviour("KA-001", "KA-002", "KA-003", "KA-004")
async def test_the_first_holder_arms_the_alarm_and_the_last_one_takes_it_back(
    world: World,
) -> None:
    fibers = (await world.open()).fibers
    one, other = fibers.hold(), fibers.hold()
    assert (fibers.holders, world.due()) == (2, NEAR)
    assert fibers.busy() == "it is kept alive"
    one()
    one()
    assert (fibers.holders, world.due()) == (1, NEAR)
    other()
    other()
    assert (fibers.holders, world.due()) == (0, None)
    assert fibers.busy() is None
    assert world.events() == ["on_start"]
    assert world.index.history == [NEAR, None]


@pytest.mark.behaviour("KA-004", "KA-007")
async def test_a_holder_brings_a_far_alarm_near_and_gives_it_back(world: World) -> None:
    fibers = (await world.open()).fibers
    world.other_due = FAR
    world.alarm.rearm()
    release = fibers.hold()
    assert world.due() == NEAR
    release()
    assert world.due() == FAR


@pytest.mark.behaviour("KA-005", "KA-006")
async def test_a_release_followed_by_a_new_holder_leaves_the_alarm_armed(world: World) -> None:
    fibers = (await world.open()).fibers
    fibers.hold()()
    release = fibers.hold()
    assert world.due() == NEAR
    more = fibers.hold()
    release()
    assert world.due() == NEAR
    more()


@pytest.mark.behaviour("KA-007")
async def test_each_sign_of_life_sets_the_next_one(world: World) -> None:
    fibers = (await world.open()).fibers
    release = fibers.hold()
    await world.advance(95)
    assert world.due() == START_MS + 120_000
    release()
    await world.advance(300)
    assert world.due() is None


@pytest.mark.behaviour("KA-008")
async def test_a_block_holds_on_and_lets_go_whether_it_succeeds_or_fails(world: World) -> None:
    agent = await world.open()
    async with agent.keep_alive():
        assert agent.fibers.holders == 1
    assert agent.fibers.holders == 0

    async def failing_block() -> None:
        async with agent.keep_alive():
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await failing_block()
    assert (agent.fibers.holders, world.due()) == (0, None)


@pytest.mark.behaviour("KA-009")
async def test_sub_agents_hold_on_to_their_root(world: World) -> None:
    root = (await world.open()).fibers
    one, other = (await world.sub("one")).fibers, (await world.sub("one", "below")).fibers
    releases = [one.hold(), one.hold(), other.hold()]
    assert (root.holders, one.holders, other.holders) == (3, 2, 1)
    assert world.due() == NEAR
    assert other.busy() == "it is kept alive"
    for release in releases:
        release()
    assert (root.holders, one.holders, other.holders) == (0, 0, 0)
    assert world.due() is None


@pytest.mark.behaviour("KA-010")
async def test_a_sub_agents_hold_counts_once_and_ends_with_a_failing_block(world: World) -> None:
    root = (await world.open()).fibers
    child = await world.sub("child")
    kept = root.hold()
    release = child.fibers.hold()
    release()
    release()
    assert root.holders == 1

    async def failing_block() -> None:
        async with child.keep_alive():
            assert root.holders == 2
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await failing_block()
    assert root.holders == 1
    kept()


@pytest.mark.behaviour("D11", "KA-009")
async def test_a_sub_agent_that_dies_lets_go_of_its_root_after_one_more_alarm(
    world: World,
) -> None:
    root = (await world.open()).fibers
    child = await world.sub("child")
    release = child.fibers.hold()
    await world.die("child")
    assert (root.holders, world.due()) == (0, NEAR)
    release()
    assert root.holders == 0
    await world.advance(30)
    assert world.index.due_ms is None


@pytest.mark.behaviour("D11", "KA-009")
@pytest.mark.parametrize("names", [(), ("child",)])
async def test_a_root_that_dies_while_a_sub_agent_holds_on_is_opened_again(
    world: World, names: tuple[str, ...]
) -> None:
    child = await world.sub("child")
    child.fibers.hold()
    await world.die(*names)
    await world.crash()
    assert world.due() == NEAR
    await world.advance(30)
    assert (list(world.opened), world.due()) == ([world.path()], None)


@pytest.mark.behaviour("D11")
async def test_after_a_crash_the_alarm_comes_once_more_and_nobody_holds_on(world: World) -> None:
    (await world.open()).fibers.hold()
    await world.crash()
    assert world.due() == NEAR
    await world.advance(30)
    assert (await world.open()).fibers.holders == 0
    assert world.due() is None


async def test_the_next_sign_of_life_stays_near_when_the_wall_clock_is_set_back(
    world: World,
) -> None:
    fibers = (await world.open()).fibers
    release = fibers.hold()
    world.clock._start_ms -= 3_600_000
    await world.alarm.fire()
    assert world.due() == NEAR - 3_600_000
    release()


async def test_a_planned_scan_is_made_at_once_when_the_wall_clock_was_set_back(
    world: World,
) -> None:
    recovery = (await world.open()).fibers._recovery
    recovery.plan_at(START_MS + 200_000)
    world.clock._start_ms -= 3_600_000
    await world.alarm.fire()
    await quiet()
    assert recovery.next_due() is None
