"""What a killed server has left on disk; read from a copy, so that looking repairs nothing."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ramet.core.json import loads

WAITING = {
    "cf_agents_schedules": "SELECT count(*) FROM cf_agents_schedules WHERE id NOT LIKE 'cf:%'",
    "cf_agents_queues": "SELECT count(*) FROM cf_agents_queues",
    "cf_agents_runs": "SELECT count(*) FROM cf_agents_runs",
    "cf_agents_facet_runs": "SELECT count(*) FROM cf_agents_facet_runs",
    "cf_agents_fibers": "SELECT count(*) FROM cf_agents_fibers WHERE completed_at IS NULL",
    "cf_think_submissions": """
        SELECT count(*) FROM cf_think_submissions WHERE status IN ('pending', 'running')
    """,
}

AgentKey = tuple[tuple[str, str], ...]
"""The (class name, name) pairs from the root down to an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChild:
    """What a child has recorded of a run."""

    status: str
    sealed: bool
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAgent:
    """What the database of one agent says."""

    outcomes: Mapping[str, str | None] = field(default_factory=dict)
    """How each request ended; None for one that has not."""
    runs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The class and the status of each run of a child."""
    child_runs: Mapping[str, StoredChild] = field(default_factory=dict)
    """The runs that this agent works for."""
    chunks: Mapping[str, list[str]] = field(default_factory=dict)
    """The chunks of each request's answer, in order."""
    children: frozenset[tuple[str, str]] = frozenset()
    """The class and the name of each sub-agent that is registered."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """How many rows wait for something to be done, by their table; those without any left out."""


@dataclass(slots=True)
class Disk:
    """All databases of a data directory."""

    agents: dict[AgentKey, StoredAgent] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """What SQLite has to say against a file."""

    def agent(self, key: AgentKey) -> StoredAgent:
        """An agent; one without a database has nothing."""
        return self.agents.get(key, StoredAgent())


def read_disk(data: Path) -> Disk:
    """Read a data directory that no server may be writing to."""
    disk = Disk()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("control.sock"))
        for file in sorted(copy.rglob("*.db")):
            _read(disk, file)
    return disk


def _read(disk: Disk, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        verdict = [row[0] for row in database.execute("PRAGMA integrity_check")]
        if verdict != ["ok"]:
            disk.damage.append(f"{file.name}: {verdict}")
            return
        tables = {row[0] for row in _rows(database, "SELECT name FROM sqlite_master")}
        identity = _identity(database) if "cf_agents_state" in tables else None
        if identity is not None:
            disk.agents[identity] = StoredAgent(
                outcomes=_outcomes(database) if "cf_chat_turns" in tables else {},
                runs=_runs(database) if "cf_agent_tool_runs" in tables else {},
                child_runs=_children(database) if "cf_agent_tool_child_runs" in tables else {},
                chunks=_chunks(database) if "cf_ai_chat_stream_chunks" in tables else {},
                children=_registered(database),
                waiting=_waiting(database, tables),
            )


def _identity(database: sqlite3.Connection) -> AgentKey | None:
    query = "SELECT * FROM cf_agents_state"
    for row in _rows(database, query):
        stored = loads(row[1]) if row[0] == "cf_agent_identity" else None
        if isinstance(stored, list):
            return tuple((str(s[0]), str(s[1])) for s in stored if isinstance(s, list))
    return None


def _outcomes(database: sqlite3.Connection) -> dict[str, str | None]:
    query = "SELECT request_ids, outcome FROM cf_chat_turns ORDER BY rowid"
    found: dict[str, str | None] = {}
    for row in _rows(database, query):
        ids = loads(row["request_ids"])
        for request_id in ids if isinstance(ids, list) else []:
            found[str(request_id)] = row["outcome"]
    return found


def _runs(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    query = "SELECT run_id, agent_type, status FROM cf_agent_tool_runs ORDER BY rowid"
    return {row["run_id"]: (row["agent_type"], row["status"]) for row in _rows(database, query)}


def _children(database: sqlite3.Connection) -> dict[str, StoredChild]:
    query = "SELECT run_id, request_id, status, completed_at FROM cf_agent_tool_child_runs"
    return {
        row["run_id"]: StoredChild(
            status=row["status"],
            sealed=row["completed_at"] is not None,
            request_id=row["request_id"],
        )
        for row in _rows(database, query)
    }


def _chunks(database: sqlite3.Connection) -> dict[str, list[str]]:
    query = """
        SELECT m.request_id, c.body FROM cf_ai_chat_stream_chunks AS c
        JOIN cf_ai_chat_stream_metadata AS m ON m.id = c.stream_id
        ORDER BY c.stream_id, c.chunk_index
    """
    found: dict[str, list[str]] = {}
    for row in _rows(database, query):
        found.setdefault(row["request_id"], []).append(row["body"])
    return found


def _registered(database: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    query = "SELECT class, name FROM cf_agents_sub_agents"
    return frozenset((row["class"], row["name"]) for row in _rows(database, query))


def _waiting(database: sqlite3.Connection, tables: AbstractSet[str]) -> dict[str, int]:
    counts = {
        table: next(_rows(database, query))[0]
        for table, query in WAITING.items()
        if table in tables
    }
    return {table: count for table, count in counts.items() if count}


def _rows(database: sqlite3.Connection, query: str) -> Iterator[sqlite3.Row]:
    yield from database.execute(query)
