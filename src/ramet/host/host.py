"""The host: agents of many addresses in one process, for a web edge, a test or a program."""

import resource
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ramet.agent.context import RootFeatures
from ramet.agent.stubs import Stub, as_instance
from ramet.connections.link import ClientLink
from ramet.core.alarm import Wakeups
from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.http import Request, Response
from ramet.core.ids import Ids
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.core.ports import Caller, Lifecycles
from ramet.errors import DataDirectoryInUse, InstanceGone, NotRunning, RametError
from ramet.host.alarms import Alarms
from ramet.host.bodies import kept_open
from ramet.host.builder import InstanceBuilder
from ramet.host.callers import (
    InstanceCaller,
    InstanceLifecycles,
    dispatch_internal,
    released,
)
from ramet.host.classes import ClassTable
from ramet.host.deletion import Deletion
from ramet.host.gate import Gate
from ramet.host.idle import IdleEviction
from ramet.host.instance import Instance
from ramet.host.instances import Instances, check_path
from ramet.host.pending_deletions import PendingDeletions
from ramet.host.schema import SCHEMA
from ramet.host.sockets import Message, Sockets
from ramet.host.wakeups import RootWakeups, WakeupIndex
from ramet.storage import Database, DataDirectory, migrate

A = TypeVar("A")

FILES_PER_AGENT = 5
"""Three files of an open agent, a client's socket, and what else a process has open."""
GRACE_STEP = 0.05
"""Seconds between two looks at whether the running turns are done."""
READERS_SECONDS = 10.0
"""Commands that read the data directory get so long to give it up."""
READERS_STEP = 0.01
"""Less than the time for which they do so."""


class Host:
    """Serves the agents of one data directory.

    Every address has at most one live instance. Between `start` and `stop` the data directory is
    locked for this process.
    """

    def __init__(
        self,
        classes: ClassTable,
        data_dir: Path,
        *,
        options: HostOptions,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.classes = classes
        self.options = options
        self.clock = clock
        self.ids = ids
        self.files = DataDirectory(data_dir, durability=options.durability, locking=options.locking)
        builder = InstanceBuilder(
            classes=classes, files=self.files, clock=clock, ids=ids, options=options
        )
        self.instances = Instances(
            builder,
            self,
            on_build=lambda built: self.sockets.show(built),
            on_open=self._opened,
            on_end=lambda ended, told: self.sockets.instance_ended(ended, told),
        )
        self.sockets = Sockets(self.instances, ids)
        self._idle = IdleEviction(self.instances, clock, options)
        self._database: Database | None = None
        self._wakeups: WakeupIndex | None = None
        self._alarms: Alarms | None = None
        self._pending_deletions: PendingDeletions | None = None
        self._deletion = Deletion(
            self.instances,
            self.files,
            clock,
            known_as=classes.known_as,
            pending=self._deletions,
            forget_alarm=self._forget_alarm,
            close_sockets=self.sockets.close_below,
        )
        self._gate = Gate(self.instances, classes)
        self._outside = InstanceCaller(instances=self.instances, path=None, fence=Fence("the host"))

    @property
    def running(self) -> bool:
        """Whether agents can be reached."""
        return self.instances.accepting

    @property
    def database(self) -> Database:
        """The host's own database; raises `NotRunning` before the start and after the stop."""
        if self._database is None:
            raise NotRunning("The host is not running")
        return self._database

    async def start(self) -> None:
        """Lock the data directory and begin to serve; raises `DataDirectoryError`."""
        await self._lock()
        try:
            self._database = self.files.open_host(fence=Fence("the host"))
            migrate(self._database, SCHEMA)
            self._wakeups = WakeupIndex(self._database, self.clock, on_due=self._alarm_due)
            self._wakeups.rename(self.classes.renamed)
            self._pending_deletions = PendingDeletions(self._database)
            self._deletion.finish_all()
        except BaseException:
            self._close()
            raise
        self._alarms = Alarms(self._wakeups, self.instances, self.clock)
        self.instances.accepting = True
        self._idle.start(most_open=_raised_file_limit() // FILES_PER_AGENT)
        self._alarms.due()

    async def _lock(self) -> None:
        """Lock the data directory; a command that reads it gives it up before long."""
        deadline = self.clock.monotonic() + READERS_SECONDS
        while True:
            try:
                return self.files.acquire()
            except DataDirectoryInUse:
                if self.clock.monotonic() >= deadline or not self.files.only_read():
                    raise
            await self.clock.sleep(READERS_STEP)

    async def stop(self, *, grace: float = 0.0) -> None:
        """Give running work `grace` seconds, then end every instance; the rest stays stored."""
        await self.finish_work(grace)
        self.instances.accepting = False
        self._idle.stop()
        if self._alarms is not None:
            await self._alarms.stop()
        for instance in self.instances:
            self.instances.end(
                instance.path, "the server is stopping", close_sockets="The server is stopping"
            )
        self.sockets.close_all("The server is stopping")
        await self.instances.all_ended()
        self._close()

    async def finish_work(self, grace: float) -> None:
        """Wait until no agent is busy, but for `grace` seconds at most."""
        deadline = self.clock.monotonic() + grace
        while self._anything_busy() and self.clock.monotonic() < deadline:
            await self.clock.sleep(GRACE_STEP)

    def crash(self) -> None:
        """Forget everything that is not on disk at once, as `kill -9` does; for tests."""
        self.instances.accepting = False
        self.sockets.drop_all()
        for instance in self.instances:
            self.instances.end(instance.path, "the process crashed", close_sockets="")
        self._idle.stop()
        if self._alarms is not None:
            self._alarms.abandon()
        self._close()

    def evict(self, path: AgentPath, *, force: bool = False) -> None:
        """Take an agent out of memory and keep its clients' sockets; the next frame opens it again.

        Raises:
            RametError: It is busy (the message says with what), and `force` is not given.
        """
        instance = self.instances.live(path)
        reason = None if instance is None or force else self.instances.busy(instance)
        if reason is not None:
            raise RametError(f"{path} cannot be evicted now: {reason}")
        self.instances.end(path, "it was evicted", close_sockets=None)

    def check(self, path: AgentPath) -> None:
        """Raise what is wrong with an address without opening anything; see `Instances.opened`."""
        check_path(path, self.classes)

    async def respond(self, path: AgentPath, request: Request) -> Response:
        """Let the agent at `path` answer an HTTP request; the answer may be seen then."""
        instance = await self.instances.opened(path)
        with instance.hold("an HTTP request is being answered"):
            work = instance.runtime.respond(request)
            fence = self._outside.fence
            answer = await self.instances.run(instance, work, name="on_request", fence=fence)
            response = kept_open(instance, answer)
            await released(instance)
        return response

    async def admit(self, path: AgentPath, request: Request) -> Response | Request:
        """Ask every parent on the path whether the request may pass; a response refuses (D19)."""
        return await self._gate.admit(path, request)

    async def connect(self, path: AgentPath, link: ClientLink) -> None:
        """Open the agent at `path` and let it greet a client."""
        await self.sockets.connect(path, link)

    def receive(self, link: ClientLink, message: Message) -> None:
        """Hand a client's frame to its agent; never waits."""
        self.sockets.receive(link, message)

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        """Let a client go that has closed or was lost."""
        self.sockets.disconnect(link, code, reason)

    def stub(self, path: AgentPath, cls: type[A]) -> A:
        """A stub of an agent, for code outside any agent; arguments and results pass by value."""
        self.check(path)
        return as_instance(cls, Stub(path, cls, self._outside))

    def caller_for(self, path: AgentPath, fence: Fence) -> Caller:
        """The port through which the instance at `path` calls others."""
        return InstanceCaller(instances=self.instances, path=path, fence=fence)

    def lifecycles_for(self, path: AgentPath, fence: Fence) -> Lifecycles:
        """The port through which the instance at `path` opens and stops others."""
        return InstanceLifecycles(
            instances=self.instances, deletion=self._deletion, path=path, fence=fence
        )

    def wakeups_for(self, path: AgentPath, fence: Fence) -> Wakeups:
        """The index of wake-ups as the root agent at `path` sees it."""
        if self._wakeups is None:
            raise NotRunning("The host is not running")
        return RootWakeups(self._wakeups, path, fence)

    def root_features(self, path: AgentPath) -> RootFeatures:
        """What the live root of an agent keeps for those below it."""
        root = self.instances.live(path.root)
        if root is None:
            raise InstanceGone(f"The root of {path} is gone")
        return root.runtime.durable

    async def dispatch(
        self, target: AgentPath, handler: str, arguments: tuple[object, ...]
    ) -> object:
        """Run an internal handler of a sub-agent; see `schedules.ports.Dispatch`."""
        return await dispatch_internal(self.instances, target, handler=handler, arguments=arguments)

    def live_database(self, path: AgentPath) -> Database | None:
        """The database of an agent that is in memory."""
        instance = self.instances.live(path)
        return None if instance is None else instance.database

    def _opened(self, instance: Instance) -> None:
        self.sockets.hand_over(instance)
        self._idle.make_room()

    def _deletions(self) -> PendingDeletions:
        if self._pending_deletions is None:
            raise NotRunning("The host is not running")
        return self._pending_deletions

    def _forget_alarm(self, root: AgentPath) -> None:
        if self._wakeups is not None:
            self._wakeups.set(root, None)

    def _alarm_due(self) -> None:
        if self._alarms is not None and self.running:
            self._alarms.due()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._wakeups = self._alarms = self._pending_deletions = None
        self.files.release()

    def _anything_busy(self) -> bool:
        return any(instance.busy() for instance in self.instances)


def _raised_file_limit() -> int:
    """Allow as many open files as the system lets us; returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft
