"""Those who wait for a detached run: they only observe, and never cancel it (QK-010)."""

import asyncio
from dataclasses import dataclass, field

from ramet.agent_tools.stored_run import StoredRun
from ramet.core.signals import AbortSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedObservers:
    """The waiters of the detached runs of one parent."""

    _waiters: dict[str, set["asyncio.Future[StoredRun]"]] = field(default_factory=dict)

    async def ended(self, run: StoredRun, signal: AbortSignal | None) -> StoredRun:
        """Wait until a run has ended or is given up; the run as it stands when `signal` is aborted.

        Cancelling this wait changes nothing of the run.
        """
        if run.status not in {"starting", "running"}:
            return run
        waiter: asyncio.Future[StoredRun] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(run.run_id, set())
        waiters.add(waiter)

        def leave(_: object) -> None:
            if not waiter.done():
                waiter.set_result(run)

        forget = None if signal is None else signal.add_listener(leave)
        try:
            return await waiter
        finally:
            waiters.discard(waiter)
            if forget is not None:
                forget()

    def gone(self, error: Exception) -> None:
        """Raise in everybody who waits: the parent's instance is gone."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)

    def tell(self, run: StoredRun) -> None:
        """Give everybody who waits for a run its end."""
        for waiter in self._waiters.pop(run.run_id, set()):
            if not waiter.done():
                waiter.set_result(run)
