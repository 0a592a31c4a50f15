"""One database: transactions, announcements after the commit, the fence."""

from pathlib import Path

import pytest

from ramet.core.fence import Fence
from ramet.errors import DatabaseUnusable, InstanceGone
from ramet.storage import Database
from tests.support.databases import open_database


def opened(tmp_path: Path, fence: Fence | None = None) -> Database:
    database = open_database(tmp_path / "a.db", fence=fence)
    database.run("CREATE TABLE IF NOT EXISTS t (a)")
    return database


def test_a_transaction_that_raises_leaves_nothing_and_announces_nothing(tmp_path: Path) -> None:
    database = opened(tmp_path)
    told: list[str] = []

    def fail() -> None:
        with database.transaction():
            database.run("INSERT INTO t VALUES (1)")
            database.after_commit(lambda: told.append("one"))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert database.query("SELECT * FROM t") == []
    database.run("INSERT INTO t VALUES (2)")
    assert told == []


def test_a_commit_that_fails_announces_nothing_later(tmp_path: Path) -> None:
    """SQLite rolls back by itself when the disk is full: the commit finds no transaction then."""
    database = opened(tmp_path)
    told: list[str] = []

    def lose() -> None:
        with database.transaction():
            database.after_commit(lambda: told.append("one"))
            database.run("INSERT INTO t VALUES (1)")
            database.run("ROLLBACK")

    with pytest.raises(DatabaseUnusable, match="SQLite has undone the transaction by itself"):
        lose()
    database.run("INSERT INTO t VALUES (2)")
    assert told == []


def test_what_is_announced_can_be_read_by_another_process(tmp_path: Path) -> None:
    database = opened(tmp_path)
    seen: list[int] = []

    def look() -> None:
        other = Database(tmp_path / "a.db", fence=Fence("another"))
        seen.append(len(other.query("SELECT * FROM t")))
        other.close()

    with database.transaction():
        database.run("INSERT INTO t VALUES (1)")
        database.after_commit(look)
        with database.transaction():
            database.run("INSERT INTO t VALUES (2)")
        assert seen == []
    assert seen == [2]


def test_an_announcement_outside_a_transaction_is_made_at_once(tmp_path: Path) -> None:
    told: list[str] = []
    opened(tmp_path).after_commit(lambda: told.append("now"))
    assert told == ["now"]


def test_values_may_be_numbered_and_a_number_in_a_text_is_none(tmp_path: Path) -> None:
    """Python 3.12 warns of numbers as of names."""
    database = opened(tmp_path)
    assert tuple(database.query("SELECT ?2, ?1, ?2", 1, 2)[0]) == (2, 1, 2)
    assert tuple(database.query("SELECT '?1', ?", 1)[0]) == ("?1", 1)
    assert database.run("INSERT INTO t SELECT ?1 WHERE ?1 = ?2", 3, 3) == 1


def test_commits_are_counted_once_each(tmp_path: Path) -> None:
    database = opened(tmp_path)
    before = database.commits
    with database.transaction():
        database.run("INSERT INTO t VALUES (1)")
        database.run("INSERT INTO t VALUES (2)")
    database.run("INSERT INTO t VALUES (3)")
    assert database.commits == before + 2


@pytest.mark.behaviour("D11")
def test_a_database_behind_a_fallen_fence_refuses_everything(tmp_path: Path) -> None:
    fence = Fence("Room 7")
    database = opened(tmp_path, fence)
    fence.drop("it was aborted")
    with pytest.raises(InstanceGone, match="The instance of Room 7 is gone: it was aborted"):
        database.run("INSERT INTO t VALUES (1)")
    with pytest.raises(InstanceGone), database.transaction():
        pass


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"this is not a database, just some text that is long enough" * 20)
    with pytest.raises(DatabaseUnusable, match=r"Cannot use the database .*a\.db"):
        Database(file, fence=Fence("a test"))
