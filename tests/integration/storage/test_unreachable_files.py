"""Files that may not be written or read, or that another process holds."""

import time
from pathlib import Path

import pytest

from ramet.errors import DatabaseUnusable, DataDirectoryNotWritable
from ramet.testing import Harness
from tests.integration.storage.ground import Clerk, ask, bound_by_modes, clerks, file_of, locked

LONG = 0.8
SHORT = 0.3
"""Seconds; what waits for a lock waits for one."""


async def asked(harness: Harness, name: str) -> object:
    """How a question to an agent ends."""
    return (await ask(await harness.connect(Clerk, name), "one"))["outcome"]


async def test_a_file_that_cannot_be_written_can_still_be_read() -> None:
    with bound_by_modes() as data:
        async with clerks(data) as harness:
            await (await harness.agent(Clerk, "ill")).note("before")
            file = file_of(harness, "ill")
            await harness.evict(Clerk, "ill")
            file.chmod(0o400)
            clerk = await harness.agent(Clerk, "ill")
            assert await clerk.count() == 1
            with pytest.raises(DatabaseUnusable) as refused:
                await clerk.note("meanwhile")
            said = "cannot be used: attempt to write a readonly database"
            assert str(refused.value) == f"The database {file} {said}"
            client = await harness.connect(Clerk, "ill")
            assert (await ask(client, "meanwhile"))["outcome"] == "error"
            assert await asked(harness, "well") == "completed"
            await harness.evict(Clerk, "ill", force=True)
            for each in file.parent.iterdir():  # SQLite gives its logs the modes of the file
                each.chmod(0o600)
            assert (await ask(client, "after"))["outcome"] == "completed"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o500, "Cannot use the database {file}: attempt to write a readonly database"),
        (0o000, "The database {file} of Clerk:ill cannot be reached: Permission denied"),
    ],
)
async def test_a_folder_that_cannot_be_written_or_read_is_told_and_the_others_go_on(
    mode: int, said: str
) -> None:
    with bound_by_modes() as data:
        async with clerks(data) as harness:
            await (await harness.agent(Clerk, "ill")).note("before")
            file = file_of(harness, "ill")
            await harness.evict(Clerk, "ill")
            file.parent.chmod(mode)
            with pytest.raises(DatabaseUnusable) as refused:
                await harness.agent(Clerk, "ill")
            assert str(refused.value) == said.format(file=file)
            assert await asked(harness, "well") == "completed"
            file.parent.chmod(0o700)
            assert await (await harness.agent(Clerk, "ill")).count() == 1


async def test_a_file_that_cannot_be_read_is_told() -> None:
    with bound_by_modes() as data:
        async with clerks(data) as harness:
            await harness.agent(Clerk, "ill")
            file = file_of(harness, "ill")
            await harness.evict(Clerk, "ill")
            file.chmod(0o000)
            with pytest.raises(DatabaseUnusable, match=r"agent\.db: unable to open"):
                await harness.agent(Clerk, "ill")


async def test_a_new_agent_in_a_folder_that_cannot_be_written_is_refused() -> None:
    with bound_by_modes() as data:
        async with clerks(data) as harness:
            (data / "agents").chmod(0o500)
            with pytest.raises(DatabaseUnusable, match=r"agent\.db cannot be made: Perm"):
                await harness.agent(Clerk, "new")


async def test_a_data_directory_that_cannot_be_written_is_one_sentence() -> None:
    with bound_by_modes() as data:
        (data / "agents").mkdir()
        data.chmod(0o500)
        with pytest.raises(DataDirectoryNotWritable) as refused:
            await clerks(data).host.start()
        assert (
            str(refused.value) == f"The data directory {data} cannot be written: Permission denied"
        )


async def test_a_locked_file_is_waited_for_once_and_read_meanwhile(tmp_path: Path) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await clerk.note("before")
        with locked(file_of(harness, "ill")):
            waits = []
            for _ in range(3):
                begun = time.monotonic()
                with pytest.raises(DatabaseUnusable, match=r"cannot be used: database is locked"):
                    await clerk.note("meanwhile")
                waits.append(time.monotonic() - begun)
            assert waits[0] > LONG
            assert max(waits[1:]) < SHORT
            assert await clerk.count() == 1
            assert await asked(harness, "ill") == "error"
            assert await asked(harness, "well") == "completed"
        await clerk.note("after")
        assert await clerk.count() == 2
        with locked(file_of(harness, "ill")):
            begun = time.monotonic()
            with pytest.raises(DatabaseUnusable):
                await clerk.note("again")
            assert time.monotonic() - begun > LONG


async def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await clerk.note("before")
        with locked(file_of(harness, "ill")):
            pass
        await clerk.note("after")
        assert await clerk.count() == 2


async def test_an_agent_is_opened_while_its_file_is_locked(tmp_path: Path) -> None:
    async with clerks(tmp_path) as harness:
        await (await harness.agent(Clerk, "ill")).note("before")
        await harness.evict(Clerk, "ill")
        with locked(file_of(harness, "ill")):
            assert await (await harness.agent(Clerk, "ill")).count() == 1


async def test_wake_ups_are_kept_while_their_index_is_locked(tmp_path: Path) -> None:
    async with clerks(tmp_path) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await clerk.schedule(10, clerk.note, "due")
        with locked(tmp_path / "host.db"):
            with pytest.raises(DatabaseUnusable, match=r"host\.db cannot be used: database"):
                await clerk.schedule(5, clerk.note, "not stored")
            await harness.advance(15)
        await harness.advance(60)
        assert await clerk.count() == 1
        assert await clerk.list_schedules() == []
