"""Plain fibers: a row while they run, a snapshot that is durable when `stash` returns."""

import asyncio

import pytest

from ramet.core.json import NotJson
from ramet.core.options import AgentOptions
from ramet.errors import InstanceGone, InvalidArguments, InvalidOptions, NoCurrentFiber
from ramet.fibers.policy import unwrapped
from ramet.fibers.records import FiberContext, FrameworkSnapshot
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import World, forever

SNAPSHOTS = "SELECT name, snapshot FROM cf_agents_runs ORDER BY name"


@pytest.mark.behaviour("FB-001", "FB-002", "FB-004")
async def test_a_fiber_has_a_row_and_holds_on_exactly_while_it_runs(world: World) -> None:
    agent = await world.open()
    seen: list[object] = []

    async def work(fiber: FiberContext) -> str:
        row = {"id": fiber.id, "name": "work", "snapshot": None, "created_at": START_MS}
        assert world.rows("SELECT * FROM cf_agents_runs") == [row]
        seen.append((fiber.snapshot, fiber.signal.aborted, agent.fibers.holders))
        seen.append(agent.fibers.busy())
        return "done"

    assert await agent.run_fiber("work", work) == "done"
    assert seen == [(None, False, 1), "a fiber is running"]
    assert world.runs() == []
    assert agent.fibers.holders == 0
    assert agent.fibers.busy() is None
    assert world.due() is None


@pytest.mark.behaviour("FB-003", "FB-009", "OB-005")
async def test_what_a_fiber_raises_reaches_its_caller_and_nothing_is_tried_again(
    world: World,
) -> None:
    agent = await world.open()
    calls = 0

    async def work(fiber: FiberContext) -> None:
        nonlocal calls
        calls += 1
        world.clock.move(2)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        await agent.run_fiber("work", work)
    await world.advance(3_600)
    assert (calls, world.runs(), agent.fibers.holders) == (1, [], 0)
    started, failed = world.log.events[1:]
    told = {"fiberId": started[2]["fiberId"], "fiberName": "work", "managed": False}
    assert started[1:] == ("fiber:run:started", told)
    assert failed[1:] == ("fiber:run:failed", {**told, "error": "no luck", "elapsedMs": 2_000})


@pytest.mark.behaviour("FB-003")
async def test_a_cancelled_caller_ends_its_fiber(world: World) -> None:
    agent = await world.open()
    caller = asyncio.create_task(agent.run_fiber("work", forever))
    await quiet()
    assert len(world.runs()) == 1
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (world.runs(), agent.fibers.holders) == ([], 0)


@pytest.mark.behaviour("FB-009", "OB-005")
async def test_observers_are_told_of_a_fiber_that_returns(world: World) -> None:
    agent = await world.open()

    async def work(fiber: FiberContext) -> None:
        world.clock.move(1.5)

    await agent.run_fiber("work", work)
    assert world.events()[1:] == ["fiber:run:started", "fiber:run:completed"]
    assert world.log.events[-1][2]["elapsedMs"] == 1_500


@pytest.mark.behaviour("FB-005")
async def test_a_stash_is_on_disk_when_it_returns_and_the_last_one_wins(world: World) -> None:
    agent = await world.open()

    async def work(fiber: FiberContext) -> None:
        fiber.stash({"step": 1, "old": True})
        assert world.rows(SNAPSHOTS)[0]["snapshot"] == '{"step":1,"old":true}'
        fiber.stash({"step": 2})
        assert world.rows(SNAPSHOTS)[0]["snapshot"] == '{"step":2}'

    await agent.run_fiber("work", work)


@pytest.mark.behaviour("FB-005")
@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            {"what": b"tea"},
            "The stash of the fiber 'work' is not JSON: {'what': b'tea'} "
            "(Type is not JSON serializable: bytes)",
        ),
        (
            [float("nan")],
            "The stash of the fiber 'work' is not JSON: [nan] (nan is not a JSON number)",
        ),
    ],
)
async def test_a_stash_that_cannot_be_stored_is_refused_and_the_one_before_stays(
    world: World, data: object, sentence: str
) -> None:
    agent = await world.open()

    async def work(fiber: FiberContext) -> None:
        fiber.stash("before")
        for stash in (fiber.stash, agent.stash):
            with pytest.raises(NotJson) as caught:
                stash(data)
            assert str(caught.value) == sentence
        assert world.rows(SNAPSHOTS)[0]["snapshot"] == '"before"'

    await agent.run_fiber("work", work)


@pytest.mark.behaviour("FB-006", "FB-007")
async def test_interleaving_fibers_have_rows_and_snapshots_of_their_own(world: World) -> None:
    agent = await world.open()
    turns = [asyncio.Event() for _ in range(2)]
    both, arrived = asyncio.Event(), list[str]()

    def stored() -> dict[str, object]:
        return {row["name"]: row["snapshot"] for row in world.rows(SNAPSHOTS)}

    async def work(name: str, mine: asyncio.Event, other: asyncio.Event) -> None:
        async def steps(fiber: FiberContext) -> None:
            agent.stash(f"{name} 1")
            other.set()
            await mine.wait()
            assert stored()[name] == f'"{name} 1"'
            agent.stash(f"{name} 2")
            arrived.append(name)
            if len(arrived) == 2:
                both.set()
            await both.wait()
            assert stored() == {"a": '"a 2"', "b": '"b 2"'}
            await asyncio.gather(nested())

        async def nested() -> None:
            agent.stash(f"{name} 3")
            assert stored()[name] == f'"{name} 3"'

        await agent.run_fiber(name, steps)

    await asyncio.gather(work("a", *turns), work("b", *reversed(turns)))
    assert world.runs() == []


@pytest.mark.behaviour("FB-006")
async def test_a_nested_fiber_takes_the_stash_until_it_is_over(world: World) -> None:
    agent = await world.open()

    async def inner(fiber: FiberContext) -> None:
        agent.stash("inner")
        rows = {row["name"]: row["snapshot"] for row in world.rows(SNAPSHOTS)}
        assert rows == {"outer": '"outer"', "inner": '"inner"'}

    async def outer(fiber: FiberContext) -> None:
        agent.stash("outer")
        await agent.run_fiber("inner", inner)
        agent.stash("outer again")
        assert world.rows(SNAPSHOTS) == [{"name": "outer", "snapshot": '"outer again"'}]

    await agent.run_fiber("outer", outer)


@pytest.mark.behaviour("FB-006")
async def test_outside_a_fiber_there_is_nothing_to_stash_in(world: World) -> None:
    agent = await world.open()
    other = await world.sub("child")
    kept: list[FiberContext] = []

    async def work(fiber: FiberContext) -> None:
        kept.append(fiber)
        with pytest.raises(NoCurrentFiber):
            other.stash("of another agent")

    with pytest.raises(NoCurrentFiber) as caught:
        agent.stash(1)
    assert str(caught.value) == "stash() was called outside a fiber: there is nothing to keep it"
    await agent.run_fiber("work", work)
    with pytest.raises(NoCurrentFiber) as caught:
        kept[0].stash("too late")
    assert str(caught.value) == "The fiber 'work' is over: nothing keeps its stash"


@pytest.mark.behaviour("FB-008")
async def test_the_frameworks_part_of_a_snapshot_is_there_first_and_stays_its_own(
    world: World,
) -> None:
    agent = await world.open()
    go_on = asyncio.Event()

    async def turn(fiber: FiberContext) -> None:
        assert world.rows(SNAPSHOTS)[0]["snapshot"] == '{"chat":{"turn":7},"user":null}'
        agent.stash({"page": 2})
        await go_on.wait()

    frame = FrameworkSnapshot(key="chat", value={"turn": 7})
    own = asyncio.create_task(agent.fibers.runner.run("cf:turn", turn, frame=frame))
    await quiet()

    async def plain(fiber: FiberContext) -> None:
        agent.stash({"page": 3})
        assert [row["snapshot"] for row in world.rows(SNAPSHOTS)] == [
            '{"chat":{"turn":7},"user":{"page":2}}',
            '{"page":3}',
        ]

    await agent.run_fiber("plain", plain)
    go_on.set()
    await own
    assert unwrapped({"chat": {"turn": 7}, "user": {"page": 2}}, "chat") == (
        {"turn": 7},
        {"page": 2},
    )
    assert unwrapped({"page": 3}, "chat") is None
    assert unwrapped({"chat": 1, "user": 2, "more": 3}, "chat") is None


@pytest.mark.behaviour("D6")
async def test_what_wakes_is_written_before_the_row_it_is_for(world: World) -> None:
    agent = await world.open()
    order: list[object] = []
    world.index.on_set = lambda: order.append((world.due(), len(world.runs())))

    async def work(fiber: FiberContext) -> None:
        order.append("runs")

    await agent.run_fiber("work", work)
    assert order == [(START_MS + 30_000, 0), "runs", (None, 0)]


@pytest.mark.behaviour("D11")
async def test_the_death_of_the_instance_leaves_the_row_and_the_alarm(world: World) -> None:
    agent = await world.open()
    caller = asyncio.create_task(agent.run_fiber("work", stash_and_wait))
    await quiet()
    await world.die()
    caller.cancel()
    await asyncio.wait({caller})
    assert [row["snapshot"] for row in world.rows(SNAPSHOTS)] == ['"so far"']
    assert world.due() == START_MS + 30_000
    assert agent.fibers.holders == 0
    with pytest.raises(InstanceGone):
        await agent.run_fiber("more", forever)
    assert len(world.runs()) == 1


async def stash_and_wait(fiber: FiberContext) -> None:
    fiber.stash("so far")
    await forever(fiber)


async def test_work_that_cannot_be_run_is_refused_and_nothing_is_written(world: World) -> None:
    agent = await world.open()
    with pytest.raises(InvalidArguments) as caught:
        await agent.run_fiber(7, forever)  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == "A fiber's name is a text, not 7"
    with pytest.raises(InvalidArguments) as caught:
        await agent.run_fiber("work", "forever")  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == (
        "The fiber 'work' needs a function that takes its context, not 'forever'"
    )
    with pytest.raises(InvalidArguments):
        await agent.start_fiber("work", None)  # type: ignore[arg-type] # wrong on purpose
    assert (world.runs(), world.index.history) == ([], [])


@pytest.mark.parametrize("interval", [0, -1, float("inf"), float("nan")])
def test_a_sign_of_life_cannot_be_given_at_such_an_interval(interval: float) -> None:
    with pytest.raises(InvalidOptions, match="keep_alive_interval must be a positive number"):
        AgentOptions(keep_alive_interval=interval)


def test_an_option_that_is_a_whole_number_is_checked_too() -> None:
    with pytest.raises(InvalidOptions, match="fiber_recovery_max_age must be zero or more"):
        AgentOptions(fiber_recovery_max_age=-1)
