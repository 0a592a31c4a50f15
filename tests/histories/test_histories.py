"""What an earlier version has left opens under this one, is all there, and goes on.

CONTRIBUTING.md says how a release adds its fixture.
"""

import hashlib
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from ramet.agent.agent import Agent
from ramet.core.fence import Fence
from ramet.core.json import JsonValue
from ramet.core.paths import AgentPath
from ramet.errors import DatabaseUnusable
from ramet.protocol.messages import parts_of
from ramet.storage import Database, DataDirectory, Migration, combined
from ramet.testing import Harness
from tests.histories.desk import STEADY_CALL, Desk, Held, Helper, Leaf, Steady
from tests.histories.make import FOLDER, desk_harness

HISTORIES = sorted(FOLDER.glob("*.zip"))
BY_NAME = pytest.mark.parametrize("history", HISTORIES, ids=lambda file: file.stem)
MADE_BY = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
RUNS = "SELECT run_id, status FROM cf_agent_tool_runs ORDER BY rowid"
QUEUED = "SELECT payload FROM cf_agents_queues ORDER BY rowid"
LEDGER = "ledger"
"""The program's own table, which no schema knows."""

MAIN = AgentPath.of(("Desk", "main"))
RUNNING = f"agent-tool:{STEADY_CALL}"
AGENTS: dict[AgentPath, type[Agent[Any]]] = {
    MAIN: Desk,
    MAIN.child("Helper", "run-trees"): Helper,
    MAIN.child("Helper", "run-trees").child("Leaf", "run-leaf"): Leaf,
    MAIN.child("Steady", RUNNING): Steady,
}
SAID = ["hello", "Well said.", "a first one", "Well said."]
PLANS = {
    ("delayed", "delayed"),
    ("dated", "scheduled"),
    ("daily", "cron"),
    ("interval", "interval"),
}


@pytest.fixture(autouse=True)
def nothing_is_held() -> Iterator[None]:
    Held.on = False
    yield
    Held.on = False


def unpacked(history: Path, folder: Path) -> Path:
    """A data directory as the fixture's process has left it."""
    with zipfile.ZipFile(history) as packed:
        packed.extractall(folder)
    return folder


def schema_in(database: Database) -> dict[tuple[str, str], str]:
    """What SQLite knows of tables and indexes, spacing aside."""
    return {
        (row[0], row[1]): " ".join(str(row[2]).split())
        for row in database.query(MADE_BY)
        if row[1] != LEDGER
    }


def digests(folder: Path) -> dict[str, str]:
    """What the databases of a folder hold, byte by byte."""
    files = sorted(folder.rglob("*.db"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def words_of(desk: Desk) -> list[str]:
    return [
        "".join(str(part.get("text", "")) for part in parts_of(message))
        for message in desk.messages
    ]


def statuses(harness: Harness) -> dict[JsonValue, JsonValue]:
    return {row["run_id"]: row["status"] for row in harness.rows(Desk, "main", RUNS)}


def test_there_is_a_history_of_this_version() -> None:
    assert FOLDER / f"{version('ramet')}.zip" in HISTORIES


@BY_NAME
@pytest.mark.behaviour("D7")
async def test_what_was_stored_is_all_there(history: Path, tmp_path: Path) -> None:
    Held.on = True
    async with desk_harness(unpacked(history, tmp_path)) as harness:
        desk = await harness.agent(Desk, "main")
        assert desk.state == {"topic": "bees"}
        assert desk.noted()[0] == "made"
        assert words_of(desk)[:5] == [*SAID, "look up bees"]
        assert {(plan.payload, plan.type) for plan in await desk.list_schedules()} == PLANS
        queued = [row["payload"] for row in harness.rows(Desk, "main", QUEUED)]
        assert queued == ['"queued first"', '"queued second"']
        fiber = desk.inspect_fiber("f-managed")
        assert fiber is not None
        assert (fiber.metadata, fiber.snapshot) == ({"of": "desk"}, {"step": 1})
        client = await harness.connect(Desk, "main")
        shown = str(client.of_type("agent-tool-event"))
        assert all(run_id in shown for run_id in ("run-trees", "run-rocks", "run-moss", RUNNING))
        assert statuses(harness) == {
            "run-trees": "completed",
            "run-rocks": "interrupted",
            "run-moss": "running",
            RUNNING: "running",
        }


@BY_NAME
async def test_the_run_of_a_run_can_be_looked_into(history: Path, tmp_path: Path) -> None:
    async with desk_harness(unpacked(history, tmp_path)) as harness:
        client = await harness.connect(Desk, "main", [(Helper, "run-trees")])
        shown = [frame["event"] for frame in client.of_type("agent-tool-event")]
        kinds = [event["kind"] for event in shown if isinstance(event, dict)]
        assert (kinds[0], kinds[-1]) == ("started", "finished")
        assert "run-leaf" in str(shown)
        assert "a leaf" in str(shown)


@BY_NAME
async def test_what_was_under_way_goes_on(history: Path, tmp_path: Path) -> None:
    async with desk_harness(unpacked(history, tmp_path)) as harness:
        await harness.advance(120)
        desk = await harness.agent(Desk, "main")
        assert statuses(harness)[RUNNING] == "completed"
        assert words_of(desk)[4:] == [
            "look up bees",
            "Looking. Well said.",
            "one that waits",
            "Well said.",
        ]
        waiting = desk.inspect_submission("sub-waiting")
        assert waiting is not None
        assert (waiting.status, waiting.metadata) == ("completed", {"n": 1})
        recovered = "managed recovered at {'step': 1}"
        assert sorted(desk.noted()) == [
            "made",
            recovered,
            "queued first",
            "queued second",
            "run-moss came back completed",
        ]
        await harness.advance(3600)
        assert sorted(desk.noted()[5:]) == ["delayed", "interval", "interval"]
        below = harness.rows(Desk, "main", "SELECT line FROM ledger", sub=[(Helper, "below")])
        assert [row["line"] for row in below] == ["below recovered at {'step': 1}", "below"]


@BY_NAME
def test_a_migrated_database_has_the_tables_of_a_new_one(history: Path, tmp_path: Path) -> None:
    """A changed definition of a table needs a migration: without one this fails."""
    old_data = DataDirectory(unpacked(history, tmp_path / "old"))
    new_data = DataDirectory(tmp_path / "new")
    for path, cls in AGENTS.items():
        assert old_data.exists(path)
        old = old_data.open(path, cls.ramet_schema(), fence=Fence("old"))
        new = new_data.open(path, cls.ramet_schema(), fence=Fence("new"))
        assert schema_in(old) == schema_in(new)
        old.close()
        new.close()


@BY_NAME
async def test_what_the_host_keeps_has_the_tables_of_a_new_data_directory(
    history: Path, tmp_path: Path
) -> None:
    Held.on = True
    found = []
    for folder in (unpacked(history, tmp_path / "old"), tmp_path / "new"):
        async with desk_harness(folder):
            pass
        with closing(Database(folder / "host.db", fence=Fence("a test"))) as database:
            found.append(schema_in(database))
    old, new = found
    assert old == new


@BY_NAME
@pytest.mark.parametrize("change", ["ADD COLUMN more", "RENAME COLUMN payload TO load"])
def test_a_table_that_was_changed_without_a_migration_is_noticed(
    history: Path, tmp_path: Path, change: str
) -> None:
    """What the check above compares, with one table that is made in another way than it was."""
    migrations = Desk.ramet_schema().migrations

    def altered(of_today: Migration) -> Migration:
        def apply(database: Database) -> None:
            of_today.apply(database)
            database.run("ALTER TABLE cf_agents_queues " + change)

        return Migration(component=of_today.component, number=of_today.number, apply=apply)

    changed = combined([altered(m) if m.component == "agent:queue" else m for m in migrations])
    old = DataDirectory(unpacked(history, tmp_path / "old")).open(MAIN, changed, fence=Fence("old"))
    new = DataDirectory(tmp_path / "new").open(MAIN, changed, fence=Fence("new"))
    assert schema_in(old) != schema_in(new)
    old.close()
    new.close()


@BY_NAME
@pytest.mark.behaviour("AT-032")
async def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(
    history: Path, tmp_path: Path
) -> None:
    harness = desk_harness(unpacked(history, tmp_path))
    file = harness.host.files.file_of(MAIN)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "UPDATE cf_agents_state SET state = '99' WHERE id = 'cf_schema_version:agent:queue'"
        )
    before = digests(file.parent)
    async with harness:
        with pytest.raises(DatabaseUnusable) as refused:
            await harness.agent(Desk, "main")
        assert str(refused.value) == (
            f"The database {file} has version 99 of 'agent:queue'; this ramet knows 1. "
            "Use the newer ramet that wrote it."
        )
        assert (await harness.agent(Desk, "other")).messages == []
    assert digests(file.parent) == before


@BY_NAME
async def test_a_data_directory_of_a_newer_version_is_refused(
    history: Path, tmp_path: Path
) -> None:
    harness = desk_harness(unpacked(history, tmp_path))
    with closing(sqlite3.connect(tmp_path / "host.db")) as database, database:
        database.execute("UPDATE cf_agents_state SET state = '9' WHERE id LIKE '%:host'")
    before = digests(tmp_path)
    with pytest.raises(DatabaseUnusable, match=r"host\.db has version 9 of 'host'; this ramet"):
        await harness.host.start()
    assert digests(tmp_path) == before
