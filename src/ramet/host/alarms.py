"""Opens the root agents whose moment has come and lets each run its alarm (D6)."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from ramet.core.clock import Clock, Timer
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import AddressError, InstanceGone, NotRunning, StorageError
from ramet.host.instances import Instances
from ramet.host.pace import Pace
from ramet.host.tasks import new_task
from ramet.host.wakeups import WakeupIndex

AT_ONCE = 64
"""Roots that run their alarms at the same time, at most."""
FEW = 4
"""Roots that run their alarms at the same time while the event loop has much to do."""
PAGE = 256
"""Roots that are read from the index at once."""
HUNG_SECONDS = 60.0
"""An alarm that has not fired by then takes nobody's place any more, and the log says so."""
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
        self._places: dict[AgentPath, Timer] = {}
        """Who takes one of the places, with what notices that it hangs and takes it away again."""
        self._resting: dict[AgentPath, int] = {}
        """Until when those are left alone that the index, being unwritable, still has as due."""
        self._pace = Pace(clock, few=FEW, most=AT_ONCE, begin=self.due)
        self._again: Timer | None = None
        self._stopped = False

    def due(self) -> None:
        """Begin to fire what is due, as far as there is room; the rest follows as others end."""
        try:
            self._fire_due()
        except StorageError:
            _log.exception("The index of wake-ups cannot be read; it is tried again")
            self._try_again()

    def _fire_due(self) -> None:
        while not self._stopped:
            if not self._waiting and not self._read():
                self._pace.rest()
                self._index.watch()
                return
            if not self._pace.may_begin(len(self._places)):
                return
            root = self._waiting.popleft()
            if root not in self._active and self._index.is_due(root):
                self._active[root] = new_task(self._fire(root), name=f"alarm of {root}")
                self._places[root] = self._clock.call_later(
                    HUNG_SECONDS, partial(self._hangs, root)
                )
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
        self._pace.rest()
        if self._again is not None:
            self._again.cancel()
        for timer in self._places.values():
            timer.cancel()
        tasks = list(self._active.values())
        for task in tasks:
            task.cancel()
        return tasks

    def _read(self) -> bool:
        """Read who is due; whether there is anybody whose alarm does not fire already."""
        now = self._clock.now_ms()
        last = now + TRY_AGAIN_MS  # further away only since the wall clock was set back
        self._resting = {root: t for root, t in self._resting.items() if now < t <= last}
        taken = self._active.keys() | self._resting.keys()
        due = self._index.due(len(taken) + PAGE)
        self._waiting.extend(root for root in due if root not in taken)
        return bool(self._waiting)

    def _hangs(self, root: AgentPath) -> None:
        """Give the place of one that does not come to its end to others; it may still come."""
        _log.warning("%s was woken %g seconds ago and has not started yet", root, HUNG_SECONDS)
        del self._places[root]
        self.due()

    def _fired(self, root: AgentPath, _: asyncio.Task[None]) -> None:
        self._active.pop(root, None)
        timer = self._places.pop(root, None)
        if timer is not None:
            timer.cancel()
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
            self._noted(root, self._index.set_aside)
        except InstanceGone:
            # If it was deleted nothing is left to put off; if it was stopped it is opened again.
            self._noted(root, self._put_off)
        except StorageError as error:
            _log.error("The alarm of %s failed; it is tried again: %s", root, error)
            self._noted(root, self._put_off)
        except Exception:  # noqa: BLE001 - whatever kept the alarm from running, it is tried again
            _log.exception("The alarm of %s failed; it is tried again", root)
            self._noted(root, self._put_off)

    def _put_off(self, root: AgentPath) -> None:
        self._index.put_off(root, self._clock.now_ms() + TRY_AGAIN_MS)

    def _noted(self, root: AgentPath, note: Callable[[AgentPath], object]) -> None:
        """Leave a root alone for now, also when the index cannot be told so."""
        try:
            note(root)
        except StorageError:
            _log.exception("The index of wake-ups cannot be written; it is tried again")
            self._resting[root] = self._clock.now_ms() + TRY_AGAIN_MS
            self._try_again()

    def _try_again(self) -> None:
        if self._again is not None:
            self._again.cancel()
        if not self._stopped:
            self._again = self._clock.call_later(TRY_AGAIN_MS / 1000, self.due)
