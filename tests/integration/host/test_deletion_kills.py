"""`kill -9` at each step of a deletion: the next process carries it to its end before all else."""

from pathlib import Path

import pytest

from ramet.testing import Harness
from tests.support.deleting import DEEP, ONE, STARTED, Box, Keeper, harness, play_until_killed

pytestmark = pytest.mark.kill

STEPS = ["deletion.noted", "deletion.forgotten", "deletion.file_removed"]


def wake_ups(host: Harness) -> int:
    database = host.host._database
    assert database is not None
    return len(database.query("SELECT 1 FROM ramet_wakeups"))


def pending(host: Harness) -> int:
    database = host.host._database
    assert database is not None
    return len(database.query("SELECT 1 FROM ramet_deletions"))


def root_folder(data: Path) -> Path:
    [folder] = data.glob("agents/*/keeper-*")
    return folder


def spoil(data: Path) -> None:
    """Let the root's file be none of SQLite's."""
    folder = root_folder(data)
    (data / "kept").mkdir()
    for part in folder.glob("agent.db*"):
        part.rename(data / "kept" / part.name)
    (folder / "agent.db").write_bytes(b"this is no database" * 100)


def mend(data: Path) -> None:
    """Give the root its file back."""
    [folder] = [sub.parent for sub in data.glob("agents/*/keeper-*/sub")]
    for part in (data / "kept").iterdir():
        part.replace(folder / part.name)


@pytest.mark.behaviour("SC-039", "SA-012", "SC-045")
@pytest.mark.parametrize("step", [*STEPS, "deletion.file_removed:2"])
async def test_a_child_whose_deletion_was_cut_is_gone_at_the_next_start(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "child", step)
    STARTED.clear()
    async with harness(tmp_path, seed=2) as host:
        for place in (ONE, DEEP):
            assert not host.host.files.file_of(host.path(Keeper, "r", place)).exists()
        owners = host.rows(Keeper, "r", "SELECT owner_path_key FROM cf_agents_schedules")
        assert [row["owner_path_key"] for row in owners] == [None], "the root's own stays"
        assert pending(host) == 0
        await host.advance(61)
        assert STARTED == ["r"]
        root = await host.agent(Keeper, "r")
        assert not root.has_sub_agent(Box, "one")
        assert root.state == {"of": "r"}
        await root.sub_agent(Box, "one")
        assert (await host.agent(Keeper, "r", ONE)).state == {}


@pytest.mark.behaviour("SC-039")
@pytest.mark.parametrize("step", STEPS)
async def test_a_root_whose_deletion_was_cut_is_gone_and_not_woken(
    tmp_path: Path, step: str
) -> None:
    play_until_killed(tmp_path, "root", step)
    STARTED.clear()
    async with harness(tmp_path, seed=2) as host:
        assert not host.host.files.exists(host.path(Keeper, "r"))
        assert (wake_ups(host), pending(host)) == (0, 0)
        await host.advance(600)
        assert STARTED == []
        assert (await host.agent(Keeper, "r")).state == {}


@pytest.mark.behaviour("SC-039")
async def test_a_file_in_trouble_puts_one_deletion_off_and_keeps_nobody_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    play_until_killed(tmp_path, "child", "deletion.noted")
    spoil(tmp_path)
    async with harness(tmp_path, seed=2) as host:
        assert pending(host) == 1
        assert (await host.agent(Keeper, "other")).state == {}
    assert "cannot be deleted to its end" in caplog.text
    mend(tmp_path)
    async with harness(tmp_path, seed=3) as host:
        assert pending(host) == 0
        assert not (await host.agent(Keeper, "r")).has_sub_agent(Box, "one")


async def test_a_deletion_that_was_not_cut_leaves_nothing_to_finish(tmp_path: Path) -> None:
    async with harness(tmp_path) as host:
        await (await host.agent(Keeper, "r")).sub_agent(Box, "one")
        await (await host.agent(Keeper, "r")).delete_sub_agent(Box, "one")
        assert pending(host) == 0
