"""Removes agents: stops what runs, then deletes the files of an agent and of all below it."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ramet.core.clock import Clock
from ramet.core.failpoints import failpoint
from ramet.core.paths import AgentPath
from ramet.errors import StorageError
from ramet.fibers.store import FiberStore
from ramet.host.instances import Instances
from ramet.host.pending_deletions import PendingDeletion, PendingDeletions
from ramet.schedules.store import ScheduleStore
from ramet.storage import Database, DataDirectory
from ramet.sub_agents.registry import SubAgentRegistry

_log = logging.getLogger("ramet.host")


class Deletion:
    """Deletes agents with everything below them."""

    def __init__(
        self,
        instances: Instances,
        files: DataDirectory,
        clock: Clock,
        *,
        known_as: Callable[[AgentPath], Iterable[AgentPath]],
        pending: Callable[[], PendingDeletions],
        forget_alarm: Callable[[AgentPath], object],
        close_sockets: Callable[[AgentPath, str], object],
    ) -> None:
        self._instances = instances
        self._files = files
        self._clock = clock
        self._known_as = known_as
        """The paths under which the files of an agent may lie: classes are renamed."""
        self._pending = pending
        self._forget_alarm = forget_alarm
        self._close_sockets = close_sockets

    def delete(self, target: AgentPath) -> None:
        """Stop the agents at and below `target`, forget them in the parent, remove their files.

        A crash in between is made good when the next process starts, before any alarm (SC-039).
        """
        known = [target] if target.is_root else self._stored_below(target)
        stored = [path for each in known for path in self._known_as(each)]
        deletion = PendingDeletion(target=target, stored=stored)
        self._pending().note(deletion)
        failpoint("deletion.noted")
        above = self._instances.live(target.parent) if target.parent is not None else None
        if above is not None:
            above.runtime.registry.remove(target.leaf.class_name, target.leaf.name)
        root = self._instances.live(target.root)
        if root is not None and not target.is_root:
            root.runtime.durable.forget(target)
        told = "The agent was destroyed" if target.is_root else "Sub-agent deleted"
        self._instances.end(target, "it was deleted", close_sockets=told)
        self._close_sockets(target, told)  # those whose agent is not in memory
        self._remove_files(deletion)  # now that nothing of it can set the alarm again

    def finish_all(self) -> None:
        """Carry to their end the deletions that an earlier process has begun.

        One that a file in trouble keeps from it waits for the next start; the others go on.
        """
        for deletion in self._pending().all():
            try:
                if deletion.target.parent is not None:
                    self._forget_in_files(deletion.target, above=deletion.target.parent)
                self._remove_files(deletion)
            except (StorageError, OSError) as error:
                _log.warning("%s cannot be deleted to its end: %s", deletion.target, error)

    def _forget_in_files(self, target: AgentPath, *, above: AgentPath) -> None:
        """Do what features do in a live root and parent."""
        with self._stored(above) as database:
            if database is not None:
                registry = SubAgentRegistry(database, self._clock)
                registry.remove(target.leaf.class_name, target.leaf.name)
        with self._stored(target.root) as database:
            if database is not None:
                schedules, fibers = ScheduleStore(database), FiberStore(database)
                schedules.remove_all(schedules.below(target))
                for owner, run_id in fibers.leases():
                    if target.contains(owner):
                        fibers.release(owner, run_id)

    @contextmanager
    def _stored(self, path: AgentPath) -> Iterator[Database | None]:
        files = (self._files.open_existing(known) for known in self._known_as(path))
        database = next((found for found in files if found is not None), None)
        try:
            yield database
        finally:
            if database is not None:
                database.close()

    def _remove_files(self, deletion: PendingDeletion) -> None:
        failpoint("deletion.forgotten")
        if deletion.target.is_root:
            self._forget_alarm(deletion.target)
        for path in deletion.stored:
            self._files.delete(path)
            failpoint("deletion.file_removed")
        self._pending().done(deletion)

    def _stored_below(self, path: AgentPath) -> Iterator[AgentPath]:
        """The agent and all that it and those below it ever made, by their registries."""
        yield path
        instance = self._instances.live(path)
        if instance is not None:
            children = instance.runtime.registry.list()
        else:
            with self._stored(path) as database:
                if database is None:
                    return
                children = SubAgentRegistry(database, self._clock).list()
        for child in children:
            yield from self._stored_below(path.child(child.class_name, child.name))
