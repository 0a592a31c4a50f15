"""A deployment that lacks the class of a child: its runs wait a while, and then end."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ramet
from ramet.testing import Harness
from tests.integration.agent_tools.children import HandChild, events
from tests.integration.agent_tools.conftest import event_of
from tests.integration.agent_tools.detached_stage import Boss, Office, Reporter

MINUTE = 60.0
GONE = "The agent class 'Reporter' of this run's child is not registered any more."


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    yield
    Boss.log.clear()
    HandChild.calls.clear()


class Deployments:
    """Servers over the same data, one after another, on one clock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._elapsed = 0.0

    @asynccontextmanager
    async def server(self, *children: type) -> AsyncIterator[Office]:
        """A server that knows these children."""
        harness = Harness(agents=[Boss], sub_agents=children, data_dir=self._path)
        harness.clock.move(self._elapsed)
        async with harness:
            yield Office(harness)
            self._elapsed = harness.clock.monotonic()
            await harness.crash()


async def test_a_run_whose_childs_class_is_gone_ends_after_ten_minutes_and_is_delivered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deployments = Deployments(tmp_path)
    async with deployments.server(Reporter) as office:
        await office.let_go()
    with caplog.at_level(logging.WARNING):
        async with deployments.server() as office:
            await office.advance(9 * MINUTE)
            assert office.row()["status"] == "running"
            assert office.calls() == []
            boss = await office.boss()
            assert [run.status for run in boss.list_agent_tool_runs()] == ["running"]
            client = await office.client()
            await office.advance(3 * MINUTE)
            assert office.calls() == ["done r error"]
            assert office.row()["error_message"] == GONE
            assert office.ticks() == []
            assert boss.errors == []
            assert event_of(events(client.frames)[-1])["kind"] == "error"
    assert [record.getMessage() for record in caplog.records] == [
        "Boss:b waits for runs of the class 'Reporter', which is not registered: "
        "they end after 10 minutes unless it comes back"
    ]
    assert [record.exc_info for record in caplog.records] == [None]


async def test_a_class_that_comes_back_in_time_finds_its_run(tmp_path: Path) -> None:
    deployments = Deployments(tmp_path)
    async with deployments.server(Reporter) as office:
        await office.let_go()
    async with deployments.server() as office:
        await office.advance(9 * MINUTE)
    async with deployments.server(Reporter) as office:
        await office.advance(30 * MINUTE)
        assert office.row()["status"] == "running"
        assert office.row()["class_gone_since"] is None
        (await office.child()).end(summary="after all")
        await office.settle()
        assert office.calls() == ["done r completed"]
    async with deployments.server() as office:  # gone again, nothing is counted twice
        await office.advance(30 * MINUTE)
        assert office.calls() == ["done r completed"]


async def test_each_time_a_class_is_gone_its_runs_wait_anew(tmp_path: Path) -> None:
    deployments = Deployments(tmp_path)
    async with deployments.server(Reporter) as office:
        await office.let_go()
    for _ in range(2):
        async with deployments.server() as office:
            await office.advance(9 * MINUTE)
            assert office.row()["status"] == "running"
        async with deployments.server(Reporter) as office:
            await office.advance(3 * MINUTE)
            assert office.row()["status"] == "running"


async def test_the_time_counts_over_servers_that_come_and_go(tmp_path: Path) -> None:
    deployments = Deployments(tmp_path)
    async with deployments.server(Reporter) as office:
        await office.let_go()
    for _ in range(3):
        async with deployments.server() as office:
            await office.advance(4 * MINUTE)
    assert Boss.log[-1] == "done r error"


async def test_a_run_whose_childs_class_is_gone_can_be_cancelled_and_runs_out_of_its_budget(
    tmp_path: Path,
) -> None:
    deployments = Deployments(tmp_path)
    async with deployments.server(Reporter) as office:
        await office.let_go("c")
        await office.let_go("b", max_budget=5 * MINUTE)
    async with deployments.server() as office:
        boss: ramet.Agent[object] = await office.boss()
        await boss.cancel_agent_tool("c", "enough")
        assert office.calls() == ["done c aborted"]
        await office.advance(6 * MINUTE)
        assert office.calls() == ["done c aborted", "done b interrupted"]
        await office.advance(6 * MINUTE)
        assert office.calls() == ["done c aborted", "done b interrupted", "done b error"]
        assert (await office.boss()).errors == []
