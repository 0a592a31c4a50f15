"""Removes agents: stops what runs, then deletes the files of an agent and of all below it."""

from collections.abc import Callable, Iterator

from ramet.core.clock import Clock
from ramet.core.paths import AgentPath
from ramet.host.instances import Instances
from ramet.storage import DataDirectory
from ramet.sub_agents.registry import SubAgentRegistry


class Deletion:
    """Deletes agents with everything below them."""

    def __init__(
        self,
        instances: Instances,
        files: DataDirectory,
        clock: Clock,
        *,
        forget_alarm: Callable[[AgentPath], object],
        close_sockets: Callable[[AgentPath, str], object],
    ) -> None:
        self._instances = instances
        self._files = files
        self._clock = clock
        self._forget_alarm = forget_alarm
        self._close_sockets = close_sockets

    def delete(self, target: AgentPath) -> None:
        """Stop the agents at and below `target`, forget them in the parent, remove their files.

        A crash in between leaves files that nobody names: the parent's row goes first.
        """
        stored = [target] if target.is_root else list(self._stored_below(target))
        above = self._instances.live(target.parent) if target.parent is not None else None
        if above is not None:
            above.runtime.registry.remove(target.leaf.class_name, target.leaf.name)
        root = self._instances.live(target.root)
        if root is not None and not target.is_root:
            root.runtime.durable.forget(target)
        told = "The agent was destroyed" if target.is_root else "Sub-agent deleted"
        self._instances.end(target, "it was deleted", close_sockets=told)
        self._close_sockets(target, told)  # those whose agent is not in memory
        if target.is_root:
            self._forget_alarm(target)  # now that nothing of it can set the alarm again
        for path in stored:
            self._files.delete(path)

    def _stored_below(self, path: AgentPath) -> Iterator[AgentPath]:
        """The agent and all that it and those below it ever made, by their registries."""
        yield path
        instance = self._instances.live(path)
        if instance is not None:
            children = instance.runtime.registry.list()
        else:
            database = self._files.open_existing(path)
            if database is None:
                return
            children = SubAgentRegistry(database, self._clock).list()
            database.close()
        for child in children:
            yield from self._stored_below(path.child(child.class_name, child.name))
