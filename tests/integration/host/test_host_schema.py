"""The host's own database, brought up from what earlier versions have left."""

import sqlite3
from contextlib import closing
from pathlib import Path

import ramet
from ramet.core.json import dumps
from ramet.core.paths import AgentPath
from ramet.testing import Harness

VERSION = "SELECT state FROM cf_agents_state WHERE id = 'cf_schema_version:host'"


class Keeper(ramet.Agent[None]):
    """Is there."""

    def on_start(self) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS kept (word TEXT)")


async def test_a_deletion_that_was_noted_outside_the_migrations_is_carried_out(
    tmp_path: Path,
) -> None:
    harness = Harness(agents=[Keeper], data_dir=tmp_path)
    gone, stays = AgentPath.of(("Keeper", "gone")), AgentPath.of(("Keeper", "stays"))
    async with harness:
        for path in (gone, stays):
            await harness.agent(Keeper, path.leaf.name)
    with closing(sqlite3.connect(tmp_path / "host.db")) as database, database:
        database.execute("UPDATE cf_agents_state SET state = '2' WHERE id LIKE '%:host'")
        database.execute(
            "INSERT INTO ramet_deletions VALUES (?, ?)",
            (dumps(gone.to_json()), dumps([gone.to_json()])),
        )
    async with Harness(agents=[Keeper], data_dir=tmp_path) as later:
        assert [later.host.files.exists(path) for path in (gone, stays)] == [False, True]
        assert later.host.database.query("SELECT 1 FROM ramet_deletions") == []
    with closing(sqlite3.connect(tmp_path / "host.db")) as database:
        assert database.execute(VERSION).fetchone() == ("3",)
