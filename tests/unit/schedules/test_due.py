"""Carrying out what is due: once each, in order, retried, rescheduled, never held up by another."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ramet.core.current import current_agent
from ramet.core.options import AgentOptions, RetryOptions
from ramet.schedules import store
from ramet.schedules.records import Schedule
from ramet.schedules.timetable import MOST_AT_ONCE, SIGN_OF_LIFE_MS
from ramet.testing.manual_clock import START_MS
from ramet.testing.quiet import quiet
from tests.support.ground import ROOT, Ground, Verbs

START = START_MS // 1000


class Room(Verbs):
    def __init__(self) -> None:
        self.calls: list[object] = []
        self.gates: list[asyncio.Future[None]] = []

    async def remind(self, payload: object, schedule: Schedule) -> None:
        self.calls.append(payload)

    async def report(self, payload: object, schedule: Schedule) -> None:
        self.calls.append((self.ground.clock.now_ms() - START_MS, payload, schedule))

    def sync(self, payload: object) -> None:
        self.calls.append(payload)

    async def tick(self) -> None:
        self.calls.append(self.ground.clock.now_ms() - START_MS)

    async def fail(self, payload: object) -> None:
        self.calls.append(payload)
        raise ValueError(f"no {payload}")

    async def wait(self, payload: object) -> None:
        self.calls.append(payload)
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gates.append(gate)
        await gate

    async def slow(self) -> None:
        self.calls.append(self.ground.clock.now_ms() - START_MS)
        await self.ground.clock.sleep(7.5)

    async def cancel_self(self, payload: object, schedule: Schedule) -> None:
        self.calls.append(await self.cancel_schedule(schedule.id))

    async def whose(self) -> None:
        self.calls.append((current_agent() is self, str(self.path)))

    async def wipe(self) -> None:
        opened = self.ground.root
        for row in opened.database.query("SELECT id FROM cf_agents_schedules"):
            opened.database.run("DELETE FROM cf_agents_schedules WHERE id = ?", row["id"])
        self.calls.append("wiped")

    async def end(self) -> None:
        self.calls.append("ended")
        await self.ground.crash()
        await asyncio.get_running_loop().create_future()


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground[Room]]:
    made = Ground(tmp_path, Room)
    await made.open()
    yield made
    await made.close()


def kinds(ground: Ground[Room]) -> list[str]:
    return [type for _, type, _ in ground.log.events if type != "schedule:create"]


@pytest.mark.behaviour("SC-002", "SC-016", "SC-031")
async def test_a_delayed_call_is_made_at_its_second_and_its_row_goes(ground: Ground[Room]) -> None:
    made = await ground.root.agent.schedule(60, "report", {"say": "tea"})
    await ground.advance(59.999)
    assert ground.root.agent.calls == []
    await ground.advance(0.001)
    assert ground.root.agent.calls == [(60_000, {"say": "tea"}, made)]
    assert ground.schedule_rows() == []
    assert ground.due_ms() is None
    assert ground.root.schedules.busy() is None


@pytest.mark.behaviour("SC-003", "SC-026")
async def test_a_date_is_kept_and_no_payload_is_none(ground: Ground[Room]) -> None:
    date = datetime.fromtimestamp(START + 30, tz=UTC)
    made = await ground.root.agent.schedule(date, "report")
    past = await ground.root.agent.schedule(datetime(2001, 1, 1, tzinfo=UTC), "report")
    await ground.advance(40)
    assert ground.root.agent.calls == [(0, None, past), (30_000, None, made)]


async def test_what_is_due_at_the_same_time_is_called_in_the_order_it_was_made(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    for number in range(300):
        await room.schedule(5, "remind", number)
    await room.schedule(4, "sync", "first")
    await ground.advance(10)
    assert room.calls == ["first", *range(300)]
    assert ground.schedule_rows() == []


@pytest.mark.behaviour("SC-015")
async def test_what_became_due_while_no_process_ran_is_called_after_on_start(
    tmp_path: Path,
) -> None:
    class Starting(Room):
        async def on_start(self) -> None:
            self.calls.append("started")

    ground = Ground(tmp_path, Starting)
    await (await ground.open()).schedule(5, "tick")
    await ground.crash()
    ground.clock.move(4)
    assert ground.open_agents == {}
    await ground.advance(3_600)
    assert ground.root.agent.calls == ["started", 5_000]
    await ground.close()


@pytest.mark.behaviour("SC-004", "SC-017")
async def test_a_cron_row_moves_to_its_next_match_and_missed_ones_are_called_once(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    made = await room.schedule("*/10 * * * *", "tick")
    assert made.time % 600 == 0
    first = made.time * 1000 - START_MS
    await ground.advance(first / 1000 + 1_201)
    assert room.calls == [first, first + 600_000, first + 1_200_000]
    found = await room.get_schedule(made.id)
    assert found is not None
    assert found.time == made.time + 1_800
    await ground.crash()
    ground.clock.move(3_600)
    room = await ground.open()
    await ground.advance(0)
    assert len(room.calls) == 1
    found = await room.get_schedule(made.id)
    assert found is not None
    assert found.time == made.time + 5_400


@pytest.mark.behaviour("SC-018")
async def test_an_interval_counts_from_the_end_of_the_last_call(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule_every(10, "slow")
    await ground.advance(17)
    assert [row["running"] for row in ground.schedule_rows()] == [1]
    await ground.advance(43)
    assert room.calls == [10_000, 27_000, 44_000]  # each ends in the 18th second after
    assert ground.schedule_rows()[0]["running"] == 0
    assert ground.schedule_rows()[0]["execution_started_at"] is None


@pytest.mark.behaviour("SC-019", "SC-023")
async def test_an_interval_that_fails_stays(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule_every(10, "fail", "x", retry=RetryOptions(max_attempts=1))
    await ground.advance(30)
    assert room.calls == ["x", "x", "x"]
    assert len(ground.schedule_rows()) == 1


@pytest.mark.behaviour("SC-016", "SC-023", "OB-006")
async def test_a_failing_call_is_retried_then_reported_and_its_row_goes(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    made = await room.schedule(5, "fail", "x")
    await ground.advance(10)
    assert room.calls == ["x", "x", "x"]
    told = {"callback": "fail", "id": made.id}
    assert ground.log.events[1:] == [
        ("Root:r", "schedule:execute", told),
        ("Root:r", "schedule:retry", told | {"attempt": 2, "maxAttempts": 3}),
        ("Root:r", "schedule:retry", told | {"attempt": 3, "maxAttempts": 3}),
        ("Root:r", "schedule:error", told | {"error": "no x", "attempts": 3}),
    ]
    assert [(whose, str(error)) for whose, error in ground.log.errors] == [("Root:r", "no x")]
    assert ground.schedule_rows() == []


@pytest.mark.behaviour("RT-006", "SC-023")
async def test_a_schedule_is_retried_by_its_own_options_else_by_those_of_the_class(
    tmp_path: Path,
) -> None:
    options = AgentOptions(retry=RetryOptions(max_attempts=2))
    ground = Ground(tmp_path, Room, options=options)
    room = await ground.open()
    own = await room.schedule(5, "fail", "own", retry=RetryOptions(max_attempts=4))
    assert own.retry == RetryOptions(max_attempts=4)
    assert (await room.schedule(5, "fail", "class")).retry is None
    await ground.advance(30)
    assert (room.calls.count("own"), room.calls.count("class")) == (4, 2)
    await ground.close()


@pytest.mark.behaviour("SC-020", "SC-022")
async def test_an_interval_marked_as_running_is_skipped_until_it_counts_as_hung(
    ground: Ground[Room],
) -> None:
    await ground.root.agent.schedule_every(60, "tick")
    await ground.crash()
    ground.clock.move(59)
    room = await ground.open()
    ground.root.database.run(
        "UPDATE cf_agents_schedules SET running = 1, execution_started_at = ?", START + 50
    )
    await ground.advance(20)
    assert room.calls == []
    assert ground.due_ms() == (START + 80) * 1000
    await ground.advance(10)
    assert room.calls == [80_000]
    assert ground.schedule_rows()[0]["time"] == START + 140


@pytest.mark.behaviour("SC-021")
async def test_a_running_mark_without_a_start_counts_as_hung_at_once(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule_every(60, "tick")
    ground.root.database.run("UPDATE cf_agents_schedules SET running = 1")
    await ground.advance(60)
    assert room.calls == [60_000]


@pytest.mark.behaviour("SC-020", "SC-021", "SC-022")
async def test_a_call_that_hangs_is_cancelled_and_made_anew_never_two_at_a_time(
    ground: Ground[Room], caplog: pytest.LogCaptureFixture
) -> None:
    room = ground.root.agent
    await room.schedule_every(10, "wait", "x")
    await ground.advance(39)
    assert room.calls == ["x"]
    with caplog.at_level(logging.WARNING, "ramet.schedules"):
        await ground.advance(1)
    assert room.calls == ["x", "x"]
    assert [gate.cancelled() for gate in room.gates] == [True, False]
    assert "the interval wait hangs" in caplog.text
    room.gates[1].set_result(None)
    await quiet()
    assert ground.schedule_rows()[0]["time"] == START + 50
    assert ground.schedule_rows()[0]["running"] == 0
    assert ground.root.schedules.busy() is None


async def test_without_a_limit_a_call_never_counts_as_hung(tmp_path: Path) -> None:
    options = AgentOptions(hung_schedule_timeout=float("inf"))
    ground = Ground(tmp_path, Room, options=options)
    room = await ground.open()
    await room.schedule_every(10, "wait", "x")
    await ground.advance(86_400)
    assert room.calls == ["x"]
    await ground.close()


async def test_a_call_that_takes_long_holds_up_no_other(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule(5, "wait", "long")
    await room.schedule(5, "remind", "same time")
    await room.schedule(6, "remind", "later")
    await ground.advance(6)
    assert room.calls == ["long", "same time", "later"]
    assert ground.root.schedules.busy() == "a scheduled callback is running"


@pytest.mark.behaviour("D6", "SC-031")
async def test_while_a_call_runs_the_index_keeps_a_wake_up_that_a_crash_can_use(
    ground: Ground[Room],
) -> None:
    await ground.root.agent.schedule(5, "wait", "long")
    for _ in range(5):
        await ground.advance(40)
        due, now = ground.due_ms(), ground.clock.now_ms()
        assert due is not None
        assert now < due <= now + SIGN_OF_LIFE_MS
    assert ground.root.agent.calls == ["long"]
    await ground.crash()
    assert ground.open_agents == {}
    await ground.advance(SIGN_OF_LIFE_MS / 1000)
    assert ground.root.agent.calls == ["long"]


async def test_more_than_may_run_at_once_wait_until_others_have_ended(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    for number in range(MOST_AT_ONCE + 50):
        await room.schedule(5, "wait", number)
    await room.schedule(6, "remind", "last")
    await ground.advance(600)
    assert room.calls == list(range(MOST_AT_ONCE))
    for gate in room.gates[:10]:
        gate.set_result(None)
    await quiet()
    assert room.calls == list(range(MOST_AT_ONCE + 10))
    while len(room.calls) < MOST_AT_ONCE + 51:
        for gate in room.gates:
            if not gate.done():
                gate.set_result(None)
        await quiet()
    assert room.calls[-1] == "last"
    for gate in room.gates:
        if not gate.done():
            gate.set_result(None)
    await quiet()
    assert ground.schedule_rows() == []
    assert ground.due_ms() is None


@pytest.mark.behaviour("SC-024")
@pytest.mark.parametrize("name", ["renamed", "__init__", "calls"])
async def test_a_row_whose_method_is_gone_is_logged_and_consumed(
    ground: Ground[Room], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    made = await ground.root.agent.schedule(5, "tick")
    ground.root.database.run("UPDATE cf_agents_schedules SET callback = ?", name)
    await ground.advance(5)
    assert f"the schedule {made.id} is dropped, there is no method {name!r}" in caplog.text
    assert ground.schedule_rows() == []
    assert kinds(ground) == []


@pytest.mark.behaviour("SC-025")
async def test_a_row_whose_payload_is_broken_is_reported_and_consumed(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    made = await room.schedule(5, "remind", 1)
    ground.root.database.run("UPDATE cf_agents_schedules SET payload = '{'")
    await ground.advance(5)
    assert room.calls == []
    assert ground.schedule_rows() == []
    [told] = ground.log.named("schedule:error")
    assert (told["id"], told["attempts"]) == (made.id, 0)
    assert kinds(ground) == ["schedule:error"]


@pytest.mark.behaviour("SC-026")
async def test_a_row_without_a_payload_gives_none(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule(5, "remind", 1)
    ground.root.database.run("UPDATE cf_agents_schedules SET payload = NULL")
    await ground.advance(5)
    assert room.calls == [None]


@pytest.mark.behaviour("SC-030", "OB-006")
async def test_ten_alike_at_once_are_told_of_and_all_are_called(ground: Ground[Room]) -> None:
    room = ground.root.agent
    for number in range(12):
        await room.schedule(5, "remind", number)
    for _ in range(9):
        await room.schedule(5, "sync", "nine")
    await ground.advance(5)
    assert ground.log.named("schedule:duplicate_warning") == [
        {"callback": "remind", "count": 12, "type": "one-shot"}
    ]
    assert room.calls == [*range(12), *["nine"] * 9]


@pytest.mark.behaviour("SC-030")
async def test_many_alike_are_logged_once_for_each_class_and_callback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Diary(Room):
        """Of its own for this test: what was logged of a class is known for as long as it lives."""

    told = 0
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        ground = Ground(folder, Diary)
        await ground.open()
        with caplog.at_level(logging.WARNING, "ramet.schedules"):
            for callback in ("remind", "remind", "sync"):
                for number in range(12):
                    await ground.root.agent.schedule(5 + number, callback, number)
                await ground.crash()
                ground.clock.move(60)  # while nothing runs
                await ground.advance(1)
        told += len(ground.log.named("schedule:duplicate_warning"))
        await ground.close()
    assert told == 6
    assert [record.getMessage() for record in caplog.records] == [
        f"Diary: 12 schedules of {callback} are due at once in Root:r; "
        "is it scheduled again at every start? Use idempotent=True or schedule_every"
        for callback in ("remind", "sync")
    ]


@pytest.mark.behaviour("SC-030")
async def test_those_that_run_already_are_not_warned_of_again(ground: Ground[Room]) -> None:
    for number in range(10):
        await ground.root.agent.schedule(5, "wait", number)
    await ground.advance(300)
    assert len(ground.log.named("schedule:duplicate_warning")) == 1


@pytest.mark.behaviour("SC-047")
@pytest.mark.parametrize("kind", ["delayed", "interval"])
async def test_a_callback_may_cancel_its_own_schedule(ground: Ground[Room], kind: str) -> None:
    room = ground.root.agent
    if kind == "interval":
        await room.schedule_every(5, "cancel_self")
    else:
        await room.schedule(5, "cancel_self")
    await ground.advance(30)
    assert room.calls == [True]
    assert ground.schedule_rows() == []
    assert ground.due_ms() is None


@pytest.mark.behaviour("SC-033")
async def test_a_callback_runs_as_code_of_its_agent(ground: Ground[Room]) -> None:
    await ground.root.agent.schedule(5, "whose")
    await ground.advance(5)
    assert ground.root.agent.calls == [(True, str(ROOT))]


@pytest.mark.behaviour("SC-032")
async def test_a_callback_that_wipes_the_storage_breaks_nothing(ground: Ground[Room]) -> None:
    room = ground.root.agent
    await room.schedule(5, "wipe")
    await room.schedule(50, "tick")
    await ground.advance(5)
    await room.schedule(5, "remind", "after")
    await ground.advance(100)
    assert room.calls == ["wiped", "after"]
    assert ground.log.errors == []


@pytest.mark.behaviour("SC-032", "D11")
async def test_an_instance_that_ends_during_a_callback_leaves_the_row(
    ground: Ground[Room],
) -> None:
    room = ground.root.agent
    await room.schedule(5, "end")
    await ground.advance(5)
    assert room.calls == ["ended"]
    assert len(ground.schedule_rows()) == 1
    assert ground.log.errors == []
    assert kinds(ground) == ["schedule:execute"]


async def test_a_callback_that_ends_as_cancelled_by_itself_has_failed(tmp_path: Path) -> None:
    class Cancelling(Room):
        async def inner(self) -> None:
            self.calls.append("inner")
            gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            gate.cancel()
            await gate

    ground = Ground(tmp_path, Cancelling)
    room = await ground.open()
    await room.schedule(5, "inner", retry=RetryOptions(max_attempts=1))
    await ground.advance(60)
    assert room.calls == ["inner"]
    assert ground.schedule_rows() == []
    assert "nobody had cancelled it" in str(ground.log.errors[0][1])
    await ground.close()


async def test_a_retried_callback_gets_its_payload_as_it_was_stored(tmp_path: Path) -> None:
    class Changing(Room):
        async def change(self, payload: dict[str, int]) -> None:
            self.calls.append(dict(payload))
            payload["n"] += 1
            raise ValueError("again")

    ground = Ground(tmp_path, Changing)
    room = await ground.open()
    await room.schedule(5, "change", {"n": 1})
    await ground.advance(60)
    assert room.calls == [{"n": 1}] * 3
    await ground.close()


async def test_a_callback_may_schedule_the_next_one(tmp_path: Path) -> None:
    class Chained(Room):
        async def step(self, payload: int) -> None:
            self.calls.append(self.ground.clock.now_ms() - START_MS)
            if payload:
                await self.schedule(5, "step", payload - 1)

    ground = Ground(tmp_path, Chained)
    room = await ground.open()
    await room.schedule(5, "step", 3)
    await ground.advance(60)
    assert room.calls == [5_000, 10_000, 15_000, 20_000]
    await ground.close()


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("DUE", "cf_agents_schedules_due"),
        ("EARLIEST", "cf_agents_schedules_due"),
        ("DUE_COUNTS", "cf_agents_schedules_due"),
        ("RUNNING", "cf_agents_schedules_running"),
        ("ALIKE", "cf_agents_schedules_owned"),
        ("OF_OWNER", "cf_agents_schedules_owned"),
        ("BELOW", "cf_agents_schedules_owned"),
    ],
)
def test_rows_are_found_by_an_index_never_by_reading_them_all(
    ground: Ground[Room], query: str, index: str
) -> None:
    statement: str = getattr(store, query)
    values = [None] * statement.count("?")
    plan = ground.root.database.query("EXPLAIN QUERY PLAN " + statement, *values)
    details = " ".join(row["detail"] for row in plan)
    assert f"USING INDEX {index}" in details or f"USING COVERING INDEX {index}" in details
    assert query == "EARLIEST" or "SCAN" not in details.replace(
        "SCAN cf_agents_schedules USING", ""
    )
