"""The data directory: names that cannot escape or collide, the lock, the identity in each file."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import DatabaseUnusable, DataDirectoryInUse, DataDirectoryNotWritable
from ramet.storage import Database, DataDirectory, Migration, combined
from tests.support.databases import left_open
from tests.support.holding import held_by_another_process


def _create(database: Database) -> None:
    database.run("CREATE TABLE notes (text)")


SCHEMA = combined((Migration(component="agent", number=1, apply=_create),))

names = st.text(min_size=1, max_size=40)
paths = st.lists(st.tuples(names, names), min_size=1, max_size=3).map(
    lambda steps: AgentPath.of(*steps)
)


@given(paths)
def test_no_name_leads_out_of_the_data_directory(path: AgentPath) -> None:
    file = DataDirectory(Path("/data")).file_of(path)
    assert file.resolve().is_relative_to("/data/agents")
    assert all(len(part.encode()) < 100 for part in file.parts)


@given(paths, paths)
def test_two_agents_never_share_a_file(one: AgentPath, other: AgentPath) -> None:
    directory = DataDirectory(Path("/data"))
    assert (directory.file_of(one) == directory.file_of(other)) == (one == other)


def test_a_sub_agent_lies_beside_its_root() -> None:
    directory = DataDirectory(Path("/data"))
    root = AgentPath.of(("Assistant", "alice"))
    child = root.child("Researcher", "run/1")
    assert directory.file_of(child).parent.parent == directory.file_of(root).parent


def test_an_agent_finds_what_it_stored(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.acquire()
    path = AgentPath.of(("Assistant", "a/../b"))
    first = directory.open(path, SCHEMA, fence=Fence("one"))
    first.run("INSERT INTO notes VALUES ('kept')")
    first.close()
    again = directory.open(path, SCHEMA, fence=Fence("two"))
    assert [row["text"] for row in again.query("SELECT text FROM notes")] == ["kept"]
    again.close()


def test_a_file_that_belongs_to_another_agent_is_refused(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.acquire()
    alice, bob = AgentPath.of(("A", "alice")), AgentPath.of(("A", "bob"))
    directory.open(alice, SCHEMA, fence=Fence("one")).close()
    directory.file_of(bob).parent.mkdir(parents=True)
    directory.file_of(alice).rename(directory.file_of(bob))
    with pytest.raises(DatabaseUnusable, match="does not belong to A:bob"):
        directory.open(bob, SCHEMA, fence=Fence("two"))


@pytest.mark.behaviour("AT-032")
def test_a_current_database_runs_no_schema_changes(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.acquire()
    path = AgentPath.of(("A", "a"))
    database = directory.open(path, SCHEMA, fence=Fence("one"))
    before = database.query("PRAGMA schema_version")[0][0]
    database.close()
    again = directory.open(path, SCHEMA, fence=Fence("two"))
    assert again.query("PRAGMA schema_version")[0][0] == before
    again.close()


@pytest.mark.behaviour("AT-032")
def test_an_older_database_gains_what_is_missing_and_keeps_its_rows(tmp_path: Path) -> None:
    def add(database: Database) -> None:
        database.run("ALTER TABLE notes ADD COLUMN at INTEGER")

    newer = combined(SCHEMA.migrations, (Migration(component="agent", number=2, apply=add),))
    path = AgentPath.of(("A", "a"))
    directory = DataDirectory(tmp_path)
    directory.acquire()
    old = directory.open(path, SCHEMA, fence=Fence("one"))
    old.run("INSERT INTO notes VALUES ('kept')")
    old.close()
    migrated = directory.open(path, newer, fence=Fence("two"))
    assert [tuple(row) for row in migrated.query("SELECT text, at FROM notes")] == [("kept", None)]
    migrated.close()
    with pytest.raises(DatabaseUnusable, match="Use the newer ramet that wrote it"):
        directory.open(path, SCHEMA, fence=Fence("three"))


def test_a_schema_change_that_fails_leaves_no_database_open(tmp_path: Path) -> None:
    def fail(database: Database) -> None:
        raise LookupError("no such luck")

    broken = combined(SCHEMA.migrations, (Migration(component="agent", number=2, apply=fail),))
    directory = DataDirectory(tmp_path)
    with pytest.raises(LookupError, match="no such luck"):
        directory.open(AgentPath.of(("A", "new")), broken, fence=Fence("one"))
    assert left_open() == []
    directory.open(AgentPath.of(("A", "old")), SCHEMA, fence=Fence("two")).close()
    with pytest.raises(LookupError, match="no such luck"):
        directory.open(AgentPath.of(("A", "old")), broken, fence=Fence("three"))
    assert left_open() == []


@pytest.mark.behaviour("D15")
def test_a_directory_in_use_by_another_process_is_refused(tmp_path: Path) -> None:
    with (
        held_by_another_process(tmp_path),
        pytest.raises(DataDirectoryInUse, match="is in use by another process"),
    ):
        DataDirectory(tmp_path).acquire()
    DataDirectory(tmp_path).acquire()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataDirectoryNotWritable, match="cannot be written"):
        DataDirectory(tmp_path / "file" / "data").acquire()


def test_a_new_directory_is_only_its_owners_and_one_that_is_there_stays_as_it_is(
    tmp_path: Path,
) -> None:
    new, there = tmp_path / "new", tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    for path in (new, there):
        directory = DataDirectory(path)
        directory.acquire()
        directory.release()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (new, there)] == [0o700, 0o755]
