"""Making, reading and cancelling schedules: what is stored, what is refused, what is told."""

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ramet.core.json import NotJson
from ramet.core.options import AgentOptions, RetryOptions
from ramet.errors import (
    InstanceGone,
    InvalidArguments,
    InvalidOptions,
    InvalidSchedule,
    MethodNotFound,
)
from ramet.schedules.records import Schedule
from ramet.testing.manual_clock import START_MS
from tests.support.ground import Ground, Verbs

START = START_MS // 1000


class Room(Verbs):
    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    async def remind(self, payload: object, schedule: Schedule) -> None:
        self.calls.append(("remind", payload))

    async def tick(self) -> None:
        self.calls.append(("tick", None))


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground[Room]]:
    made = Ground(tmp_path, Room)
    await made.open()
    yield made
    await made.close()


@pytest.mark.behaviour("SC-001", "SC-002", "D33")
async def test_a_schedule_is_a_row_with_the_columns_of_its_kind(ground: Ground[Room]) -> None:
    room = ground.root.agent
    made = await room.schedule(90, room.remind, {"say": "tea"}, retry=RetryOptions(max_attempts=2))
    assert ground.schedule_rows() == [
        {
            "id": made.id,
            "callback": "remind",
            "payload": '{"say":"tea"}',
            "type": "delayed",
            "time": START + 90,
            "delayInSeconds": 90,
            "cron": None,
            "intervalSeconds": None,
            "running": 0,
            "created_at": START,
            "execution_started_at": None,
            "retry_options": '{"maxAttempts":2,"baseDelayMs":100.0,"maxDelayMs":3000.0}',
            "owner_path": None,
            "owner_path_key": None,
        }
    ]


@pytest.mark.behaviour("SC-007", "SC-008", "RT-006")
async def test_a_schedule_shows_what_was_asked_for_and_nothing_of_its_storage(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    retry = RetryOptions(max_attempts=2)
    delayed = await room.schedule(timedelta(minutes=1), "remind", [1], retry=retry)
    dated = await room.schedule(datetime(2040, 1, 1, tzinfo=UTC), "remind")
    cron = await room.schedule("0 8 * * *", "remind")
    interval = await room.schedule_every(60, "tick")
    assert delayed == Schedule(
        id=delayed.id,
        callback="remind",
        payload=[1],
        type="delayed",
        time=START + 60,
        retry=retry,
        delay_in_seconds=60,
    )
    assert (dated.type, dated.due_at) == ("scheduled", datetime(2040, 1, 1, tzinfo=UTC))
    assert (cron.type, cron.cron) == ("cron", "0 8 * * *")
    assert (interval.type, interval.interval_seconds) == ("interval", 60)
    ids = [made.id for made in (delayed, dated, cron, interval)]
    assert len(set(ids)) == 4
    assert {len(id) for id in ids} == {9}


@pytest.mark.behaviour("SC-009")
async def test_a_cron_line_is_scheduled_once_unless_it_may_be_twice(ground: Ground[Room]) -> None:
    room = ground.root.agent
    first = await room.schedule("0 8 * * *", "remind", {"a": 1})
    assert await room.schedule("0 8 * * *", "remind", {"a": 1}) == first
    others = [
        await room.schedule("0 9 * * *", "remind", {"a": 1}),
        await room.schedule("0 8 * * *", "remind", {"a": 2}),
        await room.schedule("0 8 * * *", "tick", {"a": 1}),
        await room.schedule("0 8 * * *", "remind", {"a": 1}, idempotent=False),
    ]
    assert len({first.id, *(other.id for other in others)}) == 5


@pytest.mark.behaviour("SC-010", "SC-011")
async def test_delays_and_dates_are_scheduled_each_time_unless_asked_otherwise(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    assert (await room.schedule(5, "tick")).id != (await room.schedule(5, "tick")).id
    early, late = datetime(2040, 1, 1, tzinfo=UTC), datetime(2041, 1, 1, tzinfo=UTC)
    first = await room.schedule(early, "remind", "x", idempotent=True)
    assert await room.schedule(late, "remind", "x", idempotent=True) == first
    assert (await room.schedule(late, "remind", "y", idempotent=True)).id != first.id
    assert (await room.schedule(60, "remind", "x", idempotent=True)).type == "delayed"


@pytest.mark.behaviour("SC-012")
async def test_an_interval_is_scheduled_once_for_its_seconds_method_and_payload(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    first = await room.schedule_every(60, "tick")
    assert await room.schedule_every(60.0, "tick") == first
    assert await room.schedule_every(timedelta(minutes=1), room.tick) == first
    others = [
        await room.schedule_every(61, "tick"),
        await room.schedule_every(60, "tick", 1),
        await room.schedule_every(60, "remind"),
    ]
    assert len({first.id, *(other.id for other in others)}) == 4


@pytest.mark.behaviour("SC-013")
async def test_a_hit_sets_an_alarm_that_was_lost(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule_every(60, "tick")
    ground.lose_alarm()
    ground.clock.move(61)
    assert room.calls == []
    await room.schedule_every(60, "tick")
    assert ground.due_ms() == (START + 60) * 1000
    await ground.advance(0)
    assert room.calls == [("tick", None)]


@pytest.mark.behaviour("SC-013")
async def test_opening_the_agent_sets_an_alarm_that_was_lost(ground: Ground[Room]) -> None:
    await ground.root.agent.schedule(60, "tick")
    await ground.crash()
    ground.lose_alarm()
    room = await ground.open()
    assert ground.due_ms() == (START + 60) * 1000
    await ground.advance(60)
    assert room.calls == [("tick", None)]


@pytest.mark.behaviour("SC-014", "OB-006")
async def test_creation_is_told_once_and_cancellation_too(ground: Ground[Room]) -> None:
    room = ground.root.agent
    made = await room.schedule("0 8 * * *", "remind")
    await room.schedule("0 8 * * *", "remind")
    told = {"callback": "remind", "id": made.id}
    assert ground.log.named("schedule:create") == [told]
    assert await room.cancel_schedule(made.id)
    assert not await room.cancel_schedule(made.id)
    assert ground.log.named("schedule:cancel") == [told]


@pytest.mark.behaviour("SC-027", "SC-031")
async def test_a_cancelled_schedule_is_gone_with_its_alarm(ground: Ground[Room]) -> None:
    room = ground.root.agent
    made = await room.schedule(10, "tick")
    assert ground.due_ms() == (START + 10) * 1000
    assert await room.cancel_schedule(made.id) is True
    assert await room.cancel_schedule("unknown") is False
    assert ground.due_ms() is None
    await ground.advance(20)
    assert room.calls == []


@pytest.mark.behaviour("SC-028")
async def test_schedules_are_found_by_id_type_and_an_inclusive_range(ground: Ground[Room]) -> None:
    room = ground.root.agent
    late = await room.schedule(20, "remind", "late")
    early = await room.schedule(10, "remind", "early")
    every = await room.schedule_every(15, "tick")
    assert await room.get_schedule(late.id) == late
    assert await room.get_schedule("unknown") is None
    assert await room.list_schedules() == [early, every, late]
    assert await room.list_schedules(id=every.id) == [every]
    assert await room.list_schedules(type="delayed") == [early, late]
    assert await room.list_schedules(time_range=(early.due_at, every.due_at)) == [early, every]
    assert await room.list_schedules(time_range=(every.due_at, None)) == [every, late]
    assert await room.list_schedules(id=early.id, type="interval") == []
    with pytest.raises(InvalidArguments, match="'daily' is not one of the types"):
        await room.list_schedules(type="daily")  # type: ignore[arg-type] # wrong on purpose


BAD: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ((-1, "tick"), {}, InvalidSchedule, "A delay must be zero or more seconds, not -1"),
    ((float("nan"), "tick"), {}, InvalidSchedule, "A delay must be zero or more seconds, not nan"),
    (("* * *", "tick"), {}, InvalidSchedule, "'* * *' is not a cron line: it has 3 fields, not 5"),
    (("61 * * * *", "tick"), {}, InvalidSchedule, "'61 * * * *' is not a cron line: Bad minute"),
    (
        (None, "tick"),
        {},
        InvalidArguments,
        "A schedule is due after seconds or a timedelta, at an aware datetime or by a cron line, "
        "not None",
    ),
    ((5, "tock"), {}, MethodNotFound, "Room has no method 'tock'"),
    (
        (5, 7),
        {},
        InvalidArguments,
        "A callback is a method of this Room or its name, not 7: only a name can be stored",
    ),
    (
        (5, "remind", {"what": b"tea"}),
        {},
        NotJson,
        "The payload of remind is not JSON: {'what': b'tea'} "
        "(Type is not JSON serializable: bytes)",
    ),
    (
        (5, "remind", [float("inf")]),
        {},
        NotJson,
        "The payload of remind is not JSON: [inf] (inf is not a JSON number)",
    ),
    (
        (5, "tick"),
        {"retry": {"max_attempts": 1}},
        InvalidOptions,
        "retry must be RetryOptions, not {'max_attempts': 1}",
    ),
]


@pytest.mark.behaviour("SC-006", "D6")
@pytest.mark.parametrize(("arguments", "options", "kind", "sentence"), BAD)
async def test_what_cannot_be_scheduled_is_refused_and_nothing_is_written(
    ground: Ground[Room],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    kind: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(kind) as caught:
        await ground.root.agent.schedule(*arguments, **options)
    assert str(caught.value) == sentence
    assert ground.schedule_rows() == []
    assert ground.index.history == []
    assert ground.log.events == []


@pytest.mark.behaviour("SC-005", "SC-006")
@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        (
            (0, "tick"),
            InvalidSchedule,
            "An interval must be above zero and at most 2592000 seconds, not 0",
        ),
        (
            (float("nan"), "tick"),
            InvalidSchedule,
            "An interval must be above zero and at most 2592000 seconds, not nan",
        ),
        (("60", "tick"), InvalidArguments, "An interval is in seconds or a timedelta, not '60'"),
        ((60, "tock"), MethodNotFound, "Room has no method 'tock'"),
    ],
)
async def test_what_cannot_be_an_interval_is_refused_and_nothing_is_written(
    ground: Ground[Room], arguments: tuple[Any, ...], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        await ground.root.agent.schedule_every(*arguments)
    assert str(caught.value) == sentence
    assert ground.schedule_rows() == []
    assert ground.index.history == []


@pytest.mark.behaviour("RT-004")
async def test_retry_options_must_fit_those_of_the_class_at_the_call(tmp_path: Path) -> None:
    options = AgentOptions(retry=RetryOptions(max_delay=1.0))
    ground = Ground(tmp_path, Room, options=options)
    room = await ground.open()
    with pytest.raises(InvalidOptions) as caught:
        await room.schedule(5, "tick", retry=RetryOptions(base_delay=2.0))
    assert str(caught.value) == "base_delay 2.0 is above max_delay 1.0"
    assert ground.schedule_rows() == []
    await ground.close()


async def test_a_stopped_instance_schedules_nothing(ground: Ground[Room]) -> None:
    room = ground.root.agent
    ground.root.fence.drop("it was aborted")
    with pytest.raises(InstanceGone):
        await room.schedule(5, "tick")
    assert ground.index.history == []


@pytest.mark.behaviour("SC-029")
async def test_a_one_shot_in_on_start_is_warned_of_once_for_each_callback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Starting(Room):
        async def on_start(self) -> None:
            await self.schedule(5, "tick")
            await self.schedule(6, "tick")
            await self.schedule(datetime(2040, 1, 1, tzinfo=UTC), "remind")
            await self.schedule(7, "remind", idempotent=False)
            await self.schedule(8, "tick", idempotent=True)
            await self.schedule("0 8 * * *", "tick")

    ground = Ground(tmp_path, Starting)
    with caplog.at_level(logging.WARNING, "ramet.schedules"):
        room = await ground.open()
        assert [record.getMessage().split(",")[0] for record in caplog.records] == [
            "Root:r: on_start schedules tick",
            "Root:r: on_start schedules remind",
        ]
        assert len(ground.schedule_rows()) == 5
        await room.schedule(9, "tick")
        assert len(caplog.records) == 2
        await ground.crash()
        await ground.open()
        assert len(caplog.records) == 4
    await ground.close()


@pytest.mark.behaviour("SC-029")
async def test_explicit_or_repeating_schedules_in_on_start_are_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Starting(Room):
        async def on_start(self) -> None:
            await self.schedule(5, "tick", idempotent=True)
            await self.schedule(5, "remind", idempotent=False)
            await self.schedule("0 8 * * *", "tick")
            await self.schedule_every(60, "tick")

    ground = Ground(tmp_path, Starting)
    with caplog.at_level(logging.WARNING, "ramet.schedules"):
        await ground.open()
    assert caplog.records == []
    await ground.close()


@pytest.mark.behaviour("D6", "SC-031")
async def test_the_wake_up_is_in_the_index_before_the_row_is_stored(ground: Ground[Room]) -> None:
    seen: list[int] = []
    ground.index.on_set = lambda: seen.append(len(ground.schedule_rows()))
    await ground.root.agent.schedule(5, "tick")
    assert seen == [0]
    assert len(ground.schedule_rows()) == 1


@pytest.mark.behaviour("D16")
async def test_a_row_of_ramets_own_is_neither_seen_nor_cancelled_nor_named_by_users(
    ground: Ground[Room],
) -> None:
    woken: list[int] = []

    async def handler() -> None:
        woken.append(ground.clock.now_ms())

    ground.root.internal["_cf_clean"] = handler
    room = ground.root.agent
    ground.root.schedules.wake("_cf_clean", START_MS + 5_000)
    (row,) = ground.rows("SELECT id FROM cf_agents_schedules")
    assert await room.list_schedules() == []
    assert await room.get_schedule(str(row["id"])) is None
    assert await room.cancel_schedule(str(row["id"])) is False
    with pytest.raises(MethodNotFound, match="Room has no method '_cf_clean'"):
        await room.schedule(5, "_cf_clean", {"n": 1})
    await ground.advance(6)
    assert woken == [START_MS + 5_000]
    assert ground.log.events == []


async def test_a_wake_up_of_ramets_own_is_moved_and_taken_back(ground: Ground[Room]) -> None:
    woken: list[int] = []
    now = ground.clock.now_ms

    async def handler() -> None:
        woken.append(now())
        if len(woken) == 1:
            ground.root.schedules.wake("_cf_wake", now() + 5_000)

    ground.root.internal["_cf_wake"] = handler
    ground.root.schedules.wake("_cf_wake", START_MS + 50_000)
    ground.root.schedules.wake("_cf_wake", START_MS + 1_000)
    await ground.advance(100)
    assert woken == [START_MS + 1_000, START_MS + 6_000]
    ground.root.schedules.wake("_cf_wake", now() + 5_000)
    ground.root.schedules.wake("_cf_wake", None)
    await ground.advance(100)
    assert len(woken) == 2
    assert ground.due_ms() is None
