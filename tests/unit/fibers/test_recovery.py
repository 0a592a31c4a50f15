"""Fibers whose process died: found, handed over once, kept while nobody can take them up."""

import asyncio
import logging
from itertools import pairwise
from pathlib import Path

import pytest

from ramet.core.options import AgentOptions
from ramet.fibers.policy import follow_up_ms
from ramet.fibers.records import InterruptedFiber
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import Silent, World, forever, no_result


async def failing(path: str, fiber: InterruptedFiber) -> object:
    raise OSError("not now")


class Gate:
    """A hook that waits until the test lets it go."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, path: str, fiber: InterruptedFiber) -> object:
        await self.open.wait()
        return None


def told(world: World) -> list[str]:
    return [fiber.id for _, fiber in world.told]


@pytest.mark.behaviour("FB-010", "FB-011", "FB-013", "FB-022", "OB-005")
async def test_an_interrupted_fiber_is_handed_over_once_before_on_start(world: World) -> None:
    agent = await world.open()

    async def work(fiber: object) -> None:
        agent.stash({"page": 3})
        await forever(agent)  # type: ignore[arg-type] # it only waits

    running = asyncio.create_task(agent.run_fiber("research", work))
    await quiet()
    (id,) = world.runs()
    await world.crash()
    running.cancel()
    world.clock.move(5)
    await world.open()
    await world.fire()
    assert world.told == [
        (
            "Root:r",
            InterruptedFiber(id=id, name="research", snapshot={"page": 3}, created_at=START_MS),
        )
    ]
    assert world.told[0][1].recovery_reason == "interrupted"
    assert world.runs() == []
    assert world.events()[2:] == [
        "fiber:recovery:detected",
        "fiber:run:interrupted",
        "fiber:recovery:attempt",
        "fiber:recovery:handled",
        "on_start",
    ]
    payload = {"fiberId": id, "fiberName": "research", "managed": False}
    assert [event[2] for event in world.log.events[2:-1]] == [
        payload,
        payload,
        payload,
        {**payload, "status": "user"},
    ]


@pytest.mark.behaviour("FB-010")
async def test_a_fiber_that_turns_up_later_is_found_on_the_next_alarm(world: World) -> None:
    await world.open()
    world.orphan("late")
    await world.fire()
    assert told(world) == ["late"]
    assert world.runs() == []


@pytest.mark.behaviour("FB-012")
async def test_a_fiber_of_this_process_is_never_recovered(world: World) -> None:
    agent = await world.open()
    world.orphan("old")
    world.hook = gate = Gate()
    done = asyncio.Event()

    async def work(fiber: object) -> None:
        await done.wait()

    before = asyncio.create_task(agent.run_fiber("before", work))
    await quiet()
    await world.fire()
    started = await agent.start_fiber("meanwhile", work)
    done.set()
    await before
    gate.open.set()
    await world.fire()
    assert told(world) == ["old"]
    settled = agent.inspect_fiber(started.fiber_id)
    assert settled is not None
    assert settled.status == "completed"


@pytest.mark.behaviour("FB-012")
async def test_a_managed_fiber_is_known_as_running_before_its_first_step(world: World) -> None:
    agent = await world.open()
    started = await agent.start_fiber("work", forever)
    await agent.fibers.recover()
    assert world.told == []
    assert world.runs() == [started.fiber_id]


@pytest.mark.behaviour("FB-014", "FB-018", "FB-022", "OB-005")
async def test_a_fiber_whose_hook_fails_is_kept_and_tried_again_later(world: World) -> None:
    world.orphan("kept", snapshot='{"page":3}')
    world.hook = failing
    agent = await world.open()
    assert world.runs() == ["kept"]
    assert world.events()[-2] == "fiber:recovery:failed"
    assert world.log.events[-2][2]["reason"] == "handler_error"
    assert [str(error) for _, error in world.log.errors] == ["not now"]
    assert world.due() is not None
    assert agent.fibers.busy() == "interrupted fibers wait for recovery"
    world.hook = no_result
    await world.advance(60)
    assert [fiber.snapshot for _, fiber in world.told] == [{"page": 3}] * 2
    assert world.runs() == []
    assert world.due() is None
    assert agent.fibers.busy() is None


@pytest.mark.behaviour("FB-014")
async def test_one_hook_that_fails_keeps_no_other_fiber_waiting(world: World) -> None:
    for id in ("a", "b", "c"):
        world.orphan(id)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        if fiber.id == "b":
            raise asyncio.CancelledError
        return None

    world.hook = hook
    await world.open()
    assert told(world) == ["a", "b", "c"]
    assert world.runs() == ["b"]


@pytest.mark.behaviour("FB-015", "OB-005")
async def test_a_fiber_that_cannot_be_recovered_is_given_up_after_a_day(world: World) -> None:
    world.orphan("old")
    world.clock.move(86_400)
    world.hook = failing
    await world.open()
    assert world.runs() == ["old"]
    await world.advance(301)
    assert told(world) == ["old", "old"]
    assert world.runs() == []
    skipped = world.log.named("fiber:recovery:skipped")
    assert [event["reason"] for event in skipped] == ["max_age_exceeded"]
    await world.advance(600)
    assert world.due() is None


@pytest.mark.behaviour("FB-015")
async def test_an_old_fiber_is_recovered_all_the_same_if_its_hook_can(world: World) -> None:
    world.orphan("old")
    world.clock.move(400_000)
    await world.open()
    assert told(world) == ["old"]
    assert world.log.named("fiber:recovery:skipped") == []


@pytest.mark.behaviour("FB-015")
async def test_without_a_longest_age_a_fiber_is_kept_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path, options=AgentOptions(fiber_recovery_max_age=0))
    world.orphan("old")
    world.clock.move(400_000)
    world.hook = failing
    await world.open()
    assert world.runs() == ["old"]
    await world.close()


@pytest.mark.behaviour("FB-016")
async def test_a_snapshot_that_cannot_be_read_is_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.orphan("broken", snapshot="{oops")
    await world.open()
    assert [fiber.snapshot for _, fiber in world.told] == [None]
    assert "The snapshot of the fiber broken cannot be read" in caplog.text


@pytest.mark.behaviour("FB-017")
async def test_a_scan_stops_at_its_deadline_and_a_later_alarm_goes_on(world: World) -> None:
    for id in ("a", "b", "c"):
        world.orphan(id)

    async def slow(path: str, fiber: InterruptedFiber) -> object:
        world.clock.move(11)
        return None

    world.hook = slow
    await world.open()
    assert told(world) == ["a"]
    skipped = world.log.named("fiber:recovery:skipped")
    assert [(event["fiberId"], event["reason"]) for event in skipped] == [
        ("b", "scan_deadline_exceeded")
    ]
    assert world.due() == world.clock.now_ms() + 30_000
    world.hook = no_result
    await world.advance(30)
    assert told(world) == ["a", "b", "c"]


@pytest.mark.behaviour("FB-017")
async def test_a_slow_fiber_that_always_fails_does_not_starve_the_others(world: World) -> None:
    for id in ("slow", "next"):
        world.orphan(id)

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        if fiber.id == "slow":
            world.clock.move(11)
            raise OSError("not now")
        return None

    world.hook = hook
    await world.open()
    await world.advance(60)
    assert told(world) == ["slow", "next", "slow"]


@pytest.mark.behaviour("FB-018", "FB-019")
async def test_scans_without_progress_come_ever_more_seldom(world: World) -> None:
    world.orphan("stuck")
    moments: list[float] = []

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        moments.append(world.clock.monotonic())
        raise OSError("not now")

    world.hook = hook
    await world.open()
    await world.advance(1_500)
    waits = [after - before for before, after in pairwise(moments)]
    assert waits == [60, 120, 240, 300, 300, 300]


@pytest.mark.behaviour("FB-019")
async def test_a_fiber_that_is_resolved_makes_the_next_scan_come_soon_again(world: World) -> None:
    world.orphan("stuck")

    async def hook(path: str, fiber: InterruptedFiber) -> object:
        if fiber.id == "stuck":
            raise OSError("not now")
        return None

    world.hook = hook
    await world.open()
    await world.advance(60 + 120)
    world.orphan("other")
    await world.advance(240)
    assert told(world)[-2:] == ["other", "stuck"]
    assert world.due() == world.clock.now_ms() + 30_000


@pytest.mark.behaviour("FB-019")
def test_the_wait_is_bounded_however_many_scans_came_to_nothing() -> None:
    waits = [follow_up_ms(interval=0.001, scans_without_progress=n) for n in (0, 4, 18, 20, 10**9)]
    assert waits == [1, 16, 2**18, 300_000, 300_000]
    assert follow_up_ms(interval=30, scans_without_progress=4) == 300_000


@pytest.mark.behaviour("FB-019")
async def test_another_features_alarm_does_not_cut_the_wait_short(world: World) -> None:
    world.orphan("stuck")
    world.hook = failing
    await world.open()
    world.other_due = START_MS + 10_000
    world.alarm.rearm()
    await world.advance(59)
    assert told(world) == ["stuck"]


@pytest.mark.behaviour("FB-020")
async def test_a_scan_under_way_makes_another_return_at_once(world: World) -> None:
    await world.open()
    world.orphan("one")
    world.hook = gate = Gate()
    await world.fire()
    await world.fire()
    agent = await world.open()
    assert await agent.fibers.recover_for_root() == {"one"}
    assert told(world) == ["one"]
    gate.open.set()
    await quiet()
    assert (world.runs(), world.index.due_ms) == ([], None)


async def test_a_long_hook_holds_up_no_alarm_and_is_found_again_after_a_crash(
    world: World,
) -> None:
    await world.open()
    world.orphan("one")
    world.hook = Gate()
    await world.fire()
    assert world.due() == START_MS + 30_000
    world.other_due = START_MS + 10_000
    world.alarm.rearm()
    await world.advance(65)
    assert world.others_run == 1
    assert world.due() == START_MS + 70_000
    await world.crash()
    world.hook = no_result
    await world.advance(5)
    assert told(world) == ["one", "one"]
    assert world.runs() == []


@pytest.mark.behaviour("FB-021", "FB-022")
async def test_a_fiber_of_the_framework_does_not_reach_the_users_hook(world: World) -> None:
    async def handler(fiber: InterruptedFiber) -> bool:
        return fiber.name.startswith("cf:")

    world.handlers = (handler,)
    world.orphan("ours", name="cf:turn")
    world.orphan("theirs")
    await world.open()
    assert told(world) == ["theirs"]
    statuses = [event["status"] for event in world.log.named("fiber:recovery:handled")]
    assert statuses == ["internal", "user"]


@pytest.mark.behaviour("FB-021", "D37")
async def test_only_the_frameworks_handling_has_a_limit(world: World) -> None:
    async def handler(fiber: InterruptedFiber) -> bool:
        if fiber.id == "ours":
            await asyncio.get_running_loop().create_future()
        return False

    async def slow(path: str, fiber: InterruptedFiber) -> object:
        await world.clock.sleep(3_000)
        return None

    world.handlers = (handler,)
    world.hook = slow
    await world.open()
    world.orphan("ours")
    world.orphan("theirs")
    await world.fire()
    await world.advance(11)
    assert world.runs() == ["ours", "theirs"]
    assert isinstance(world.log.errors[0][1], TimeoutError)
    assert told(world) == ["theirs"]
    await world.advance(2_998)
    assert world.runs() == ["ours", "theirs"]
    await world.advance(1)
    assert world.runs() == ["ours"]


@pytest.mark.behaviour("FB-023")
async def test_an_agent_without_the_hook_logs_and_lets_the_fiber_go(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def default(path: str, fiber: InterruptedFiber) -> object:
        return Silent().on_fiber_recovered(fiber)

    world.hook = default
    world.orphan("lonely", name="research")
    await world.open()
    assert "The fiber 'research' (lonely) was interrupted; nobody takes it up" in caplog.text
    assert world.runs() == []


@pytest.mark.behaviour("D11", "D14")
async def test_a_hook_that_an_instances_death_ends_is_called_again(world: World) -> None:
    await world.open()
    world.orphan("one")
    world.hook = Gate()
    await world.fire()
    assert (await world.open()).fibers.busy() == "interrupted fibers wait for recovery"
    await world.crash()
    assert world.runs() == ["one"]
    assert world.log.errors == []
    world.hook = no_result
    await world.open()
    assert told(world) == ["one", "one"]
