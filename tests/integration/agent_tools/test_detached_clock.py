"""Detached runs when the wall clock is set back: nothing waits until it has caught up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ramet.testing import Gate, Harness
from tests.integration.agent_tools.children import HandChild
from tests.integration.agent_tools.detached_stage import (
    Boss,
    NoTail,
    Office,
    Reporter,
    opened_office,
)

MINUTE = 60.0
DAY = 86_400

BY_CRASH = pytest.mark.parametrize("crash", [False, True])


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async for opened in opened_office(tmp_path):
        _step(opened.harness, DAY)
        yield opened


def _step(harness: Harness, seconds: int) -> None:
    """Set the wall clock; timers run on as before."""
    harness.clock._start_ms += seconds * 1_000


async def set_back(office: Office, *, crash: bool) -> None:
    """Set the clock back by a day, while the server runs or between two."""
    if crash:
        await office.harness.crash()
    _step(office.harness, -DAY)
    if crash:
        await office.harness.restart()


@BY_CRASH
@pytest.mark.parametrize("cls", [Reporter, NoTail])
async def test_a_run_that_goes_silent_is_given_up(
    office: Office, cls: type[Reporter], *, crash: bool
) -> None:
    await office.let_go(cls=cls)
    (await office.child(cls=cls)).progress(0.1)
    await office.settle()
    await set_back(office, crash=crash)
    await office.advance(9 * MINUTE)
    assert office.row()["status"] == "running"
    await office.advance(6 * MINUTE)
    assert (await office.boss()).results[0][1].reason == "no-progress"


@BY_CRASH
async def test_a_run_has_its_whole_budget_and_not_the_days_as_well(
    office: Office, *, crash: bool
) -> None:
    await office.let_go(max_budget=20 * MINUTE)
    await set_back(office, crash=crash)
    await office.advance(19 * MINUTE)
    assert office.row()["status"] == "running"
    await office.advance(6 * MINUTE)
    assert (await office.boss()).results[0][1].reason == "budget-exceeded"


async def test_a_delivery_that_a_crash_has_cut_is_made_again_after_its_lease(
    office: Office,
) -> None:
    Boss.gate = Gate()
    await office.let_go()
    (await office.child()).end()
    await office.settle()
    await office.harness.crash()
    Boss.gate = None
    _step(office.harness, -DAY)
    await office.harness.restart()
    await office.advance(5 * MINUTE)
    assert office.calls() == ["done r completed"] * 2


async def test_a_callback_that_hangs_on_a_give_up_does_not_keep_the_end_from_coming(
    office: Office,
) -> None:
    Boss.gate = Gate()
    await office.let_go(max_budget=10)
    await office.advance(15)
    assert office.calls() == ["done r interrupted"]
    await set_back(office, crash=False)
    await office.advance(6 * MINUTE)
    assert office.calls() == ["done r interrupted", "done r aborted"]


async def test_a_run_whose_child_was_never_begun_fails(office: Office) -> None:
    HandChild.stalls_on.add("start")
    call = asyncio.get_running_loop().create_task(office.let_go())
    await office.settle()
    call.cancel()
    await set_back(office, crash=True)
    HandChild.stalls_on.clear()
    await office.advance(7 * MINUTE)
    assert office.calls() == ["done r error"]


def moments(office: Office, names: Sequence[str]) -> list[object]:
    row = office.row()
    return [row[name] for name in names]


async def test_what_is_past_stays_as_it_is(office: Office) -> None:
    names = ["started_at", "last_progress_at", "detached_max_budget_at"]
    await office.let_go()
    (await office.child()).progress(0.1)
    await office.settle()
    await office.advance(5 * MINUTE)
    before = moments(office, names)
    _step(office.harness, -60)
    await office.restart()
    await office.advance(5 * MINUTE)
    assert moments(office, names) == before
