"""Durable work: the methods that `Agent` gains from fibers."""

import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TypeVar

from ramet.fibers.feature import Fibers
from ramet.fibers.records import FiberInspection, FiberResult, InterruptedFiber, StartedFiber
from ramet.fibers.running import FiberFunction

T = TypeVar("T")

_log = logging.getLogger("ramet.fibers")


class FiberVerbs:
    """The fiber methods of an agent."""

    _ramet_fibers: Fibers

    def keep_alive(self) -> AbstractAsyncContextManager[None]:
        """Keep the agent in memory for an `async with` block, and have it opened after a crash.

        Holders are counted, those of sub-agents too; after a crash nobody holds any more.
        """
        return self._ramet_fibers.keep_alive()

    async def run_fiber(self, name: str, fn: FiberFunction[T]) -> T:
        """Run `await fn(fiber)` and return what it returns, with a row on disk meanwhile.

        When the process dies in it, `on_fiber_recovered` is called with what `fiber.stash(data)`
        kept last. What `fn` raises reaches the caller; it is not tried again.
        """
        return await self._ramet_fibers.runner.run(name, fn)

    async def start_fiber(
        self,
        name: str,
        fn: FiberFunction[object],
        *,
        fiber_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: object = None,
        wait: bool = False,
    ) -> StartedFiber:
        """Start `fn(fiber)` in the background and enter it in a ledger that outlives it.

        A second start with the same id or key finds the first (`accepted` is False) and does not
        run `fn`. With `wait` it returns when the fiber is over. What `fn` returns is not kept;
        stash what is needed later.

        Raises:
            InvalidArguments: An id or key is blank, or they name different fibers.
            NotJson: JSON cannot carry the metadata.
        """
        return await self._ramet_fibers.managed.start(
            name,
            fn,
            fiber_id=fiber_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
            wait=wait,
        )

    def inspect_fiber(self, fiber_id: str) -> FiberInspection | None:
        """What the ledger has of a fiber."""
        return self._ramet_fibers.managed.inspect(fiber_id)

    def inspect_fiber_by_key(self, idempotency_key: str) -> FiberInspection | None:
        """What the ledger has of the fiber with a key."""
        return self._ramet_fibers.managed.inspect_by_key(idempotency_key)

    def list_fibers(
        self, *, status: str | Iterable[str] | None = None, limit: int = 50
    ) -> list[FiberInspection]:
        """Managed fibers of some statuses (all by default), the newest first; at most 100."""
        return self._ramet_fibers.managed.list(status, limit)

    async def cancel_fiber(self, fiber_id: str, reason: str | None = None) -> bool:
        """Abort a fiber that is not over; False when it is, or is not known.

        Its signal is aborted and its task cancelled; those who wait for it go on at once.
        """
        return self._ramet_fibers.managed.cancel(fiber_id, reason)

    async def cancel_fiber_by_key(self, idempotency_key: str, reason: str | None = None) -> bool:
        """Abort the fiber with a key, like `cancel_fiber`."""
        found = self._ramet_fibers.managed.inspect_by_key(idempotency_key)
        return found is not None and await self.cancel_fiber(found.fiber_id, reason)

    def delete_fibers(
        self,
        *,
        status: str | Iterable[str] | None = None,
        settled_before: datetime | None = None,
        limit: int = 100,
    ) -> int:
        """Forget fibers that are over (not the interrupted ones by default); returns how many.

        The longest settled go first, at most 500 at once. `settled_before` is an aware `datetime`.
        """
        return self._ramet_fibers.managed.delete(status, settled_before=settled_before, limit=limit)

    def resolve_fiber(self, fiber_id: str, result: FiberResult) -> bool:
        """Settle a fiber that was left interrupted; False when it is not interrupted."""
        return self._ramet_fibers.managed.resolve(fiber_id, result)

    def stash(self, data: object) -> None:
        """Replace the snapshot of the fiber that the running code belongs to; durable on return.

        Raises:
            NoCurrentFiber: The running code belongs to no fiber, or the fiber is over.
            NotJson: JSON cannot carry the data; the snapshot before stays.
        """
        self._ramet_fibers.runner.stash(data)

    def on_fiber_recovered(self, fiber: InterruptedFiber) -> object:
        """Take up a fiber whose process died; may be async.

        Its row is deleted when this returns. When it raises, the row of a plain fiber is kept and
        tried again later (up to a day), a managed fiber ends as `error`. For a managed fiber a
        returned `FiberResult` settles it; None leaves it interrupted. After another crash it is
        called again for a fiber for which it had not returned.
        """
        _log.warning("The fiber %r (%s) was interrupted; nobody takes it up", fiber.name, fiber.id)
        return None
