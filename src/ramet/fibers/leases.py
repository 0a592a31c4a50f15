"""A root's leases: which fibers of its sub-agents it looks after, since only it has an alarm."""

from collections.abc import Mapping
from typing import Protocol

from ramet.core.failpoints import failpoint
from ramet.core.paths import AgentPath
from ramet.errors import SubAgentNotFound
from ramet.fibers.ports import RECOVER_FIBERS, FiberPorts
from ramet.fibers.store import FiberStore


class Tally(Protocol):
    """What a scan has come to."""

    resolved: bool
    left: bool


class Leases:
    """The leases of one root; below a root there are none.

    A lease whose fiber runs in this process needs no look: it is over when the fiber is. Any other
    is orphaned, and its owner is opened to recover it.
    """

    def __init__(self, ports: FiberPorts, store: FiberStore) -> None:
        self._ports = ports
        self._store = store
        self._live: set[tuple[AgentPath, str]] = set()

    def add(self, owner: AgentPath, run_id: str) -> None:
        """Look after a fiber that is about to run (FB-046)."""
        self._store.lease(owner, run_id, self._ports.clock.now_ms())
        self._live.add((owner, run_id))
        failpoint("fiber.leased")

    def remove(self, owner: AgentPath, run_id: str) -> None:
        """Forget a fiber that is over."""
        self._live.discard((owner, run_id))
        self._store.release(owner, run_id)
        failpoint("fiber.released")

    def lose(self, owner: AgentPath) -> None:
        """Note that an instance is gone with its fibers."""
        self._live = {lease for lease in self._live if lease[0] != owner}

    def forget(self, owner: AgentPath) -> None:
        """Forget the fibers of a deleted sub-agent and of those below it."""
        for path, run_id in self._store.leases():
            if owner.contains(path):
                self.remove(path, run_id)

    def rename(self, names: Mapping[str, str]) -> None:
        """Take over the leases of sub-agents whose classes had other names before."""
        for owner in {owner for owner, _ in self._store.leases()}:
            if owner.renamed(names) != owner:
                self._store.move_leases(owner, owner.renamed(names))

    def orphaned(self) -> list[tuple[AgentPath, str]]:
        """The leases of fibers that do not run in this process, the oldest first."""
        if not self._ports.path.is_root:
            return []
        return [lease for lease in self._store.leases() if lease not in self._live]

    async def recover(self, tally: Tally) -> None:
        """Have the owners recover their fibers; what they do not know any more goes (FB-048)."""
        before = self.orphaned()
        for owner in dict.fromkeys(owner for owner, _ in before):
            try:
                await self._recover(owner)
            except Exception as error:  # noqa: BLE001 - one sub-agent's trouble must not stop the others
                self._ports.fence.check()
                self._ports.errors.report(error)
        left = self.orphaned()
        tally.left = tally.left or bool(left)
        tally.resolved = tally.resolved or not set(before) <= set(left)

    async def _recover(self, owner: AgentPath) -> None:
        try:
            pending = await self._ports.dispatch(owner, RECOVER_FIBERS, ())
        except SubAgentNotFound:
            pending = frozenset()
        assert isinstance(pending, frozenset), "it is what `recover_for_root` returns"
        for path, run_id in self.orphaned():
            if path == owner and run_id not in pending:
                self.remove(path, run_id)
