"""How the tests notice that a database was left open."""

from pathlib import Path

import pytest

from ramet.core.fence import Fence
from ramet.storage import Database
from tests.support.databases import all_closed, left_open, open_database


def test_a_database_that_nobody_closes_is_noticed_and_closed(tmp_path: Path) -> None:
    def leave_one_open() -> None:
        with all_closed():
            Database(tmp_path / "a.db", fence=Fence("a test"))
            Database(tmp_path / "b.db", fence=Fence("a test")).close()
            assert left_open() == [str(tmp_path / "a.db")]

    with pytest.raises(AssertionError, match="databases were not closed"):
        leave_one_open()
    assert left_open() == []


def test_what_a_test_opens_for_itself_is_closed_behind_it(tmp_path: Path) -> None:
    with all_closed():
        open_database(tmp_path / "a.db")
        assert left_open() == [str(tmp_path / "a.db")]
    assert left_open() == []
