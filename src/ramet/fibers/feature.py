"""The fibers of one agent: what runs them, finds them again and keeps the agent meanwhile."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.fibers.keep_alive import KeepAlive
from ramet.fibers.leases import Leases
from ramet.fibers.managed import ManagedFibers
from ramet.fibers.ports import FiberPorts
from ramet.fibers.recovery import FiberRecovery
from ramet.fibers.running import FiberRunner
from ramet.fibers.store import FiberStore


class Fibers:
    """Fibers, managed fibers and keep-alive of one agent."""

    def __init__(self, ports: FiberPorts) -> None:
        self._ports = ports
        store = FiberStore(ports.database)
        self._leases = Leases(ports, store)
        self._keep_alive: KeepAlive | None = None
        self._held = 0
        self.runner = FiberRunner(ports, store, hold=self.hold)
        self.managed = ManagedFibers(
            ports, store, self.runner, recover=lambda: self._recovery.scan()
        )
        self._recovery = FiberRecovery(
            ports, store, runner=self.runner, managed=self.managed, leases=self._leases
        )
        if ports.alarm is not None:
            self._keep_alive = KeepAlive(
                ports.alarm,
                ports.clock,
                interval=ports.options.keep_alive_interval,
                fence=ports.fence,
            )
            ports.alarm.add(next_due=self._keep_alive.next_due, handle=self._keep_alive.beat)
            ports.alarm.add(next_due=self._recovery.next_due, handle=self._recovery.due)

    def rename(self, names: Mapping[str, str]) -> None:
        """Take over the leases of sub-agents whose classes had other names before; of a root."""
        self._leases.rename(names)

    async def recover(self) -> None:
        """Recover interrupted fibers of this agent; before `on_start` (FB-010)."""
        await self._recovery.start_up()

    async def recover_for_root(self) -> frozenset[str]:
        """Recover, and say which fibers there are; the root calls this as an internal handler."""
        await self._recovery.scan()
        return self._recovery.pending_ids()

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        if self.runner.busy() is not None:
            return self.runner.busy()
        return "it is kept alive" if self.holders else self._recovery.busy()

    @property
    def holders(self) -> int:
        """How many hold on to this agent; to a root also those that hold on to a sub-agent."""
        return self._held if self._keep_alive is None else self._keep_alive.count

    def hold(self, holder: Fence | None = None) -> Callable[[], None]:
        """Keep the agent in memory until the returned function is called (KA-001).

        Called again it does nothing; when the instance dies it is called. The holder is this agent,
        or one below it.
        """
        self._ports.fence.check()
        side = self._keep_alive or self._ports.root()
        let_go = side.hold(holder or self._ports.fence)
        self._held += 1
        released = False

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                self._held -= 1
                watched()
                let_go()

        watched = self._ports.fence.on_down(release)
        return release

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Keep the agent in memory for the block; released on success and on error (KA-008)."""
        release = self.hold()
        try:
            yield
        finally:
            release()

    def lease(self, owner: AgentPath, run_id: str) -> None:
        """Look after a sub-agent's fiber; for a root, whose alarm `hold` has promised."""
        self._leases.add(owner, run_id)

    def release(self, owner: AgentPath, run_id: str) -> None:
        """Forget a sub-agent's fiber; for a root."""
        self._leases.remove(owner, run_id)

    def lost(self, owner: AgentPath) -> None:
        """Have the fibers of an instance that is gone recovered before long; for a root."""
        if not self._ports.fence.down:
            self._leases.lose(owner)
            interval_ms = round(self._ports.options.keep_alive_interval * 1000)
            self._recovery.plan_at(self._ports.clock.now_ms() + interval_ms)

    def forget(self, owner: AgentPath) -> None:
        """Forget the leases of a deleted sub-agent and of those below it; for a root."""
        self._leases.forget(owner)
