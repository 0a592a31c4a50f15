"""A file that is not what it was: its agent says so in one sentence, the others go on."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ramet.errors import DatabaseUnusable
from ramet.testing import Harness
from tests.histories.desk import STEADY_CALL, Desk, Steady
from tests.histories.make import FOLDER, desk_harness
from tests.histories.test_histories import statuses, unpacked, words_of
from tests.integration.storage.ground import Clerk, ask, clerks, file_of

ROOT_PAGE = "SELECT rootpage FROM sqlite_schema WHERE name = ?"


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_to_its_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def overwritten(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def another_agents(file: Path) -> None:
    other = next(each for each in file.parents[2].rglob("agent.db") if each != file)
    shutil.copy(other, file)


def another_programs(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE accounts (id)")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def page_lost(file: Path, table: str) -> None:
    """Overwrite the first page of a table, as a failing disk does."""
    with closing(sqlite3.connect(file)) as database:
        page = database.execute(ROOT_PAGE, (table,)).fetchone()[0]
        size = database.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = os.urandom(size)
    file.write_bytes(content)


async def stored(data: Path) -> tuple[Path, Path]:
    """Let two agents store something, and end; their files."""
    async with clerks(data) as harness:
        for name in ("ill", "well"):
            clerk = await harness.agent(Clerk, name)
            await clerk.note("a note")
            await clerk.remember("a state")
            await ask(await harness.connect(Clerk, name), "before")
        clerk = await harness.agent(Clerk, "ill")
        await clerk.schedule(10, clerk.note, "due")
        return file_of(harness, "ill"), file_of(harness, "well")


async def well_goes_on(harness: Harness) -> None:
    client = await harness.connect(Clerk, "well")
    assert (await ask(client, "after"))["outcome"] == "completed"
    assert await (await harness.agent(Clerk, "well")).count() == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_in_half, "Cannot use the database {file}: database disk image is malformed"),
        (cut_to_its_header, "Cannot use the database {file}: database disk image is malformed"),
        (overwritten, "Cannot use the database {file}: file is not a database"),
        (emptied, "The database {file} of Clerk:ill is empty: its content is lost"),
        (another_agents, "The database {file} does not belong to Clerk:ill"),
        (another_programs, "The database {file} of Clerk:ill is not one of an agent"),
        (a_folder, "Cannot open the database {file}: unable to open database file"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_damaged_file_is_refused_in_one_sentence_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[Path], None], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    file, _ = await stored(tmp_path)
    damage(file)
    before = None if file.is_dir() else file.read_bytes()
    async with clerks(tmp_path, seed=2) as harness:
        for _ in range(2):
            with pytest.raises(DatabaseUnusable) as refused:
                await harness.agent(Clerk, "ill")
            assert str(refused.value) == said.format(file=file)
        with pytest.raises(DatabaseUnusable):
            await harness.connect(Clerk, "ill")
        await well_goes_on(harness)
        await harness.advance(100)
        failed = [
            each for each in caplog.records if "The alarm of Clerk:ill failed" in each.message
        ]
        assert 1 <= len(failed) <= 5
        assert not any(each.exc_info for each in failed)
    assert (None if file.is_dir() else file.read_bytes()) == before


async def test_a_lost_page_keeps_only_its_own_table_from_being_read(tmp_path: Path) -> None:
    file, _ = await stored(tmp_path)
    page_lost(file, "notes")
    async with clerks(tmp_path, seed=2) as harness:
        clerk = await harness.agent(Clerk, "ill")
        with pytest.raises(DatabaseUnusable, match=r"agent\.db cannot be used: database disk im"):
            await clerk.count()
        assert await clerk.recalled() == {"text": "a state"}
        assert (await ask(await harness.connect(Clerk, "ill"), "after"))["outcome"] == "completed"
        await well_goes_on(harness)


async def test_a_lost_page_of_the_transcript_keeps_the_rest_of_the_agent_at_work(
    tmp_path: Path,
) -> None:
    file, _ = await stored(tmp_path)
    page_lost(file, "cf_ai_chat_agent_messages")
    async with clerks(tmp_path, seed=2) as harness:
        clerk = await harness.agent(Clerk, "ill")
        with pytest.raises(DatabaseUnusable, match=r"agent\.db cannot be used: database disk im"):
            assert clerk.messages
        await harness.advance(60)
        assert await clerk.count() == 2
        await well_goes_on(harness)


async def test_a_write_ahead_log_that_is_none_is_left_out(tmp_path: Path) -> None:
    file, _ = await stored(tmp_path)
    file.with_name(f"{file.name}-wal").write_bytes(os.urandom(5000))
    async with clerks(tmp_path, seed=2) as harness:
        assert await (await harness.agent(Clerk, "ill")).recalled() == {"text": "a state"}


@pytest.mark.parametrize("damage", [cut_in_half, overwritten, emptied])
async def test_a_damaged_child_ends_its_run_and_not_the_turn_of_its_parent(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    harness = desk_harness(unpacked(sorted(FOLDER.glob("*.zip"))[-1], tmp_path))
    run_id = f"agent-tool:{STEADY_CALL}"
    damage(harness.host.files.file_of(harness.path(Desk, "main", [(Steady, run_id)])))
    async with harness:
        await harness.advance(300)
        desk = await harness.agent(Desk, "main")
        assert statuses(harness)[run_id] in {"error", "interrupted"}
        assert words_of(desk)[-1] == "Well said."
        assert {"queued second", "run-moss came back completed"} <= {*desk.noted()}


@pytest.mark.parametrize("damage", [cut_in_half, overwritten])
async def test_a_damaged_index_of_wake_ups_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    await stored(tmp_path)
    damage(tmp_path / "host.db")
    with pytest.raises(DatabaseUnusable, match=r"the database .*host\.db: "):
        await clerks(tmp_path).host.start()


async def test_an_index_of_wake_ups_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    await stored(tmp_path)
    (tmp_path / "host.db").unlink()
    async with clerks(tmp_path, seed=2) as harness:
        clerk = await harness.agent(Clerk, "ill")
        await harness.advance(60)
        assert await clerk.count() == 2


@pytest.mark.parametrize("damage", [cut_in_half, overwritten, emptied])
async def test_a_file_that_is_damaged_under_an_open_agent_is_told_when_it_is_read(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    file, _ = await stored(tmp_path)
    async with clerks(tmp_path, seed=2) as harness:
        await harness.agent(Clerk, "ill")
        client = await harness.connect(Clerk, "ill")
        damage(file)
        last = await ask(client, "meanwhile")
        assert (last["done"], last["outcome"]) == (True, "error")
        await harness.evict(Clerk, "ill", force=True)
        with pytest.raises(DatabaseUnusable, match=str(file)):
            await harness.agent(Clerk, "ill")
        await well_goes_on(harness)
