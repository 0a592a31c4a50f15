"""The fibers of one agent: what runs them, finds them again and keeps the agent meanwhile."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ramet.core.paths import AgentPath
from ramet.fibers.keep_alive import KeepAlive
from ramet.fibers.managed import ManagedFibers
from ramet.fibers.ports import FiberPorts
from ramet.fibers.recovery import FiberRecovery
from ramet.fibers.running import FiberRunner
from ramet.fibers.store import FiberStore


class Fibers:
    """Fibers, managed fibers and keep-alive of one agent."""

    def __init__(self, ports: FiberPorts) -> None:
        self._ports = ports
        self._store = FiberStore(ports.database)
        self._keep_alive = (
            None
            if ports.alarm is None
            else KeepAlive(ports.alarm, ports.clock, interval=ports.options.keep_alive_interval)
        )
        self._held = 0
        self.runner = FiberRunner(ports, self._store, hold=self.hold)
        self.managed = ManagedFibers(
            ports, self._store, self.runner, recover=lambda: self._recovery.scan()
        )
        self._recovery = FiberRecovery(ports, self._store, runner=self.runner, managed=self.managed)
        if ports.alarm is not None and self._keep_alive is not None:
            ports.alarm.add(next_due=self._keep_alive.next_due, handle=self._keep_alive.beat)
            ports.alarm.add(next_due=self._recovery.next_due, handle=self._recovery.due)

    async def recover(self) -> None:
        """Recover interrupted fibers; before `on_start` (FB-010)."""
        await self._recovery.scan()

    async def recover_for_root(self) -> bool:
        """Recover and say whether fibers are left; the root calls this as an internal handler."""
        await self._recovery.scan()
        return bool(self._store.runs())

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        if self._held:
            return "it is kept alive"
        return self.runner.busy()

    def hold(self) -> Callable[[], None]:
        """Keep the agent in memory until the returned function is called (KA-001)."""
        held = self._keep_alive.hold() if self._keep_alive else self._ports.root().hold()
        self._held += 1
        released = False

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                self._held -= 1
                held()

        return release

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Keep the agent in memory for the block; released on success and on error (KA-008)."""
        release = self.hold()
        try:
            yield
        finally:
            if not self._ports.fence.down:
                release()

    def lease(self, owner: AgentPath, run_id: str) -> None:
        """Look after a sub-agent's fiber; for a root."""
        if self._ports.alarm is not None:
            interval_ms = round(self._ports.options.keep_alive_interval * 1000)
            self._ports.alarm.promise(self._ports.clock.now_ms() + interval_ms)
        self._store.lease(owner, run_id, self._ports.clock.now_ms())

    def release(self, owner: AgentPath, run_id: str) -> None:
        """Forget a sub-agent's fiber; for a root."""
        self._store.release(owner, run_id)

    def forget(self, owner: AgentPath) -> None:
        """Forget the leases of a deleted sub-agent and of those below it; for a root."""
        for path in self._store.lease_owners():
            if owner.contains(path):
                self._store.release_owner(path)
