"""Schedules of sub-agents: kept by the root, carried out below it, gone with their owners."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet.core.current import current_agent
from ramet.errors import AgentNotRegistered, InstanceGone, InvalidSchedule
from ramet.schedules.records import Schedule
from ramet.testing.manual_clock import START_MS
from tests.support.ground import ROOT, Ground, Verbs

START = START_MS // 1000


class Room(Verbs):
    def __init__(self) -> None:
        self.calls: list[object] = []

    async def remind(self, payload: object, schedule: Schedule) -> None:
        self.calls.append((payload, current_agent() is self, str(self.path)))

    async def fail(self) -> None:
        self.calls.append("fail")
        raise ValueError("no")

    async def tick(self) -> None:
        self.calls.append(self.ground.clock.now_ms() - START_MS)


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground[Room]]:
    made = Ground(tmp_path, Room)
    await made.open()
    yield made
    await made.close()


@pytest.mark.behaviour("SC-001", "SC-040")
async def test_a_sub_agents_schedule_stands_in_the_root_with_its_path(ground: Ground[Room]) -> None:
    sub = await ground.sub(Room, "a")
    made = await sub.schedule(5, "remind", "x")
    [row] = ground.schedule_rows()
    assert row["id"] == made.id
    assert row["owner_path"] == row["owner_path_key"] == '[["Root","r"],["Sub","a"]]'
    path = ROOT.child("Sub", "a")
    assert ground.rows("SELECT * FROM cf_agents_schedules", path=path) == []
    await ground.advance(5)
    assert sub.calls == [("x", True, "Root:r/Sub:a")]
    assert ground.root.agent.calls == []
    assert ground.schedule_rows() == []


@pytest.mark.behaviour("SC-040", "SC-044")
async def test_a_closed_nested_sub_agent_is_opened_for_its_callback(ground: Ground[Room]) -> None:
    below = await ground.sub(Room, "a", "b")
    await below.schedule(60, "remind", "deep")
    await ground.crash()
    await ground.advance(60)
    found = ground.open_agents[ROOT.child("Sub", "a").child("Sub", "b")].agent
    assert found.calls == [("deep", True, "Root:r/Sub:a/Sub:b")]


@pytest.mark.behaviour("SC-041")
async def test_an_agent_sees_and_cancels_only_its_own(ground: Ground[Room]) -> None:
    one, other = await ground.sub(Room, "a"), await ground.sub(Room, "b")
    nested, root = await ground.sub(Room, "a", "b"), ground.root.agent
    agents = [root, one, other, nested]
    made = [await agent.schedule(60, "tick") for agent in agents]
    for agent, own in zip(agents, made, strict=True):
        assert await agent.list_schedules() == [own]
        for schedule in made:
            expected = schedule if schedule is own else None
            assert await agent.get_schedule(schedule.id) == expected
            if schedule is not own:
                assert await agent.cancel_schedule(schedule.id) is False
    assert len(ground.schedule_rows()) == 4
    assert await one.cancel_schedule(made[1].id) is True


@pytest.mark.behaviour("SC-009", "SC-012", "SC-043")
async def test_alike_schedules_of_siblings_are_separate(ground: Ground[Room]) -> None:
    one, other = await ground.sub(Room, "a"), await ground.sub(Room, "b")
    ids = [(await agent.schedule_every(60, "tick")).id for agent in (one, other, one)]
    assert ids[0] == ids[2] != ids[1]
    assert (await one.schedule("0 8 * * *", "tick")).id != (
        await other.schedule("0 8 * * *", "tick")
    ).id


@pytest.mark.behaviour("SC-045", "SC-048")
async def test_deleting_an_agent_removes_its_schedules_and_those_below_it(
    ground: Ground[Room],
) -> None:
    gone, below = await ground.sub(Room, "a"), await ground.sub(Room, "a", "x")
    kept = await ground.sub(Room, "b")
    ids = [(await agent.schedule(60, "tick")).id for agent in (gone, below)]
    await kept.schedule(60, "tick")
    await ground.root.agent.schedule(60, "tick")
    ground.delete("a")
    rows = ground.schedule_rows()
    assert [row["owner_path"] for row in rows] == ['[["Root","r"],["Sub","b"]]', None]
    cancelled = [event for event in ground.log.events if event[1] == "schedule:cancel"]
    assert {whose for whose, *_ in cancelled} == {"Root:r"}
    assert sorted(str(payload["id"]) for *_, payload in cancelled) == sorted(ids)


NAMES = ["a", "a/b", "a%", "a%2Fb", 'a"],["Sub","b', "a,", "a]", "a_", "*", "ä", "", "A", "a-"]


@pytest.mark.behaviour("SC-045")
@pytest.mark.parametrize("name", NAMES)
async def test_names_match_only_themselves(ground: Ground[Room], name: str) -> None:
    for each in NAMES:
        agent = await ground.sub(Room, each)
        await agent.schedule(60, "remind", each)
    nested = await ground.sub(Room, name, "b")
    await nested.schedule(60, "remind", "nested")
    ground.delete(name)
    left = {row["payload"] for row in ground.schedule_rows()}
    assert len(left) == len(NAMES) - 1
    await ground.advance(60)
    called = [
        payload for opened in ground.open_agents.values() for payload, _, _ in opened.agent.calls
    ]
    assert sorted(called) == sorted(set(NAMES) - {name})


@pytest.mark.behaviour("SC-046", "SC-048")
@pytest.mark.parametrize("kind", ["delayed", "interval"])
async def test_rows_of_an_agent_that_is_not_registered_are_pruned(
    ground: Ground[Room], kind: str
) -> None:
    gone, below = await ground.sub(Room, "a"), await ground.sub(Room, "a", "x")
    await (gone.schedule_every(5, "tick") if kind == "interval" else gone.schedule(5, "tick"))
    await below.schedule(500, "tick")
    await ground.root.agent.schedule(500, "tick")
    await ground.crash()
    ground.registered.clear()
    await ground.advance(60)
    assert [row["owner_path"] for row in ground.schedule_rows()] == [None]
    assert len(ground.log.named("schedule:cancel")) == 2
    assert ground.log.errors == []
    assert ground.due_ms() == (START + 500) * 1000


@pytest.mark.behaviour("SC-048", "SC-014")
async def test_a_sub_agent_tells_of_its_own_schedules(ground: Ground[Room]) -> None:
    sub = await ground.sub(Room, "a")
    made = await sub.schedule(5, "tick")
    await sub.cancel_schedule(made.id)
    told = {"callback": "tick", "id": made.id}
    assert ground.log.events == [
        ("Root:r/Sub:a", "schedule:create", told),
        ("Root:r/Sub:a", "schedule:cancel", told),
    ]


@pytest.mark.behaviour("SC-016", "SC-023")
async def test_a_callback_that_fails_below_the_root_is_retried_and_reported_there(
    ground: Ground[Room],
) -> None:
    sub = await ground.sub(Room, "a")
    await sub.schedule(5, "fail")
    await ground.advance(30)
    assert sub.calls == ["fail"] * 3
    assert ground.schedule_rows() == []
    assert {whose for whose, *_ in ground.log.events} == {"Root:r/Sub:a"}
    assert [(whose, str(error)) for whose, error in ground.log.errors] == [("Root:r/Sub:a", "no")]


@pytest.mark.behaviour("SC-049")
@pytest.mark.parametrize("error", [OSError("disk"), AgentNotRegistered("no class Sub")])
@pytest.mark.parametrize("kind", ["delayed", "interval"])
async def test_a_row_whose_owner_cannot_be_reached_is_kept_and_tried_again(
    ground: Ground[Room], error: Exception, kind: str
) -> None:
    sub = await ground.sub(Room, "a")
    made = await (sub.schedule_every(5, "tick") if kind == "interval" else sub.schedule(5, "tick"))
    ground.unreachable = error
    await ground.advance(5)
    [row] = ground.schedule_rows()
    assert (row["running"], row["time"]) == (0, START + 5)
    told = {"callback": "tick", "id": made.id, "error": str(error), "attempts": 0}
    assert ground.log.events[-1] == ("Root:r", "schedule:error", told)
    await ground.advance(600)
    tries = len(ground.log.named("schedule:error"))
    assert 9 <= tries <= 12
    ground.unreachable = None
    await ground.advance(300)
    assert len(sub.calls) >= 1
    assert len(ground.log.named("schedule:error")) == tries
    assert len(ground.schedule_rows()) == (1 if kind == "interval" else 0)


@pytest.mark.behaviour("SC-049")
async def test_a_class_that_is_gone_is_one_line_in_the_log_and_its_rows_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Shelf(Room):
        """Of its own for this test: what was logged of a class is known for as long as it lives."""

    ground = Ground(tmp_path, Shelf)
    await ground.open()
    for name in ("a", "b"):
        sub = await ground.sub(Room, name)
        await sub.schedule(5, "tick")
        await sub.schedule_every(5, "tick")
    ground.unreachable = AgentNotRegistered("The agent class 'Sub' is not registered")
    with caplog.at_level(logging.WARNING, "ramet.schedules"):
        await ground.advance(600)
        await ground.crash()
        await ground.advance(600)
    [record] = caplog.records
    assert record.getMessage() == (
        "Shelf: the schedules of Root:r/Sub:a and others of its class are kept, but wait: "
        "The agent class 'Sub' is not registered"
    )
    assert record.exc_info is None
    assert ground.log.errors == []
    assert len(ground.schedule_rows()) == 4
    ground.unreachable = None
    await ground.advance(300)
    assert len(ground.schedule_rows()) == 2
    await ground.close()


@pytest.mark.behaviour("SC-049")
async def test_an_unreachable_owner_holds_up_no_other(ground: Ground[Room]) -> None:
    sub = await ground.sub(Room, "a")
    await sub.schedule(5, "tick")
    await ground.root.agent.schedule(6, "tick")
    ground.unreachable = OSError("disk")
    await ground.advance(60)
    assert ground.root.agent.calls == [6_000]
    await ground.crash()
    ground.unreachable = None
    await ground.advance(300)
    assert len(ground.open_agents[ROOT.child("Sub", "a")].agent.calls) == 1


@pytest.mark.behaviour("D11", "SC-049")
async def test_a_sub_agent_that_is_stopped_during_a_callback_gets_it_again(
    ground: Ground[Room],
) -> None:
    class Hanging(Room):
        async def hang(self) -> None:
            self.calls.append("hang")
            await self.ground.clock.sleep(10)
            self.ground.open_agents[self.path].fence.check()
            self.calls.append("done")

    sub = await ground.sub(Hanging, "a")
    await sub.schedule(5, "hang")
    await ground.advance(6)
    stopped = ground.open_agents.pop(sub.path)
    stopped.fence.drop("it was aborted")
    stopped.database.close()
    await ground.advance(12)
    again = ground.open_agents[sub.path].agent
    assert again is not sub
    assert again.calls == ["hang"]
    await ground.advance(20)
    assert again.calls == ["hang", "done"]
    assert ground.schedule_rows() == []


@pytest.mark.behaviour("SC-006")
async def test_a_sub_agents_bad_schedule_is_refused_and_nothing_is_written(
    ground: Ground[Room],
) -> None:
    sub = await ground.sub(Room, "a")
    with pytest.raises(InvalidSchedule):
        await sub.schedule(float("nan"), "tick")
    assert ground.schedule_rows() == []
    assert ground.index.history == []


async def test_a_stopped_sub_agent_schedules_nothing_in_its_root(ground: Ground[Room]) -> None:
    sub = await ground.sub(Room, "a")
    ground.open_agents[sub.path].fence.drop("it was aborted")
    for call in (sub.schedule(5, "tick"), sub.cancel_schedule("x"), sub.list_schedules()):
        with pytest.raises(InstanceGone):
            await call
    assert ground.schedule_rows() == []


async def test_an_agent_is_busy_while_one_of_its_callbacks_runs(ground: Ground[Room]) -> None:
    class Waiting(Room):
        async def pause(self) -> None:
            await self.ground.clock.sleep(10)

    sub = await ground.sub(Waiting, "a")
    await sub.schedule(5, "pause")
    opened = ground.open_agents[sub.path]
    assert opened.schedules.busy() is None
    await ground.advance(6)
    assert opened.schedules.busy() == "a scheduled callback is running"
    assert ground.root.schedules.busy() == "a schedule is being carried out"
    await ground.advance(10)
    assert opened.schedules.busy() is None
    assert ground.root.schedules.busy() is None


@pytest.mark.behaviour("SC-031")
async def test_the_one_alarm_of_a_root_is_the_earliest_of_all_below_it(
    ground: Ground[Room],
) -> None:
    one, other = await ground.sub(Room, "a"), await ground.sub(Room, "b")
    await ground.root.agent.schedule(100, "tick")
    await one.schedule(50, "tick")
    made = await other.schedule(20, "tick")
    assert ground.due_ms() == (START + 20) * 1000
    await other.cancel_schedule(made.id)
    assert ground.due_ms() == (START + 50) * 1000
    await ground.advance(50)
    assert ground.due_ms() == (START + 100) * 1000
