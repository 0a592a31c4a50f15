"""A disk that takes no more: what was acknowledged stays, and work goes on once there is room.

Full in three real ways: SQLite's own limit (`max_page_count`, SQLITE_FULL, one agent), the system's
limit on files (RLIMIT_FSIZE, an error of input and output, all agents of the process), and in
`test_disk_of_a_server.py` a file system without space (ENOSPC).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from ramet.errors import DatabaseUnusable
from ramet.testing import Harness
from tests.integration.storage.ground import Clerk, ask, clerks, file_of, no_file_larger_than

LITTLE = 4 * 1024
Full: TypeAlias = Callable[[Harness, Clerk], AbstractContextManager[None]]


@contextmanager
def no_more_pages(harness: Harness, clerk: Clerk) -> Iterator[None]:
    """One agent's database grows no more."""
    clerk.sql("PRAGMA max_page_count = 1")
    yield
    clerk.sql("PRAGMA max_page_count = 1000000")


@contextmanager
def no_more_bytes(harness: Harness, clerk: Clerk) -> Iterator[None]:
    """No file of the process grows more than a little."""
    file = file_of(harness, "ill")
    log = file.with_name(f"{file.name}-wal")
    with no_file_larger_than(log.stat().st_size + LITTLE):
        yield


WAYS = pytest.mark.parametrize("full", [no_more_pages, no_more_bytes])


async def filled(clerk: Clerk) -> int:
    """Write until the disk is full; how many notes were acknowledged."""
    for number in range(1000):
        try:
            await clerk.note("x" * 500)
        except DatabaseUnusable:
            return number
    raise AssertionError("The disk does not get full")


@WAYS
async def test_what_was_acknowledged_before_the_disk_was_full_is_there(
    tmp_path: Path, full: Full
) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await clerk.note("first")
        with full(harness, clerk):
            noted = 1 + await filled(clerk)
            assert await clerk.count() == noted
        await harness.crash()
        await harness.restart()
        assert await (await harness.agent(Clerk, "ill")).count() == noted


@WAYS
async def test_each_kind_of_work_says_that_the_disk_is_full(tmp_path: Path, full: Full) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await clerk.remember("before")
        with full(harness, clerk):
            await filled(clerk)
            said = r"The database .*\.db cannot be used: "
            with pytest.raises(DatabaseUnusable, match=said):
                clerk.set_state({"text": "y" * LITTLE})
            with pytest.raises(DatabaseUnusable, match=said):
                await clerk.schedule(10, clerk.note, "y" * LITTLE)
            with pytest.raises(DatabaseUnusable, match=said):
                await clerk.queue(clerk.note, "y" * LITTLE)
            assert await clerk.recalled() == {"text": "before"}
        assert await clerk.list_schedules() == []


@WAYS
async def test_a_question_gets_an_error_and_the_next_an_answer_once_there_is_room(
    tmp_path: Path, full: Full
) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        client = await harness.connect(Clerk, "ill")
        assert (await ask(client, "before"))["outcome"] == "completed"
        with full(harness, clerk):
            await filled(clerk)
            last = await ask(client, "meanwhile")
            assert (last["done"], last["outcome"]) == (True, "error")
            assert str(last["body"]).startswith("Something went wrong inside the server (error ")
            assert [type(error) for error in clerk.errors] == [DatabaseUnusable]
            assert client.closed is None
            assert (await harness.connect(Clerk, "ill")).closed is None
        assert (await ask(client, "after"))["outcome"] == "completed"


async def test_the_other_agents_go_on_while_one_has_no_room(tmp_path: Path) -> None:
    async with clerks(tmp_path) as harness:
        ill, well = await harness.agent(Clerk, "ill"), await harness.connect(Clerk, "well")
        with no_more_pages(harness, ill):
            await filled(ill)
            assert (await ask(well, "one"))["outcome"] == "completed"
            assert (await ask(await harness.connect(Clerk, "new"), "two"))["outcome"] == "completed"


async def test_an_agent_that_cannot_be_stored_is_refused_and_made_once_there_is_room(
    tmp_path: Path,
) -> None:
    async with clerks(tmp_path) as harness:
        await harness.agent(Clerk, "old")
        with no_file_larger_than(1024):
            with pytest.raises(DatabaseUnusable, match=r"agent\.db cannot be made: File too large"):
                await harness.agent(Clerk, "new")
            assert await (await harness.agent(Clerk, "old")).recalled() == {}
        assert await (await harness.agent(Clerk, "new")).count() == 0


async def test_alarms_are_tried_again_when_the_disk_has_no_room_even_to_note_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with clerks(tmp_path) as harness:
        clerk, other = await harness.agent(Clerk, "a"), await harness.agent(Clerk, "b")
        await clerk.schedule(10, clerk.note, "due")
        await other.schedule(15, other.note, "due")
        with no_file_larger_than(1024):
            await harness.advance(40)
        tries = [each for each in caplog.messages if "failed; it is tried again" in each]
        assert 2 <= len(tries) <= 4
        await harness.advance(60)
        assert (await clerk.count(), await other.count()) == (1, 1)
