"""Looking at a data directory that nobody serves: what is seen, and that nothing is changed."""

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import DatabaseUnusable, DataDirectoryInUse, DataDirectoryNotFound
from ramet.storage import DataDirectory, Migration, combined

pytestmark = pytest.mark.behaviour("D15")

ADA = AgentPath.of(("Desk", "ada"))
KILLED = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE notes (text TEXT)")
database.execute("INSERT INTO notes VALUES ('kept')")
os.kill(os.getpid(), 9)
"""


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@contextmanager
def serving(data: Path) -> Iterator[DataDirectory]:
    directory = DataDirectory(data)
    directory.acquire()
    try:
        yield directory
    finally:
        directory.release()


def test_what_a_killed_process_left_in_its_log_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False)
    log = tmp_path / "agent.db-wal"
    before = (file.read_bytes(), log.read_bytes())
    with closing(DataDirectory(tmp_path).look_at(file)) as database:
        assert [row["text"] for row in database.query("SELECT text FROM notes")] == ["kept"]
    assert (file.read_bytes(), log.read_bytes()) == before


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False)
    (tmp_path / "agent.db-shm").unlink()
    (tmp_path / "agent.db-shm").symlink_to("elsewhere")  # which SQLite does not follow
    with pytest.raises(DatabaseUnusable) as refused:
        look(tmp_path, file)
    hint = f"(to read {file}-wal, SQLite has to write beside it)"
    assert str(refused.value).endswith(hint)


def look(folder: Path, file: Path) -> None:
    """Read a database."""
    with closing(DataDirectory(folder).look_at(file)) as database:
        database.query("SELECT text FROM notes")


def test_a_directory_that_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryNotFound, match="cannot be reached: File name too long"):
        DataDirectory(tmp_path / ("x" * 300)).acquire_to_read()


def test_looking_at_a_settled_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    schema = combined((Migration(component="agent", number=1, apply=lambda _: None),))
    with serving(tmp_path) as directory:
        directory.open(ADA, schema, fence=Fence("ada")).close()
        file = directory.file_of(ADA)
    with closing(DataDirectory(tmp_path).look_at(file)) as database:
        assert database.has_table("cf_agents_state")
        assert names(file.parent) == ["agent.db"]


def test_who_looks_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "odd name %20?#.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE notes (text TEXT)")
    with (
        closing(DataDirectory(tmp_path).look_at(file)) as database,
        pytest.raises(DatabaseUnusable, match="readonly"),
    ):
        database.run("INSERT INTO notes VALUES ('no')")


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="unable to open"):
        DataDirectory(tmp_path).look_at(tmp_path / "agent.db")
    assert names(tmp_path) == []


def test_readers_do_not_hinder_each_other_but_nobody_serves_meanwhile(tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    one, other = DataDirectory(tmp_path), DataDirectory(tmp_path)
    one.acquire_to_read()
    other.acquire_to_read()
    one.release()
    with pytest.raises(DataDirectoryInUse):
        DataDirectory(tmp_path).acquire()
    other.release()
    with serving(tmp_path), pytest.raises(DataDirectoryInUse):
        one.acquire_to_read()


def test_a_directory_that_is_none_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryNotFound, match="There is no data directory"):
        DataDirectory(tmp_path / "missing").acquire_to_read()
    with pytest.raises(DataDirectoryNotFound, match=r"there is no ramet\.lock in it"):
        DataDirectory(tmp_path).acquire_to_read()
    assert names(tmp_path) == []


def test_a_lock_that_cannot_be_tried_is_no_lock_that_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(handle: int, kind: int) -> None:
        raise OSError(5, os.strerror(5))

    with serving(tmp_path):
        pass
    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(OSError, match="Input/output error"):
        DataDirectory(tmp_path).acquire_to_read()
