"""Tells what one agent is, has and waits for, from what it has stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramet.agent_tools.run_store import RunStore
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.control.addresses import address_of
from ramet.control.reports import AgentReport, Some
from ramet.control.stored_agents import StoredAgents
from ramet.core.paths import AgentPath
from ramet.errors import AgentNotFound
from ramet.fibers.schema import FIBER_MIGRATIONS
from ramet.fibers.store import FiberStore
from ramet.queue.schema import QUEUE_MIGRATIONS
from ramet.queue.store import QueueStore
from ramet.schedules.schema import SCHEDULE_MIGRATIONS
from ramet.schedules.store import ScheduleStore
from ramet.storage import Database, KeyValue, Migration, combined, is_current
from ramet.storage.migrations import VERSION_KEY
from ramet.sub_agents.registry import SUB_AGENT_MIGRATIONS
from ramet.think.submission_store import SUBMISSION_MIGRATIONS, SubmissionStore

SHOWN: Final = 20
"""So many of each kind are shown; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """An agent that is in memory."""

    busy: str | None
    """With what; None when it may be put away."""
    clients: int


class AgentReports:
    """Puts the reports together; opens no agent."""

    def __init__(self, agents: StoredAgents) -> None:
        self._agents = agents

    def of(
        self, path: AgentPath, presence: Presence | None, *, next_wakeup: int | None
    ) -> AgentReport:
        """The report of a stored agent.

        Raises:
            AgentNotFound: It was deleted just now.
        """
        file = self._agents.file_of(path)
        schedules = self._schedules(path)
        with self._agents.reading(path) as database:
            if database is None or file is None:
                raise AgentNotFound(f"There is no agent {address_of(path)!r}")
            return AgentReport(
                agent=address_of(path),
                class_name=path.leaf.class_name,
                name=path.leaf.name,
                open=presence is not None,
                busy=None if presence is None else presence.busy,
                clients=0 if presence is None else presence.clients,
                file=str(file),
                bytes=size_of(file),
                schema=_versions(database),
                next_wakeup=next_wakeup if path.is_root else _first_due(schedules),
                schedules=schedules,
                queue=_queue(database),
                fibers=_fibers(database),
                submissions=_submissions(database),
                runs=_runs(database),
                sub_agents=self._below(path, database),
            )

    def _schedules(self, path: AgentPath) -> Some | None:
        """The schedules of an agent, which its root keeps."""
        with self._agents.reading(path.root) as database:
            if database is None or not _has(database, SCHEDULE_MIGRATIONS):
                return None
            store, owner = ScheduleStore(database), None if path.is_root else path
            return Some(
                count=store.count_of_user(owner),
                first=[
                    {
                        "callback": each.callback,
                        "type": each.timing.type,
                        "due_at": each.timing.time * 1000,
                        "running": each.running,
                    }
                    for each in store.few_of_user(owner, SHOWN)
                ],
            )

    def _below(self, path: AgentPath, database: Database) -> Some | None:
        if not _has(database, SUB_AGENT_MIGRATIONS):
            return None
        registry = self._agents.registry(database)
        return Some(
            count=registry.count(),
            first=[
                {
                    "agent": address_of(path.child(each.class_name, each.name)),
                    "created_at": each.created_at,
                }
                for each in registry.few(SHOWN)
            ],
        )


def _first_due(schedules: Some | None) -> int | None:
    """When the first of some schedules is due, which are in that order."""
    due = schedules.first[0]["due_at"] if schedules is not None and schedules.first else None
    return due if isinstance(due, int) else None


def _queue(database: Database) -> Some | None:
    if not _has(database, QUEUE_MIGRATIONS):
        return None
    store = QueueStore(database)
    return Some(
        count=store.count(),
        first=[
            {"callback": each.callback, "created_at": each.created_at * 1000}
            for each in store.few(SHOWN)
        ],
    )


def _fibers(database: Database) -> Some | None:
    """The fibers that run, or were interrupted and wait for their recovery."""
    if not _has(database, FIBER_MIGRATIONS):
        return None
    store = FiberStore(database)
    return Some(
        count=store.count_runs(),
        first=[
            {"id": each.id, "name": each.name, "created_at": each.created_at}
            for each in store.few_runs(SHOWN)
        ],
    )


def _submissions(database: Database) -> Some | None:
    """The submissions that run or wait."""
    if not _has(database, SUBMISSION_MIGRATIONS):
        return None
    store = SubmissionStore(database)
    return Some(
        count=store.count_active(),
        first=[
            {"id": each.submission_id, "status": each.status, "created_at": each.created_at}
            for each in store.few_active(SHOWN)
        ],
    )


def _runs(database: Database) -> Mapping[str, int] | None:
    return RunStore(database).counts() if _has(database, AGENT_TOOL_MIGRATIONS) else None


def _versions(database: Database) -> Mapping[str, int]:
    stored = KeyValue(database).beginning_with(VERSION_KEY)
    return {
        key.removeprefix(VERSION_KEY).removeprefix(":") or "agent": int(version)
        for key, version in stored.items()
        if version.isdecimal()
    }


def _has(database: Database, migrations: Sequence[Migration]) -> bool:
    return is_current(database, combined(migrations))


def size_of(file: Path) -> int:
    """The bytes of a database with its write-ahead log."""
    log = file.with_name(file.name + "-wal")
    return sum(each.stat().st_size for each in (file, log) if each.exists())
