"""Managed fibers: a ledger that outlives them, found by id or key, never run twice."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ramet.core.json import NotJson
from ramet.errors import InstanceGone, InvalidArguments, NoCurrentFiber
from ramet.fibers.records import FiberContext, FiberInspection, StartedFiber
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.unit.fibers.world import World, forever

LEDGER = "SELECT * FROM cf_agents_fibers ORDER BY rowid"


async def quick(fiber: FiberContext) -> str:
    fiber.stash({"done": True})
    return "not kept"


class Stubborn:
    """Work that does not end when it is cancelled."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.seen: list[object] = []

    async def __call__(self, fiber: FiberContext) -> None:
        fiber.signal.add_listener(self.seen.append)
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.seen.append("cancelled")
        try:
            fiber.stash("late")
        except NoCurrentFiber as error:
            self.seen.append(str(error))


@pytest.mark.behaviour("FB-024", "FB-025", "FB-029", "FB-030")
async def test_a_managed_fiber_runs_in_the_background_and_its_ledger_row_stays(
    world: World,
) -> None:
    agent = await world.open()
    started = await agent.start_fiber(
        "work", quick, fiber_id="f", idempotency_key="k", metadata={"for": "you"}
    )
    assert started == StartedFiber(
        accepted=True,
        fiber_id="f",
        name="work",
        status="pending",
        created_at=START_MS,
        idempotency_key="k",
        metadata={"for": "you"},
    )
    world.clock.move(1)
    await quiet()
    assert world.rows(LEDGER) == [
        {
            "fiber_id": "f",
            "idempotency_key": "k",
            "name": "work",
            "status": "completed",
            "snapshot": '{"done":true}',
            "metadata_json": '{"for":"you"}',
            "error_message": None,
            "created_at": START_MS,
            "started_at": START_MS + 1_000,
            "completed_at": START_MS + 1_000,
        }
    ]
    assert agent.inspect_fiber("f") == FiberInspection(
        fiber_id="f",
        name="work",
        status="completed",
        created_at=START_MS,
        idempotency_key="k",
        snapshot={"done": True},
        metadata={"for": "you"},
        started_at=START_MS + 1_000,
        settled_at=START_MS + 1_000,
    )
    assert agent.inspect_fiber_by_key("k") == agent.inspect_fiber("f")
    assert (agent.inspect_fiber("x"), agent.inspect_fiber_by_key("x")) == (None, None)
    assert (world.runs(), agent.fibers.holders) == ([], 0)
    assert world.events("f") == ["fiber:run:started", "fiber:run:completed"]


@pytest.mark.behaviour("FB-025", "D14")
async def test_a_managed_fiber_holds_on_while_it_runs(world: World) -> None:
    agent = await world.open()
    started = await agent.start_fiber("work", forever)
    assert (agent.fibers.holders, agent.fibers.busy()) == (1, "a fiber is running")
    await quiet()
    found = agent.inspect_fiber(started.fiber_id)
    assert found is not None
    assert found.status == "running"
    assert (world.runs(), len(started.fiber_id)) == ([started.fiber_id], 12)


@pytest.mark.behaviour("FB-026", "FB-033")
async def test_a_second_start_with_the_same_id_or_key_finds_the_first(world: World) -> None:
    agent = await world.open()

    async def never(fiber: FiberContext) -> None:
        raise AssertionError("run twice")

    first = await agent.start_fiber("work", quick, idempotency_key="k")
    again = await agent.start_fiber("work", never, idempotency_key="k")
    assert (again.accepted, again.fiber_id, again.status) == (False, first.fiber_id, "pending")
    await quiet()
    for given in ({"fiber_id": first.fiber_id}, {"idempotency_key": "k"}):
        later = await agent.start_fiber("work", never, wait=True, **given)
        assert (later.accepted, later.fiber_id, later.status) == (
            False,
            first.fiber_id,
            "completed",
        )


@pytest.mark.behaviour("FB-027", "FB-028")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"fiber_id": ""}, "fiber_id must be a text that is not blank, not ''"),
        ({"fiber_id": " \n"}, "fiber_id must be a text that is not blank, not ' \\n'"),
        ({"idempotency_key": "\t"}, "idempotency_key must be a text that is not blank, not '\\t'"),
        ({"fiber_id": 7}, "fiber_id must be a text that is not blank, not 7"),
        (
            {"fiber_id": "two", "idempotency_key": "key 1"},
            "The idempotency key 'key 1' belongs to the fiber 'one', not to 'two'",
        ),
        (
            {"fiber_id": "new", "idempotency_key": "key 1"},
            "The idempotency key 'key 1' belongs to the fiber 'one', not to 'new'",
        ),
        (
            {"fiber_id": "one", "idempotency_key": "other"},
            "The fiber 'one' has the idempotency key 'key 1', not 'other'",
        ),
    ],
)
async def test_ids_that_are_blank_or_contradict_each_other_are_refused(
    world: World, given: dict[str, Any], sentence: str
) -> None:
    agent = await world.open()
    await agent.start_fiber("work", quick, fiber_id="one", idempotency_key="key 1", wait=True)
    await agent.start_fiber("work", quick, fiber_id="two", idempotency_key="key 2", wait=True)
    before = world.rows(LEDGER)
    with pytest.raises(InvalidArguments) as caught:
        await agent.start_fiber("work", quick, **given)
    await quiet()
    assert str(caught.value) == sentence
    assert (world.rows(LEDGER), world.runs(), agent.fibers.holders) == (before, [], 0)


async def test_metadata_that_is_not_json_is_refused_and_nothing_is_written(world: World) -> None:
    agent = await world.open()
    with pytest.raises(NotJson) as caught:
        await agent.start_fiber("work", quick, metadata={"at": float("inf")})
    assert str(caught.value) == (
        "The metadata of the fiber 'work' is not JSON: {'at': inf} (inf is not a JSON number)"
    )
    assert (world.rows(LEDGER), world.index.history) == ([], [])


@pytest.mark.behaviour("FB-031")
async def test_what_a_managed_fiber_raises_is_its_error(world: World) -> None:
    agent = await world.open()

    async def fails(fiber: FiberContext) -> None:
        fiber.stash("so far")
        raise ValueError("no luck")

    ended = await agent.start_fiber("work", fails, fiber_id="f", wait=True)
    assert (ended.status, ended.error, ended.snapshot) == ("error", "no luck", "so far")
    assert [str(error) for _, error in world.log.errors] == ["no luck"]
    assert world.events("f") == ["fiber:run:started", "fiber:run:failed"]
    assert world.runs() == []


@pytest.mark.behaviour("FB-031")
async def test_an_id_that_another_run_has_makes_an_error_and_nothing_runs(world: World) -> None:
    agent = await world.open()
    world.orphan("taken")
    calls: list[object] = []

    async def work(fiber: FiberContext) -> None:
        calls.append(fiber)

    refused = await agent.start_fiber("other", work, fiber_id="taken", wait=True)
    await quiet()
    assert (refused.accepted, refused.status) == (True, "error")
    assert refused.error == "Another fiber has the id 'taken'"
    assert (calls, world.runs(), agent.fibers.holders) == ([], ["taken"], 0)


@pytest.mark.behaviour("FB-032")
async def test_duplicates_that_wait_join_the_one_that_runs(world: World) -> None:
    agent = await world.open()
    done = asyncio.Event()

    async def work(fiber: FiberContext) -> None:
        await done.wait()

    waiting = [
        asyncio.create_task(agent.start_fiber("work", work, idempotency_key="k", wait=True))
        for _ in range(3)
    ]
    await quiet()
    waiting.pop().cancel()
    await quiet()
    done.set()
    first, second = await asyncio.gather(*waiting)
    assert (first.accepted, second.accepted) == (True, False)
    assert first.fiber_id == second.fiber_id
    assert (first.status, second.status) == ("completed", "completed")
    assert agent.fibers.holders == 0


async def test_a_waiter_gets_the_outcome_even_if_the_fiber_is_deleted_at_once(
    world: World,
) -> None:
    agent = await world.open()
    waiting = asyncio.create_task(agent.start_fiber("work", forever, fiber_id="f", wait=True))
    await quiet()
    await agent.cancel_fiber("f", "enough")
    assert agent.delete_fibers() == 1
    assert (await waiting).error == "enough"


async def test_a_fiber_does_not_wait_for_itself(world: World) -> None:
    agent = await world.open()

    async def work(fiber: FiberContext) -> None:
        await agent.start_fiber("work", work, fiber_id="f", wait=True)

    ended = await agent.start_fiber("work", work, fiber_id="f", wait=True)
    assert (ended.status, ended.error) == ("error", "The fiber 'work' would wait for itself")


@pytest.mark.behaviour("FB-035")
async def test_a_cancelled_fiber_is_over_at_once_and_its_late_end_changes_nothing(
    world: World,
) -> None:
    agent = await world.open()
    work = Stubborn()
    waiting = asyncio.create_task(
        agent.start_fiber("work", work, fiber_id="f", idempotency_key="k", wait=True)
    )
    await quiet()
    assert await agent.cancel_fiber("f", "enough") is True
    aborted = await waiting
    assert (aborted.status, aborted.error) == ("aborted", "enough")
    assert world.runs() == []
    before = world.rows(LEDGER)
    await quiet()
    assert agent.fibers.busy() == "a fiber is running"
    work.go_on.set()
    world.clock.move(5)
    await quiet()
    assert work.seen == [
        "enough",
        "cancelled",
        "The fiber 'work' is over: nothing keeps its stash",
    ]
    assert world.rows(LEDGER) == before
    assert world.events("f")[-1] == "fiber:run:failed"
    assert world.log.events[-1][2]["error"] == "enough"
    assert (agent.fibers.busy(), agent.fibers.holders) == (None, 0)


@pytest.mark.behaviour("FB-035", "FB-036")
async def test_a_fiber_is_cancelled_before_its_first_step_and_only_once(world: World) -> None:
    agent = await world.open()
    await agent.start_fiber("work", forever, fiber_id="f", idempotency_key="k")
    assert await agent.cancel_fiber_by_key("k") is True
    await quiet()
    found = agent.inspect_fiber("f")
    assert found is not None
    assert (found.status, found.error, found.started_at) == ("aborted", None, None)
    assert (world.runs(), agent.fibers.holders, world.due()) == ([], 0, None)
    assert await agent.cancel_fiber("f") is False
    assert await agent.cancel_fiber_by_key("k") is False
    assert await agent.cancel_fiber("unknown") is False
    assert await agent.cancel_fiber_by_key("unknown") is False


@pytest.mark.behaviour("FB-035")
async def test_a_completion_that_comes_before_the_cancellation_stands(world: World) -> None:
    agent = await world.open()
    done = asyncio.Event()

    async def work(fiber: FiberContext) -> None:
        await done.wait()

    waiting = asyncio.create_task(agent.start_fiber("work", work, fiber_id="f", wait=True))
    await quiet()
    done.set()
    cancelling = asyncio.create_task(agent.cancel_fiber("f", "too late"))
    assert await cancelling is False
    ended = await waiting
    assert (ended.status, ended.error) == ("completed", None)


@pytest.mark.behaviour("FB-036")
async def test_a_plain_fiber_cannot_be_cancelled_by_its_id(world: World) -> None:
    agent = await world.open()
    running = asyncio.create_task(agent.run_fiber("plain", forever))
    await quiet()
    (id,) = world.runs()
    assert await agent.cancel_fiber(id) is False
    assert world.runs() == [id]
    running.cancel()
    await asyncio.wait({running})


@pytest.mark.behaviour("FB-035")
async def test_an_old_task_does_not_touch_the_fiber_that_took_its_id(world: World) -> None:
    agent = await world.open()
    old = Stubborn()
    await agent.start_fiber("old", old, fiber_id="f")
    await quiet()
    await agent.cancel_fiber("f")
    agent.delete_fibers()
    await agent.start_fiber("new", forever, fiber_id="f")
    old.go_on.set()
    await quiet()
    found = agent.inspect_fiber("f")
    assert found is not None
    assert (found.name, found.status, found.snapshot) == ("new", "running", None)
    assert (world.runs(), agent.fibers.holders) == (["f"], 1)
    await agent.fibers.recover()
    assert world.told == []
    assert await agent.cancel_fiber("f") is True


@pytest.mark.behaviour("FB-035")
async def test_an_id_may_be_used_again_before_the_cancelled_task_has_ended(world: World) -> None:
    agent = await world.open()
    await agent.start_fiber("old", forever, fiber_id="f")
    await quiet()
    await agent.cancel_fiber("f")
    agent.delete_fibers()
    await agent.start_fiber("new", forever, fiber_id="f")
    await quiet()
    found = agent.inspect_fiber("f")
    assert found is not None
    assert (found.name, found.status) == ("new", "running")
    assert agent.fibers.holders == 1


@pytest.mark.behaviour("FB-035")
async def test_a_fiber_may_cancel_itself(world: World) -> None:
    agent = await world.open()
    reached: list[str] = []

    async def work(fiber: FiberContext) -> None:
        await agent.cancel_fiber(fiber.id, "by itself")
        await world.clock.sleep(0)
        reached.append("the end")

    ended = await agent.start_fiber("work", work, wait=True)
    await quiet()
    assert (ended.status, ended.error, reached) == ("aborted", "by itself", ["the end"])


@pytest.mark.behaviour("FB-037")
async def test_fibers_are_listed_the_newest_first_up_to_a_limit(world: World) -> None:
    agent = await world.open()
    for number in range(60):
        await agent.start_fiber("work", quick, fiber_id=f"f{number:02}", wait=True)
        if number % 2:
            world.clock.move(1)
    await agent.start_fiber("work", forever, fiber_id="g")
    listed = [fiber.fiber_id for fiber in agent.list_fibers()]
    assert listed[:4] == ["g", "f59", "f58", "f57"]
    assert len(listed) == 50
    assert len(agent.list_fibers(limit=1_000)) == 61
    with pytest.raises(InvalidArguments, match="limit is a whole number, 1 or more, not 0"):
        agent.list_fibers(limit=0)
    assert [fiber.fiber_id for fiber in agent.list_fibers(status=["pending", "error"])] == ["g"]
    assert len(agent.list_fibers(status="completed", limit=7)) == 7
    with pytest.raises(InvalidArguments, match="'done' is not one of the statuses aborted, "):
        agent.list_fibers(status="done")


def ledger_row(world: World, id: str, *, status: str, completed_at: int | None) -> None:
    world.write(
        "INSERT INTO cf_agents_fibers (fiber_id, name, status, created_at, completed_at)"
        " VALUES (?, 'work', ?, 0, ?)",
        id,
        status,
        completed_at,
    )


@pytest.mark.behaviour("FB-038")
async def test_settled_fibers_are_deleted_the_longest_settled_first(world: World) -> None:
    for number, status in enumerate(("completed", "aborted", "error", "interrupted")):
        ledger_row(world, status, status=status, completed_at=START_MS + number)
    agent = await world.open()
    await agent.start_fiber("work", forever, fiber_id="running")
    await quiet()
    second = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(milliseconds=1)
    assert agent.delete_fibers(settled_before=second) == 1
    assert world.rows(LEDGER)[0]["fiber_id"] == "aborted"
    assert agent.delete_fibers(limit=1) == 1
    assert [row["fiber_id"] for row in world.rows(LEDGER)] == ["error", "interrupted", "running"]
    assert agent.delete_fibers() == 1
    assert agent.delete_fibers(status=["running", "pending"]) == 0
    assert agent.delete_fibers(status=["interrupted", "running"]) == 1
    assert [row["fiber_id"] for row in world.rows(LEDGER)] == ["running"]


@pytest.mark.behaviour("FB-038", "D34")
async def test_the_limits_of_a_deletion(world: World) -> None:
    for number in range(620):
        ledger_row(world, f"f{number}", status="completed", completed_at=number)
    agent = await world.open()
    for none in (0, -1, 1.5, "5", True):
        with pytest.raises(InvalidArguments, match=f"1 or more, not {none!r}"):
            agent.delete_fibers(limit=none)  # type: ignore[arg-type] # wrong on purpose
    assert agent.delete_fibers(limit=1) == 1
    assert agent.delete_fibers() == 100
    assert agent.delete_fibers(limit=10_000) == 500
    for wrong in (datetime(2030, 1, 1), 5):  # noqa: DTZ001 - wrong on purpose
        with pytest.raises(InvalidArguments) as caught:
            agent.delete_fibers(settled_before=wrong)  # type: ignore[arg-type] # wrong on purpose
        assert str(caught.value) == (
            f"settled_before is a datetime with a time zone, not {wrong!r}"
        )
    assert len(world.rows(LEDGER)) == 19


@pytest.mark.behaviour("D11")
async def test_the_death_of_the_instance_settles_no_fiber(world: World) -> None:
    agent = await world.open()
    work = Stubborn()
    await agent.start_fiber("work", forever, fiber_id="f")
    await agent.start_fiber("work", work, fiber_id="g")
    await quiet()
    before = world.rows(LEDGER)
    await world.die()
    work.go_on.set()
    await quiet()
    assert world.rows(LEDGER) == before
    assert [row["status"] for row in before] == ["running", "running"]
    assert world.runs() == ["f", "g"]
    assert [type(error) for error in world.lost] == [InstanceGone]
    world.lost.clear()
