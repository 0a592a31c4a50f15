"""A wall clock that is set forward or back, or stands still while the machine sleeps."""

import asyncio
import logging
from pathlib import Path

import pytest

import ramet
from ramet.host.wakeups import LONGEST_WAIT_MS
from ramet.testing import Harness

HOUR = 3_600
DAYS = 400 * 86_400
DONE: list[object] = []


class Sleeper(ramet.Agent[None]):
    async def plan(self, seconds: float) -> None:
        await self.schedule(seconds, self.ring, "once")

    async def repeat(self, seconds: float) -> None:
        await self.schedule_every(seconds, self.ring, "again")

    async def repeat_by(self, line: str) -> None:
        await self.schedule(line, self.ring, "cron")

    async def ring(self, payload: object) -> None:
        DONE.append(payload)

    async def hang(self) -> None:
        await self.schedule_every(5, self.hanging)

    async def hanging(self) -> None:
        DONE.append("begun")
        await asyncio.get_running_loop().create_future()

    async def times(self) -> list[int]:
        return [found.time for found in await self.list_schedules()]


def step(h: Harness, seconds: int) -> None:
    """Set the wall clock; timers run on as before."""
    h.clock._start_ms += seconds * 1_000


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


async def test_a_wall_clock_that_is_set_forward_is_noticed_soon(tmp_path: Path) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        await h.stub(Sleeper, "a").plan(HOUR)
        await h.crash()
        await h.restart()
        await h.advance(10)
        step(h, HOUR)
        await h.advance(LONGEST_WAIT_MS / 1_000)
        assert DONE == ["once"]


async def test_who_becomes_due_by_a_step_while_others_are_read_is_read_too(tmp_path: Path) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        await h.stub(Sleeper, "a").plan(10)
        await h.stub(Sleeper, "b").plan(HOUR)
        index = h.host._wakeups
        assert index is not None
        read = index.due(10)
        step(h, 2 * HOUR)
        index.stop()
        index.watch()
        assert read == []
        await h.advance(1)
        assert DONE == ["once", "once"]


@pytest.mark.parametrize("back", [HOUR, DAYS])
@pytest.mark.parametrize("crash", [False, True])
async def test_what_repeats_goes_on_after_the_wall_clock_was_set_back(
    tmp_path: Path, *, back: int, crash: bool
) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        step(h, back)
        await h.stub(Sleeper, "a").repeat(2)
        await h.stub(Sleeper, "b").repeat_by("* * * * *")
        await h.advance(63)
        if crash:
            await h.crash()
        DONE.clear()
        step(h, -back)
        if crash:
            await h.restart()
        await h.advance(LONGEST_WAIT_MS / 1_000 + 4)
        assert DONE.count("again") >= 2
        await h.advance(60)
        assert DONE.count("cron") >= 1
        assert len(DONE) <= 60


async def test_a_one_shot_keeps_its_date_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        step(h, HOUR)
        await h.stub(Sleeper, "a").plan(60)
        before = await h.stub(Sleeper, "a").times()
        step(h, -HOUR)
        await h.advance(HOUR)
        assert DONE == []
        assert await h.stub(Sleeper, "a").times() == before
        await h.advance(61)
        assert DONE == ["once"]


async def test_an_interval_that_was_cut_off_in_the_future_is_taken_up_and_the_log_is_true(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Harness(agents=[Sleeper], data_dir=tmp_path) as h:
        step(h, DAYS)
        await h.stub(Sleeper, "a").hang()
        await h.advance(6)
        await h.crash()
        step(h, -DAYS)
        await h.restart()
        with caplog.at_level(logging.WARNING):
            await h.advance(40)
        assert DONE == ["begun"] * 2
        assert "the interval hanging was cut off with its process, it is run anew" in caplog.text
        assert "hangs" not in caplog.text
