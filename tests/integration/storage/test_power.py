"""`durability="power"`: every connection waits for the disk, and the system is asked to write.

What SQLite was told is asked of SQLite. That it does as told is seen in the system's calls where
`strace` may be used. That the disk itself keeps what it was told to write is beyond any test here.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

import ramet
from ramet.core.fence import Fence
from ramet.storage import Database, DataDirectory
from ramet.testing import Harness
from tests.integration.storage.ground import Clerk
from tests.support.server import ROOT, environment

FULL, NORMAL = 2, 1
COMMITS = 20
PROGRAM = """
import sys
from pathlib import Path
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.host.schema import SCHEMA
from ramet.storage import DataDirectory, combined, migrate

folder = DataDirectory(Path(sys.argv[1]), durability=sys.argv[2])
folder.acquire()
folder.open(AgentPath.of(("A", "a")), combined(), fence=Fence("a")).close()
database = folder.open_host(fence=Fence("host"))
migrate(database, SCHEMA)
for number in range(int(sys.argv[3])):
    database.run("INSERT INTO ramet_wakeups (root, due_ms) VALUES (?, 1)", str(number))
"""
Durability: TypeAlias = Literal["process", "power"]


def synchronous(database: Database | None) -> int:
    assert database is not None
    row = database.one("PRAGMA synchronous")
    assert row is not None
    return int(row[0])


def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.parametrize(("durability", "level"), [("process", NORMAL), ("power", FULL)])
async def test_it_holds_for_every_connection(
    tmp_path: Path, durability: Durability, level: int
) -> None:
    opened: list[Database] = []
    options = ramet.HostOptions(durability=durability, idle_timeout=0)
    async with Harness(agents=[Clerk], data_dir=tmp_path, options=options) as harness:
        path = harness.path(Clerk, "a")
        await harness.agent(Clerk, "a")
        live = harness.host.live_database(path)
        opened += [live] if live is not None else []
        stored = harness.host.files.open_existing(path)
        opened += [stored] if stored is not None else []
        opened.append(harness.host.files.open_host(fence=Fence("a test")))
        assert [synchronous(database) for database in opened] == [level] * 3
        for database in opened[1:]:
            database.close()


def test_a_user_cannot_switch_it_off(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, durability="power")
    directory.acquire()
    database = directory.open_host(fence=Fence("a test"))
    with pytest.raises(ramet.errors.InvalidArguments):
        database.query_of_user("PRAGMA synchronous = OFF")
    assert synchronous(database) == FULL
    database.close()
    directory.release()


@pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not be used")
@pytest.mark.parametrize("durability", ["process", "power"])
def test_the_system_is_asked_to_write_each_commit(tmp_path: Path, durability: Durability) -> None:
    trace = tmp_path / "trace"
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "data"), durability, str(COMMITS)]
    calls = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
    subprocess.run([*calls, *program], cwd=ROOT, env=environment(), check=True, timeout=50)
    synced = re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\)", trace.read_text())
    of_the_log = [path for path in synced if path.endswith("host.db-wal")]
    if durability == "power":
        assert len(of_the_log) >= COMMITS
        made = next(index for index, path in enumerate(synced) if path.endswith("agent.db.new"))
        folder = Path(synced[made]).parent
        assert {str(folder), *map(str, list(folder.parents)[:3])} <= set(synced[made:])
    else:
        assert len(of_the_log) < COMMITS / 2
