"""Opens and ends instances: one at a time for each address, a parent before its sub-agents."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import AgentNotRegistered, CallError, InvalidAgentName, NotRunning
from ramet.host.builder import InstanceBuilder, Neighbours
from ramet.host.circles import StartWaits
from ramet.host.classes import ClassTable
from ramet.host.instance import Instance
from ramet.host.tasks import ended, new_task, outcome
from ramet.protocol.url import check_agent_name

T = TypeVar("T")


class Instances:
    """The agents in memory."""

    def __init__(
        self,
        builder: InstanceBuilder,
        neighbours: Neighbours,
        *,
        on_build: Callable[[Instance], object],
        on_open: Callable[[Instance], object],
        on_end: Callable[[Instance, str | None], object],
    ) -> None:
        self._builder = builder
        self._neighbours = neighbours
        self._on_build = on_build
        self._on_open = on_open
        self._on_end = on_end
        self._live: dict[AgentPath, Instance] = {}
        self._of_root: dict[AgentPath, set[Instance]] = {}
        self._children: Counter[AgentPath] = Counter()
        """Live instances directly below each path; a parent lives as long as they do."""
        self._asking: Counter[AgentPath] = Counter()
        """Who waits for an instance to open, and has not taken it up yet."""
        self._opening: dict[AgentPath, asyncio.Task[Instance]] = {}
        self._waits = StartWaits()
        self._ending: set[asyncio.Task[Any]] = set()
        self.accepting = False
        """Whether agents may be opened: between start and stop of the host."""

    def __iter__(self) -> Iterator[Instance]:
        return iter(tuple(self._live.values()))

    def __len__(self) -> int:
        return len(self._live)

    def live(self, path: AgentPath) -> Instance | None:
        """The instance in memory, if there is one."""
        return self._live.get(path)

    def below(self, path: AgentPath) -> list[Instance]:
        """The live instances at and below a path, the lowest first."""
        if not self._children[path]:
            alone = self._live.get(path)
            return [] if alone is None else [alone]
        group = self._of_root.get(path.root, ())
        found = [each for each in group if path.contains(each.path)]
        return sorted(found, key=lambda each: -len(each.path.steps))

    def touch(self, instance: Instance) -> None:
        """Note that somebody has come to an instance."""
        instance.used_at = self._builder.clock.monotonic()

    def busy(self, instance: Instance) -> str | None:
        """Why an instance may not be evicted now; a parent stays while a child is open."""
        reason = instance.busy()
        if reason is None and self._children[instance.path]:
            reason = "a sub-agent of it is open"
        if reason is None and self._asking[instance.path]:
            reason = "somebody has come to it"
        return reason

    async def opened(self, path: AgentPath, *, asker: AgentPath | None = None) -> Instance:
        """The instance at a path, opened if need be; its `on_start` has returned.

        An agent above the asker that is itself still starting is given at once: it waits for the
        asker. What is opened is not evicted (unless by force) before the caller goes on.

        Raises:
            AgentNotRegistered: A class of the path is not registered, or is no root where it must
            be.
            InvalidAgentName: A name no agent can have.
            NotRunning: The host was not started, or is stopped.
            CallError: It waits for the asker's `on_start`, which asks for it.
            Exception: Whatever `on_start` raised.
        """
        path = path.renamed(self._builder.classes.renamed)
        instance = self._live.get(path)
        if instance is not None:
            self.touch(instance)
            if instance.ready or (asker is not None and path.contains(asker)):
                return instance
        starting = None if asker is None else self._live.get(asker)
        if starting is None or starting.ready:
            return await self._awaited(path, instance)
        with self._waits.waiting(starting.path, path):
            return await self._awaited(path, instance)

    async def _awaited(self, path: AgentPath, instance: Instance | None) -> Instance:
        self._asking[path] += 1
        try:
            if instance is None:
                return await outcome(self._start_opening(path))
            await asyncio.wait({instance.started})
            instance.started.result()
        finally:
            _count_down(self._asking, path)
        return instance

    async def run(
        self, instance: Instance, work: Coroutine[object, object, T], *, name: str, fence: Fence
    ) -> T:
        """Run `work` as a task of an instance, for somebody whose own fence is `fence`.

        The instance is not evicted meanwhile, unless by force. Cancelling the caller cancels the
        work, unless the caller's instance is dying (D11).
        """
        if instance.fence.down:
            work.close()
            raise instance.fence.error()
        task = instance.tasks.run(work, name=name)
        task.add_done_callback(_retrieve)
        try:
            with instance.hold(f"{name} is running"):
                await asyncio.wait({task})
        except asyncio.CancelledError:
            if not fence.down:
                task.cancel()
            raise
        if instance.fence.down:
            raise instance.fence.error()
        if task.cancelled():
            raise CallError(f"{name} of {instance.path} was cancelled")
        return task.result()

    def end(self, path: AgentPath, reason: str, *, close_sockets: str | None) -> None:
        """End the instances at and below a path: all fences first, so that none sees another dying.

        `close_sockets` is the reason clients are told; None keeps their sockets for the next
        instance.
        """
        ending = self.below(path)
        for instance in ending:
            instance.fence.drop(reason)
        for instance in ending:
            self._live.pop(instance.path, None)
            self._leave_group(instance)
            for task in instance.end(reason):
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
            self._on_end(instance, close_sockets)

    async def all_ended(self) -> None:
        """Wait until the tasks of ended instances are gone."""
        running = asyncio.current_task()
        await ended([task for task in self._ending if task is not running])

    def _leave_group(self, instance: Instance) -> None:
        if instance.path.parent is not None:
            _count_down(self._children, instance.path.parent)
        group = self._of_root.get(instance.path.root, set())
        group.discard(instance)
        if not group:
            self._of_root.pop(instance.path.root, None)

    def _start_opening(self, path: AgentPath) -> asyncio.Task[Instance]:
        begun = self._opening.get(path)
        if begun is not None and not begun.done():
            return begun
        if not self.accepting:
            raise NotRunning("The app is not running: start it by its lifespan or `async with app`")
        check_path(path, self._builder.classes)
        task = new_task(self._open(path), name=f"open {path}")
        self._opening[path] = task
        task.add_done_callback(partial(self._opened, path))
        task.add_done_callback(_retrieve)
        return task

    def _opened(self, path: AgentPath, task: asyncio.Task[Instance]) -> None:
        if self._opening.get(path) is task:
            del self._opening[path]

    async def _open(self, path: AgentPath) -> Instance:
        while path.parent is not None and self._live.get(path.parent) is None:
            await self.opened(path.parent)
        instance = self._builder.build(path, self._neighbours)
        self._live[path] = instance
        if path.parent is not None:
            self._children[path.parent] += 1
        self._of_root.setdefault(path.root, set()).add(instance)
        self._on_build(instance)
        start = instance.tasks.run(instance.runtime.start(), name="start")
        await asyncio.wait({start})
        if instance.fence.down:
            raise instance.fence.error()
        error = asyncio.CancelledError() if start.cancelled() else start.exception()
        if error is not None:
            instance.started.set_exception(error)
            instance.started.exception()
            self.end(path, "it could not start", close_sockets="The agent could not start")
            raise error
        instance.started.set_result(None)
        self._on_open(instance)
        instance.runtime.context.events.emit("start")
        return instance


def check_path(path: AgentPath, classes: ClassTable) -> None:
    """Refuse an address that no agent can have; see `Instances.opened` for what is raised."""
    for step in path.steps:
        classes.class_of(step.class_name)
        reason = check_agent_name(step.name)
        if reason is not None:
            raise InvalidAgentName(reason)
    root = path.root.leaf.class_name
    if not classes.is_root(root):
        raise AgentNotRegistered(
            f"The agent class {root!r} is registered for sub-agents only: "
            "reach it through its parent, or give it to App(agents=[…])"
        )


def _count_down(counter: Counter[AgentPath], path: AgentPath) -> None:
    counter[path] -= 1
    if not counter[path]:
        del counter[path]


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take note of an error that the caller, who was cancelled, no longer waits for."""
    if not task.cancelled():
        task.exception()
