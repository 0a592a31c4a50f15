"""Opens the root agents whose moment has come and lets each run its alarm (D6)."""

import asyncio
import logging
from functools import partial

from ramet.core.clock import Clock
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import AddressError, InstanceGone, NotRunning
from ramet.host.instances import Instances
from ramet.host.tasks import new_task
from ramet.host.wakeups import WakeupIndex

AT_ONCE = 64
"""Roots that run their alarms at the same time."""
TRY_AGAIN_MS = 30_000
"""Milliseconds after which a root whose alarm could not run is tried again."""

_log = logging.getLogger("ramet.host")


class Alarms:
    """Fires the alarms of all root agents of one host, each at most once at a time."""

    def __init__(self, index: WakeupIndex, instances: Instances, clock: Clock) -> None:
        self._index = index
        self._instances = instances
        self._clock = clock
        self._fence = Fence("the host's alarms")
        self._active: dict[AgentPath, asyncio.Task[None]] = {}
        self._round: asyncio.Task[None] | None = None

    def due(self) -> None:
        """Begin to fire what is due; called by the index's timer."""
        if self._round is None or self._round.done():
            self._round = new_task(self._fire_all(), name="alarms")

    async def stop(self) -> None:
        """Fire nothing more and let go of what is firing."""
        self._index.stop()
        tasks = [*self._active.values(), *([self._round] if self._round else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _fire_all(self) -> None:
        while True:
            waiting = [r for r in self._index.due(2 * AT_ONCE) if r not in self._active]
            for root in waiting[: AT_ONCE - len(self._active)]:
                task = new_task(self._fire(root), name=f"alarm of {root}")
                self._active[root] = task
                task.add_done_callback(partial(self._fired, root))
            if not self._active:
                break
            await asyncio.wait(self._active.values(), return_when=asyncio.FIRST_COMPLETED)
        self._index.watch()

    def _fired(self, root: AgentPath, _: asyncio.Task[None]) -> None:
        self._active.pop(root, None)

    async def _fire(self, root: AgentPath) -> None:
        try:
            instance = await self._instances.opened(root)
            alarm = instance.runtime.alarm
            if alarm is not None:
                work = alarm.fire()
                await self._instances.run(instance, work, name="alarm", fence=self._fence)
        except NotRunning:
            return
        except AddressError:
            _log.warning("%s has an alarm but cannot be reached; it is forgotten", root)
            self._index.set(root, None)
        except InstanceGone:
            # If it was deleted nothing is left to put off; if it was stopped it is opened again.
            self._index.put_off(root, self._clock.now_ms() + TRY_AGAIN_MS)
        except Exception:  # noqa: BLE001 - whatever kept the alarm from running, it is tried again
            _log.exception("The alarm of %s failed; it is tried again", root)
            self._index.put_off(root, self._clock.now_ms() + TRY_AGAIN_MS)
