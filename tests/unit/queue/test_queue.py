"""The queue: one at a time in order, each at least once, taken up at start, read and emptied."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ramet.core.current import current, current_agent, working_for
from ramet.core.json import NotJson
from ramet.core.options import AgentOptions, RetryOptions
from ramet.errors import InstanceGone, InvalidArguments, InvalidOptions, MethodNotFound
from ramet.queue.feature import RESUME_MS
from ramet.queue.records import QueueItem
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.support.ground import ROOT, Ground, Verbs

START = START_MS // 1000


class Room(Verbs):
    def __init__(self) -> None:
        self.calls: list[object] = []
        self.gate: asyncio.Future[None] | None = None

    async def work(self, payload: object, item: QueueItem) -> None:
        self.calls.append(payload)

    async def note(self, payload: object, item: QueueItem) -> None:
        self.calls.append(item)

    async def fail(self, payload: object) -> None:
        self.calls.append(payload)
        raise ValueError(f"no {payload}")

    async def wait(self, payload: object) -> None:
        self.calls.append(payload)
        self.gate = asyncio.get_running_loop().create_future()
        await self.gate
        self.calls.append(f"{payload} done")

    def sync(self) -> None:
        self.calls.append("sync")

    async def whose(self) -> None:
        found = current()
        connection = found.connection.id if found and found.connection else None
        self.calls.append((current_agent() is self, connection))

    def open_gate(self) -> None:
        assert self.gate is not None
        self.gate.set_result(None)


class Client:
    id = "client 1"
    readonly = False


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground[Room]]:
    made = Ground(tmp_path, Room)
    await made.open()
    yield made
    await made.close()


@pytest.mark.behaviour("QU-001", "QU-002", "RT-006")
async def test_an_item_is_stored_under_the_id_that_is_returned(ground: Ground[Room]) -> None:
    retry = RetryOptions(max_attempts=2)
    id = await ground.root.agent.queue("work", {"n": 1}, retry=retry)
    assert ground.queue_rows() == [
        {
            "id": id,
            "payload": '{"n":1}',
            "callback": "work",
            "created_at": START,
            "retry_options": '{"maxAttempts":2,"baseDelayMs":100.0,"maxDelayMs":3000.0}',
        }
    ]
    assert ground.root.agent.calls == []
    await quiet()
    assert ground.root.agent.calls == [{"n": 1}]
    assert ground.queue_rows() == []


@pytest.mark.behaviour("QU-004", "RT-006")
async def test_a_callback_gets_the_payload_and_the_item(ground: Ground[Room]) -> None:
    room = ground.root.agent
    id = await room.queue(room.note, [1], retry=RetryOptions(max_attempts=2))
    await room.queue(room.sync)
    await quiet()
    assert room.calls == [
        QueueItem(
            id=id,
            callback="note",
            payload=[1],
            created_at=START,
            retry=RetryOptions(max_attempts=2),
        ),
        "sync",
    ]


@pytest.mark.behaviour("QU-003", "QK-014")
async def test_items_are_worked_off_one_at_a_time_in_the_order_they_came(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.queue("wait", "first")
    for number in range(50):
        await room.queue("work", number)
    await quiet()
    assert room.calls == ["first"]
    await room.queue("work", "added meanwhile")
    assert ground.root.queue.busy() == "the queue is being worked off"
    room.open_gate()
    await quiet()
    assert room.calls == ["first", "first done", *range(50), "added meanwhile"]
    assert ground.root.queue.busy() is None


@pytest.mark.behaviour("QU-003", "QK-014")
async def test_an_earlier_second_comes_first_and_within_it_who_came_first(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.queue("wait", "first")
    await quiet()
    for number in range(3):
        await room.queue("work", number)
    ground.root.database.run(
        "UPDATE cf_agents_queues SET created_at = created_at - 1 WHERE payload = '2'"
    )
    room.open_gate()
    await quiet()
    assert room.calls == ["first", "first done", 2, 0, 1]


@pytest.mark.behaviour("QU-005", "QU-010", "OB-006")
async def test_an_item_that_fails_is_retried_reported_and_removed_and_later_ones_run(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    bad = await room.queue("fail", "x")
    good = await room.queue("work", "y")
    await ground.advance(10)
    assert room.calls == ["x", "x", "x", "y"]
    told: dict[str, Any] = {"callback": "fail", "id": bad}
    assert ground.log.events == [
        ("Root:r", "queue:create", told),
        ("Root:r", "queue:create", {"callback": "work", "id": good}),
        ("Root:r", "queue:retry", told | {"attempt": 2, "maxAttempts": 3}),
        ("Root:r", "queue:retry", told | {"attempt": 3, "maxAttempts": 3}),
        ("Root:r", "queue:error", told | {"error": "no x", "attempts": 3}),
    ]
    assert [str(error) for _, error in ground.log.errors] == ["no x"]
    assert ground.queue_rows() == []


@pytest.mark.behaviour("QU-006")
async def test_an_item_whose_method_is_gone_is_logged_and_removed(
    ground: Ground[Room], caplog: pytest.LogCaptureFixture
) -> None:
    room = ground.root.agent
    id = await room.queue("work", 1)
    await room.queue("work", 2)
    ground.root.database.run("UPDATE cf_agents_queues SET callback = 'gone' WHERE id = ?", id)
    await quiet()
    assert f"the queue {id} is dropped, there is no method 'gone'" in caplog.text
    assert room.calls == [2]
    assert ground.queue_rows() == []


async def test_an_item_whose_payload_is_broken_is_reported_and_removed(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.queue("work", 1)
    ground.root.database.run("UPDATE cf_agents_queues SET payload = '{'")
    await quiet()
    assert room.calls == []
    assert [told["attempts"] for told in ground.log.named("queue:error")] == [0]
    assert ground.queue_rows() == []


@pytest.mark.behaviour("QU-007", "D11")
async def test_an_item_stays_until_its_callback_has_ended_and_is_run_again_after_a_crash(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.queue("wait", "x")
    await quiet()
    assert len(ground.queue_rows()) == 1
    await ground.crash()
    assert len(ground.queue_rows()) == 1
    assert ground.log.errors == []
    room = await ground.open()
    assert room.calls == ["x"]
    room.open_gate()
    await quiet()
    assert ground.queue_rows() == []


@pytest.mark.behaviour("QU-009", "QK-013")
async def test_what_a_crash_left_is_taken_up_at_start_after_on_start(tmp_path: Path) -> None:
    class Starting(Room):
        async def on_start(self) -> None:
            self.calls.append("started")

    ground = Ground(tmp_path, Starting)
    room = await ground.open()
    for number in range(3):
        await room.queue("work", number)
    await ground.crash()
    assert len(ground.queue_rows()) == 3
    assert (await ground.open()).calls == ["started", 0, 1, 2]
    await ground.close()


@pytest.mark.behaviour("QK-013", "D6")
@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
async def test_an_agent_that_nobody_opens_after_a_crash_is_woken_for_its_queue(
    ground: Ground[Room], names: tuple[str, ...]
) -> None:
    agent = await ground.sub(Room, *names) if names else ground.root.agent
    await agent.queue("work", 1)
    await ground.crash()
    await ground.advance(RESUME_MS / 1000 - 1)
    assert ground.open_agents == {}
    await ground.advance(1)
    assert ground.open_agents[agent.path].agent.calls == [1]
    assert ground.queue_rows(agent.path) == []
    assert ground.due_ms() is None
    assert ground.rows("SELECT * FROM cf_agents_schedules") == []


@pytest.mark.behaviour("D6")
async def test_the_wake_up_of_a_queue_stands_while_an_item_runs_and_goes_with_the_last(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.queue("wait", "long")
    for _ in range(4):
        await ground.advance(40)
        due, now = ground.due_ms(), ground.clock.now_ms()
        assert due is not None
        assert now < due <= now + RESUME_MS
    assert room.calls == ["long"]
    assert await room.list_schedules() == []
    room.open_gate()
    await quiet()
    assert ground.due_ms() is None


@pytest.mark.behaviour("QU-004")
async def test_the_callbacks_of_a_flush_belong_to_the_connection_that_started_it(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    with working_for(room, Client()):
        await room.queue("whose")
    await quiet()
    await room.queue("whose")
    await quiet()
    assert room.calls == [(True, "client 1"), (True, None)]


@pytest.mark.behaviour("QU-008")
async def test_items_are_read_and_removed(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.queue("wait", "first")
    await quiet()
    one = await room.queue("work", {"kind": "a", "n": 1})
    other = await room.queue("note", {"kind": "b", "n": True})
    third = await room.queue("work", {"kind": "a"})
    item = await room.get_queue(one)
    assert item is not None
    assert (item.id, item.payload) == (one, {"kind": "a", "n": 1})
    assert await room.get_queue("unknown") is None
    assert [found.id for found in await room.get_queue()][1:] == [one, other, third]
    assert [found.id for found in await room.get_queues("kind", "a")] == [one, third]
    assert [found.id for found in await room.get_queues("n", 1)] == [one]
    assert [found.id for found in await room.get_queues("n", True)] == [other]
    assert await room.get_queues("missing", None) == []
    assert await room.dequeue(one) is True
    assert await room.dequeue(one) is False
    assert await room.dequeue_all_by_callback(room.work) == 1
    assert await room.dequeue_all_by_callback("work") == 0
    assert await room.dequeue_all() == 2
    room.open_gate()
    await quiet()
    assert room.calls == ["first", "first done"]


@pytest.mark.behaviour("QU-002")
@pytest.mark.parametrize(
    ("arguments", "options", "kind", "sentence"),
    [
        (("gone",), {}, MethodNotFound, "Room has no method 'gone'"),
        (
            (5,),
            {},
            InvalidArguments,
            "A callback is a method of this Room or its name, not 5: only a name can be stored",
        ),
        (
            ("work", {"at": float("nan")}),
            {},
            NotJson,
            "The payload of work is not JSON: {'at': nan} (nan is not a JSON number)",
        ),
        (
            ("work", b"tea"),
            {},
            NotJson,
            "The payload of work is not JSON: b'tea' (Type is not JSON serializable: bytes)",
        ),
        (
            ("work",),
            {"retry": 3},
            InvalidOptions,
            "retry must be RetryOptions, not 3",
        ),
    ],
)
async def test_what_cannot_be_queued_is_refused_and_nothing_is_written(
    ground: Ground[Room],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    kind: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(kind) as caught:
        await ground.root.agent.queue(*arguments, **options)
    assert str(caught.value) == sentence
    assert ground.queue_rows() == []
    assert ground.index.history == []
    assert ground.log.events == []


@pytest.mark.behaviour("QU-002", "RT-004")
async def test_retry_options_must_fit_those_of_the_class_at_the_call(tmp_path: Path) -> None:
    options = AgentOptions(retry=RetryOptions(max_delay=1.0))
    ground = Ground(tmp_path, Room, options=options)
    room = await ground.open()
    with pytest.raises(InvalidOptions) as caught:
        await room.queue("work", 1, retry=RetryOptions(base_delay=2.0))
    assert str(caught.value) == "base_delay 2.0 is above max_delay 1.0"
    assert ground.queue_rows() == []
    await ground.close()


async def test_a_stopped_instance_queues_nothing(ground: Ground[Room]) -> None:
    room = ground.root.agent
    ground.root.fence.drop("it was aborted")
    for call in (room.queue("work"), room.dequeue("x"), room.dequeue_all()):
        with pytest.raises(InstanceGone):
            await call
    assert ground.index.history == []


async def test_a_callback_may_queue_more_and_empty_the_queue(tmp_path: Path) -> None:
    class Busy(Room):
        async def more(self, payload: int) -> None:
            self.calls.append(payload)
            if payload == 0:
                await self.dequeue_all()
            else:
                await self.queue("more", payload - 1)

    ground = Ground(tmp_path, Busy)
    room = await ground.open()
    await room.queue("more", 3)
    await room.queue("more", 7)
    await quiet()
    assert room.calls == [3, 7, 2, 6, 1, 5, 0]
    assert ground.queue_rows() == []
    await ground.close()


def test_the_next_item_is_found_by_an_index(ground: Ground[Room]) -> None:
    plan = ground.root.database.query(
        "EXPLAIN QUERY PLAN SELECT * FROM cf_agents_queues ORDER BY created_at, rowid LIMIT 1"
    )
    assert [row["detail"] for row in plan] == [
        "SCAN cf_agents_queues USING INDEX cf_agents_queues_order"
    ]


async def test_an_item_of_a_sub_agent_is_in_its_own_database(ground: Ground[Room]) -> None:
    agent = await ground.sub(Room, "a")
    await agent.queue("work", 1)
    assert ground.queue_rows() == []
    assert len(ground.queue_rows(ROOT.child("Sub", "a"))) == 1
    await quiet()
    assert agent.calls == [1]
