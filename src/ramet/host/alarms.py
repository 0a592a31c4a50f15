"""Opens the root agents whose moment has come and lets each run its alarm (D6)."""

import asyncio
import logging
from collections import deque
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
PAGE = 256
"""Roots that are read from the index at once."""
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
        self._waiting: deque[AgentPath] = deque()
        self._active: dict[AgentPath, asyncio.Task[None]] = {}
        self._stopped = False

    def due(self) -> None:
        """Begin to fire what is due, as far as there is room; the rest follows as others end."""
        while not self._stopped and len(self._active) < AT_ONCE:
            if not self._waiting and not self._read():
                self._index.watch()
                return
            root = self._waiting.popleft()
            if root not in self._active and self._index.is_due(root):
                self._active[root] = new_task(self._fire(root), name=f"alarm of {root}")
                self._active[root].add_done_callback(partial(self._fired, root))

    async def stop(self) -> None:
        """Fire nothing more and let go of what is firing."""
        tasks = self.abandon()
        if tasks:
            await asyncio.wait(tasks)

    def abandon(self) -> list[asyncio.Task[None]]:
        """Fire nothing more; returns the tasks that still have to notice."""
        self._stopped = True
        self._index.stop()
        tasks = list(self._active.values())
        for task in tasks:
            task.cancel()
        return tasks

    def _read(self) -> bool:
        """Read who is due; whether there is anybody whose alarm does not fire already."""
        due = self._index.due(len(self._active) + PAGE)
        self._waiting.extend(root for root in due if root not in self._active)
        return bool(self._waiting)

    def _fired(self, root: AgentPath, _: asyncio.Task[None]) -> None:
        self._active.pop(root, None)
        self.due()

    async def _fire(self, root: AgentPath) -> None:
        try:
            instance = await self._instances.opened(root)
            alarm = instance.runtime.alarm
            if alarm is not None:
                work = alarm.fire()
                await self._instances.run(instance, work, name="the alarm", fence=self._fence)
        except NotRunning:
            return
        except AddressError as error:
            _log.warning("%s has an alarm, but cannot be opened here: %s", root, error)
            self._index.set_aside(root)
        except InstanceGone:
            # If it was deleted nothing is left to put off; if it was stopped it is opened again.
            self._index.put_off(root, self._clock.now_ms() + TRY_AGAIN_MS)
        except Exception:  # noqa: BLE001 - whatever kept the alarm from running, it is tried again
            _log.exception("The alarm of %s failed; it is tried again", root)
            self._index.put_off(root, self._clock.now_ms() + TRY_AGAIN_MS)
