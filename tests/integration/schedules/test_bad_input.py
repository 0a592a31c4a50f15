"""What schedules, the queue, fibers and submissions refuse: one clear sentence, nothing written."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import ramet
from ramet.core.json import NotJson
from ramet.errors import (
    InvalidArguments,
    InvalidOptions,
    InvalidSchedule,
    MethodNotFound,
    NoCurrentFiber,
    UnknownModelResult,
)
from ramet.fibers.records import FiberContext
from ramet.testing import Harness
from ramet.testing.scripted_model import ScriptedModel


class Thing:
    """Something that is not JSON."""

    def __repr__(self) -> str:
        return "<Thing>"


class Clerk(ramet.Think):
    """Has what can be called later."""

    def get_model(self) -> ScriptedModel:
        return ScriptedModel.by_rule(lambda messages, tools: "done")

    async def ring(self, payload: object) -> None:
        """Take a payload."""

    async def greedy(self, one: object, two: object, three: object) -> None:
        """Take more than there is."""

    async def work(self, fiber: FiberContext) -> None:
        """Come to an end at once."""

    async def keep(self, fiber: FiberContext) -> None:
        """Stash what cannot be stored."""
        fiber.stash({"a": Thing()})


Call: TypeAlias = Callable[[Any], Awaitable[object]]
"""A call of a clerk, whose types a type checker would refuse."""

A_DAY = 86_400
NOT_JSON = "is not JSON: {'a': <Thing>} (Type is not JSON serializable: Thing)"
INTERVAL = "An interval must be above zero and at most 2592000 seconds, not"
REFUSED: dict[str, tuple[Call, type[Exception], str]] = {
    "a method that is not there": (
        lambda a: a.schedule(1, "whistle"),
        MethodNotFound,
        "Clerk has no method 'whistle'",
    ),
    "the same at an interval": (
        lambda a: a.schedule_every(1, "whistle"),
        MethodNotFound,
        "Clerk has no method 'whistle'",
    ),
    "the same in the queue": (
        lambda a: a.queue("whistle"),
        MethodNotFound,
        "Clerk has no method 'whistle'",
    ),
    "an attribute": (lambda a: a.queue("name"), MethodNotFound, "Clerk has no method 'name'"),
    "a handler of ramet's own": (
        lambda a: a.queue("_cf_resumeTurns"),
        MethodNotFound,
        "Clerk has no method '_cf_resumeTurns'",
    ),
    "a method of another": (
        lambda a: a.schedule(1, Thing().__repr__),
        InvalidArguments,
        "A callback is a method of this Clerk or its name, not "
        "<bound method Thing.__repr__ of <Thing>>: only a name can be stored",
    ),
    "a method that takes too much": (
        lambda a: a.queue(a.greedy),
        InvalidArguments,
        "Clerk.greedy cannot be a callback: it is called with at most 2 arguments, "
        "so nothing is there for 'three'",
    ),
    "a payload": (
        lambda a: a.schedule(1, a.ring, {"a": Thing()}),
        NotJson,
        f"The payload of ring {NOT_JSON}",
    ),
    "a payload at an interval": (
        lambda a: a.schedule_every(1, a.ring, {"a": Thing()}),
        NotJson,
        f"The payload of ring {NOT_JSON}",
    ),
    "a payload in the queue": (
        lambda a: a.queue(a.ring, {"a": Thing()}),
        NotJson,
        f"The payload of ring {NOT_JSON}",
    ),
    "no number": (
        lambda a: a.schedule(1, a.ring, math.nan),
        NotJson,
        "The payload of ring is not JSON: nan (nan is not a JSON number)",
    ),
    "keys that are no texts": (
        lambda a: a.queue(a.ring, {1: 2}),
        NotJson,
        "The payload of ring is not JSON: {1: 2} (Dict key must be str)",
    ),
    "a short cron line": (
        lambda a: a.schedule("* * * *", a.ring),
        InvalidSchedule,
        "'* * * *' is not a cron line: it has 4 fields, not 5",
    ),
    "a cron line with a wrong minute": (
        lambda a: a.schedule("61 * * * *", a.ring),
        InvalidSchedule,
        "'61 * * * *' is not a cron line: Bad minute",
    ),
    "a cron line for a day that never comes": (
        lambda a: a.schedule("0 0 31 2 *", a.ring),
        InvalidSchedule,
        "'0 0 31 2 *' is not a cron line: Bad day-of-month",
    ),
    "a negative delay": (
        lambda a: a.schedule(-1, a.ring),
        InvalidSchedule,
        "A delay must be zero or more seconds, not -1",
    ),
    "a negative timedelta": (
        lambda a: a.schedule(timedelta(days=-1), a.ring),
        InvalidSchedule,
        "A delay must be zero or more seconds, not datetime.timedelta(days=-1)",
    ),
    "a delay of NaN": (
        lambda a: a.schedule(math.nan, a.ring),
        InvalidSchedule,
        "A delay must be zero or more seconds, not nan",
    ),
    "an endless delay": (
        lambda a: a.schedule(math.inf, a.ring),
        InvalidSchedule,
        "A delay must be zero or more seconds, not inf",
    ),
    "a delay beyond all calendars": (
        lambda a: a.schedule(1e300, a.ring),
        InvalidSchedule,
        "Nothing can be due after the year 9999: 1e+300",
    ),
    "no time at all": (
        lambda a: a.schedule(None, a.ring),
        InvalidArguments,
        "A schedule is due after seconds or a timedelta, at an aware datetime or by a cron line, "
        "not None",
    ),
    "a date without a time zone": (
        lambda a: a.schedule(datetime(2030, 1, 1), a.ring),  # noqa: DTZ001 - that is it
        InvalidSchedule,
        "A date must say its time zone: datetime.datetime(2030, 1, 1, 0, 0)",
    ),
    "an interval of nothing": (
        lambda a: a.schedule_every(0, a.ring),
        InvalidSchedule,
        f"{INTERVAL} 0",
    ),
    "a negative interval": (
        lambda a: a.schedule_every(-5, a.ring),
        InvalidSchedule,
        f"{INTERVAL} -5",
    ),
    "an interval of NaN": (
        lambda a: a.schedule_every(math.nan, a.ring),
        InvalidSchedule,
        f"{INTERVAL} nan",
    ),
    "an interval of a month": (
        lambda a: a.schedule_every(31 * A_DAY, a.ring),
        InvalidSchedule,
        f"{INTERVAL} 2678400",
    ),
    "an interval that is a text": (
        lambda a: a.schedule_every("1", a.ring),
        InvalidArguments,
        "An interval is in seconds or a timedelta, not '1'",
    ),
    "no attempt": (
        lambda a: a.schedule(1, a.ring, retry=ramet.RetryOptions(max_attempts=0)),
        InvalidOptions,
        "max_attempts must be a whole number, 1 or more, not 0",
    ),
    "a stash": (
        lambda a: a.run_fiber("work", a.keep),
        NotJson,
        f"The stash of the fiber 'work' {NOT_JSON}",
    ),
    "a fiber that is no function": (
        lambda a: a.start_fiber("work", "work"),
        InvalidArguments,
        "The fiber 'work' needs a function that takes its context, not 'work'",
    ),
    "the metadata of a fiber": (
        lambda a: a.start_fiber("work", a.work, metadata={"a": Thing()}),
        NotJson,
        f"The metadata of the fiber 'work' {NOT_JSON}",
    ),
    "a blank fiber id": (
        lambda a: a.start_fiber("work", a.work, fiber_id=" "),
        InvalidArguments,
        "fiber_id must be a text that is not blank, not ' '",
    ),
    "a blank fiber key": (
        lambda a: a.start_fiber("work", a.work, idempotency_key=""),
        InvalidArguments,
        "idempotency_key must be a text that is not blank, not ''",
    ),
    "a fiber key of another fiber": (
        lambda a: a.start_fiber("work", a.work, fiber_id="f1", idempotency_key="k2"),
        InvalidArguments,
        "The idempotency key 'k2' belongs to the fiber 'f2', not to 'f1'",
    ),
    "a fiber key used again for a new fiber": (
        lambda a: a.start_fiber("work", a.work, fiber_id="f3", idempotency_key="k1"),
        InvalidArguments,
        "The idempotency key 'k1' belongs to the fiber 'f1', not to 'f3'",
    ),
    "a new key for a known fiber": (
        lambda a: a.start_fiber("work", a.work, fiber_id="f1", idempotency_key="k3"),
        InvalidArguments,
        "The fiber 'f1' has the idempotency key 'k1', not 'k3'",
    ),
    "half a character as a fiber's name": (
        lambda a: a.start_fiber("x\ud83c", a.work),
        InvalidArguments,
        "A fiber's name holds half a character, which nothing can store: 'x\\ud83c'",
    ),
    "half a character as a fiber's key": (
        lambda a: a.start_fiber("work", a.work, idempotency_key="x\ud83c"),
        InvalidArguments,
        "idempotency_key holds half a character, which nothing can store: 'x\\ud83c'",
    ),
    "no id of a schedule": (
        lambda a: a.get_schedule(None),
        InvalidArguments,
        "The id of a schedule is a text, not None",
    ),
    "a list as the id of a schedule": (
        lambda a: a.cancel_schedule(["x"]),
        InvalidArguments,
        "The id of a schedule is a text, not ['x']",
    ),
    "the same in a list of schedules": (
        lambda a: a.list_schedules(id=["x"]),
        InvalidArguments,
        "The id of a schedule is a text, not ['x']",
    ),
    "a number as a time range": (
        lambda a: a.list_schedules(time_range=5),
        InvalidArguments,
        "A time range is a pair of dates, either of which may be None, not 5",
    ),
    "numbers in a time range": (
        lambda a: a.list_schedules(time_range=(1, 2)),
        InvalidArguments,
        "A time range is a pair of dates, either of which may be None, not (1, 2)",
    ),
    "no id of a queued call": (
        lambda a: a.get_queue(None),
        InvalidArguments,
        "The id of a queued call is a text, not None",
    ),
    "a list as the id of a queued call": (
        lambda a: a.dequeue(["x"]),
        InvalidArguments,
        "The id of a queued call is a text, not ['x']",
    ),
    "a list as the id of a fiber": (
        lambda a: a.cancel_fiber(["f1"]),
        InvalidArguments,
        "fiber_id is a text, not ['f1']",
    ),
    "a number to be run again": (
        lambda a: a.retry(5),
        InvalidArguments,
        "What is run again is a function, not 5",
    ),
    "no message": (
        lambda a: a.submit_messages([]),
        InvalidArguments,
        "A submission needs at least one message",
    ),
    "a message that is not JSON": (
        lambda a: a.submit_messages([{"a": Thing()}]),
        NotJson,
        f"A message {NOT_JSON}",
    ),
    "a message without parts": (
        lambda a: a.submit_messages([{"role": "user"}]),
        UnknownModelResult,
        "A message needs an id, a role and parts: {'role': 'user'}",
    ),
    "the metadata of a submission": (
        lambda a: a.submit_messages("hi", metadata={"a": Thing()}),
        NotJson,
        f"The metadata of a submission {NOT_JSON}",
    ),
    "a blank submission id": (
        lambda a: a.submit_messages("hi", submission_id=" "),
        InvalidArguments,
        "submission_id must be a text that is not blank, not ' '",
    ),
    "a submission key of another": (
        lambda a: a.submit_messages("hi", submission_id="s2", idempotency_key="k1"),
        InvalidArguments,
        "The idempotency key 'k1' belongs to the submission 's1', not to 's2'",
    ),
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    """A clerk that has fibers and a submission already."""
    async with Harness(agents=[Clerk], data_dir=tmp_path) as running:
        clerk = await running.agent(Clerk, "a")
        for number in "12":
            options = {"fiber_id": f"f{number}", "idempotency_key": f"k{number}"}
            await clerk.start_fiber("work", clerk.work, wait=True, **options)
        await clerk.submit_messages("hi", submission_id="s1", idempotency_key="k1")
        await running.settle()
        yield running


def written(host: Harness) -> dict[str, list[object]]:
    """Every row of the agent's database, and of the host's index of wake-ups."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    tables = [str(row["name"]) for row in host.rows(Clerk, "a", query)]
    found: dict[str, list[object]] = {
        table: [*map(str, host.rows(Clerk, "a", f"SELECT * FROM {table}"))]  # noqa: S608 - names of our own tables
        for table in tables
    }
    index = host.host._database
    assert index is not None
    found["wake-ups"] = [tuple(row) for row in index.query("SELECT * FROM ramet_wakeups")]
    return found


@pytest.mark.behaviour("SC-002", "SC-007", "QU-002", "FB-027", "FB-028", "SB-003", "SB-005")
async def test_what_makes_no_sense_is_refused_in_a_sentence_and_nothing_is_written(
    host: Harness,
) -> None:
    clerk = await host.agent(Clerk, "a")
    before = written(host)
    for what, (call, error, sentence) in REFUSED.items():
        with pytest.raises(error) as refusal:
            await call(clerk)
        assert (what, str(refusal.value)) == (what, sentence)
        assert (what, written(host)) == (what, before)
    await host.advance(60)
    assert written(host) == before


async def test_a_stash_outside_a_fiber_is_refused(host: Harness) -> None:
    with pytest.raises(NoCurrentFiber, match="there is nothing to keep it"):
        (await host.agent(Clerk, "a")).stash({"a": 1})


@pytest.mark.behaviour("FB-026")
async def test_a_fiber_key_used_twice_finds_the_fiber_and_runs_nothing(host: Harness) -> None:
    clerk = await host.agent(Clerk, "a")
    before = written(host)
    found = await clerk.start_fiber("other", clerk.keep, idempotency_key="k1")
    assert (found.accepted, found.fiber_id, found.name) == (False, "f1", "work")
    assert written(host) == before
