"""The root's side of schedules: all rows below one root, the alarm, and what is under way."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ramet.core.alarm import Alarm
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.core.paths import AgentPath
from ramet.core.warn_once import warn_once
from ramet.errors import AddressError, InstanceGone, SubAgentNotFound
from ramet.schedules import policy
from ramet.schedules.execution import Execution
from ramet.schedules.ports import EXECUTE_SCHEDULE, SchedulePorts
from ramet.schedules.store import (
    BEGINNING,
    ID_LENGTH,
    NewSchedule,
    ScheduleStore,
    StoredSchedule,
)

MOST_AT_ONCE = 100
"""Callbacks of one root and the agents below it that run at the same time."""
SIGN_OF_LIFE_MS = 30_000
"""While a callback runs the alarm stands no further away: a crash then costs that long at most."""
FULL_MS = 1_000
"""How long the alarm is put off at least while there is no room for more."""

_PAGE = 128
_MANY_ALIKE = (
    "{count} schedules of {callback} are due at once in {path}; is it scheduled again at every "
    "start? Use idempotent=True or schedule_every"
)
_OUT_OF_REACH = "the schedules of {owner} and others of its class are kept, but wait: {error}"

_log = logging.getLogger("ramet.schedules")


@dataclass(slots=True, kw_only=True, eq=False)
class UnderWay:
    """A row whose callback runs."""

    row: StoredSchedule
    since_ms: int
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A row that is left alone for a while, because its owner could not be reached."""

    row: StoredSchedule
    failures: int
    until_ms: int


class Timetable:
    """Keeps the schedules of a root and its sub-agents and starts what is due.

    Due rows are started in the order in which they are due, each as a task of its own: a callback
    that takes long holds nobody up. A row is settled (removed or moved) after its callback has
    ended, so a crash in between runs it again: **at least once** (kill tests at
    `schedule.executed`). The same interval never runs twice at a time.
    """

    def __init__(self, ports: SchedulePorts, alarm: Alarm, execution: Execution) -> None:
        self._ports = ports
        self._store = ScheduleStore(ports.database)
        self._alarm = alarm
        self._execution = execution
        self._under_way: dict[str, UnderWay] = {}
        self._pauses: dict[str, Pause] = {}
        self._latest_ms = 0
        """The wall clock has shown this moment; it may have been set back since."""
        self._more_wait = False
        """Whether due rows wait for others to end."""
        self._refill: asyncio.Task[None] | None = None
        alarm.add(next_due=self.next_due, handle=self.run_due)

    def add(self, new: NewSchedule) -> tuple[StoredSchedule, bool]:
        """Store a schedule, or find one that is alike; says whether it was stored."""
        found = self._store.alike(new) if new.idempotent else None
        if found is not None:
            self._alarm.renew()  # SC-013
            return found, False
        # What wakes is in another file than the row, so it is written first (D6).
        self._alarm.promise(new.timing.time * 1000)
        failpoint("schedule.promised")
        id = new.id or self._ports.ids.url_safe(ID_LENGTH)
        row = self._store.put(id, new, now_ms=self._now_ms())
        self._pauses.pop(id, None)
        failpoint("schedule.stored")
        return row, True

    def of_owner(self, owner: AgentPath | None, id: str | None) -> list[StoredSchedule]:
        """The schedules of an owner, the earliest first, or only the one of an id."""
        if id is None:
            return self._store.of_owner(owner)
        row = self._store.get(id, owner)
        return [] if row is None else [row]

    def remove(self, id: str, owner: AgentPath | None) -> StoredSchedule | None:
        """Remove one of an owner's schedules and return what it was; its callback may run on."""
        row = self._store.take(id, owner)
        if row is not None:
            self._pauses.pop(id, None)
            self._alarm.rearm()
        return row

    def forget(self, path: AgentPath) -> None:
        """Remove the schedules of a sub-agent that was deleted and of those below it (SC-045)."""
        rows = self._store.below(path)
        if not rows:
            return
        self._store.remove_all(rows)
        for row in rows:
            self._pauses.pop(row.id, None)
            if not row.internal:
                self._emit("schedule:cancel", row)
        self._alarm.rearm()

    def rename(self, names: Mapping[str, str]) -> None:
        """Put the rows of sub-agents whose classes had other names before under those of today."""
        for owner in self._store.owners():
            if owner.renamed(names) != owner:
                self._store.move(owner, owner.renamed(names))

    def heal(self) -> None:
        """Set the alarm again in case that the host's index has lost it; once at the start."""
        self._bring_nearer(self._now_ms())
        due_ms = self.next_due()
        if due_ms is not None:
            self._alarm.promise(due_ms)

    def next_due(self) -> int | None:
        """The moment at which there is something to do, in epoch milliseconds; None for never."""
        now_ms = self._ports.clock.now_ms()
        moments = [*self._signs_of_life(now_ms), *self._ends_of_pauses(), *self._hung()]
        if self._full:
            return max(min(moments), now_ms + FULL_MS)
        known = len(self._under_way) + len(self._pauses)
        for id, time in self._store.earliest(known + 1):
            if id not in self._under_way and id not in self._pauses:
                moments.append(time * 1000)
        return min(moments, default=None)

    async def run_due(self) -> None:
        """Start all that is due, as far as there is room; the rest follows as others end."""
        latest_ms, now_ms = self._latest_ms, self._now_ms()
        if now_ms < latest_ms:
            self._latest_ms = now_ms
            self._bring_nearer(now_ms)
        self._warn_of_many_alike()
        self._begin_due()
        await self._ports.clock.sleep(0)  # the shortest have ended before the alarm is set again

    def busy(self) -> str | None:
        """Why the root may not be evicted now."""
        return "a schedule is being carried out" if self._under_way else None

    def _now_ms(self) -> int:
        now_ms = self._ports.clock.now_ms()
        self._latest_ms = max(self._latest_ms, now_ms)
        return now_ms

    def _bring_nearer(self, now_ms: int) -> None:
        """Leave nothing that repeats further away than one period: the clock was set back.

        Nor a wake-up of a feature than those ever are. One-shot schedules of users keep their date.
        """
        now = now_ms // 1000
        for row in self._store.not_dated(after=now):
            latest = now + policy.LONGEST_WAKING
            time = latest if row.internal else policy.next_time(row.timing, now_ms)
            if time is not None and time + 1 < row.timing.time:  # a first time is rounded up
                self._alarm.promise(time * 1000)
                self._store.reschedule(row.id, time)
        self._store.begun_by(now)
        longest_ms = now_ms + policy.LONGEST_PAUSE_MS
        for id, pause in self._pauses.items():
            self._pauses[id] = replace(pause, until_ms=min(pause.until_ms, longest_ms))
        for under_way in self._under_way.values():
            under_way.since_ms = min(under_way.since_ms, now_ms)

    @property
    def _full(self) -> bool:
        return len(self._under_way) >= MOST_AT_ONCE

    def _signs_of_life(self, now_ms: int) -> list[int]:
        return [
            policy.next_sign_ms(under_way.since_ms, now_ms, every_ms=SIGN_OF_LIFE_MS)
            for under_way in self._under_way.values()
        ]

    def _ends_of_pauses(self) -> list[int]:
        return [pause.until_ms for id, pause in self._pauses.items() if id not in self._under_way]

    def _hung(self) -> list[int]:
        """When the intervals that are marked as running count as hung (SC-022)."""
        timeout = self._ports.options.hung_schedule_timeout
        moments = (policy.hung_at_ms(started, timeout) for started in self._store.running_since())
        return [moment for moment in moments if moment is not None]

    def _begin_due(self) -> None:
        self._more_wait = False
        for row in self._due():
            if self._full and row.id not in self._under_way:
                self._more_wait = True
                return
            self._begin(row)

    def _due(self) -> Iterator[StoredSchedule]:
        """The rows that are due and may run."""
        now_ms = self._ports.clock.now_ms()
        after = BEGINNING
        while True:
            page = self._store.due(now_ms // 1000, after=after, limit=_PAGE)
            yield from (row for row in page if self._may_run(row, now_ms))
            if len(page) < _PAGE:
                return
            after = page[-1].position

    def _may_run(self, row: StoredSchedule, now_ms: int) -> bool:
        pause = self._pauses.get(row.id)
        if pause is not None and pause.until_ms > now_ms:
            return False
        if not row.running:
            return row.id not in self._under_way
        hung_at = policy.hung_at_ms(row.started, self._ports.options.hung_schedule_timeout)
        if hung_at is None or now_ms < hung_at:
            return False
        why = "hangs" if row.id in self._under_way else "was cut off with its process"
        _log.warning("%s: the interval %s %s, it is run anew", self._ports.path, row.callback, why)
        return True

    def _begin(self, row: StoredSchedule) -> None:
        now_ms = self._ports.clock.now_ms()
        hung = self._under_way.get(row.id)
        if hung is not None and hung.task is not None:
            hung.task.cancel()
        if row.timing.type == "interval":
            # Stays marked after a crash: it then counts as hung in its time and is run again.
            self._store.claim(row.id, now=now_ms // 1000)
            failpoint("schedule.claimed")
        under_way = UnderWay(row=row, since_ms=now_ms)
        self._under_way[row.id] = under_way
        under_way.task = self._ports.background.start(
            self._carry_out(under_way), name=f"schedule {row.callback}"
        )

    async def _carry_out(self, under_way: UnderWay) -> None:
        row = under_way.row
        try:
            await self._deliver(row)
            self._settle(under_way)
        except SubAgentNotFound:
            assert row.owner is not None
            self.forget(row.owner)  # SC-046
        except Exception as error:  # noqa: BLE001 - whatever it was, the row stays and is tried again
            self._ports.fence.check()
            self._pause(under_way, error)
        finally:
            self._ended(under_way)

    async def _deliver(self, row: StoredSchedule) -> None:
        if row.owner is None:
            await self._execution.run(row)
            return
        try:
            await self._ports.dispatch(row.owner, EXECUTE_SCHEDULE, (row,))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise InstanceGone(f"The instance of {row.owner} is gone") from None

    def _settle(self, under_way: UnderWay) -> None:
        """Remove a row that was carried out, or move it to its next time."""
        row = under_way.row
        if self._under_way.get(row.id) is not under_way:
            return  # it was taken for hung and is run anew
        # Killed here or before, the row is still there and is carried out again.
        failpoint("schedule.executed")
        time = policy.next_time(row.timing, self._now_ms())
        if time is None:
            self._store.remove_unmoved(row)
            failpoint("schedule.removed")
        else:
            self._alarm.promise(time * 1000)
            failpoint("schedule.next_promised")
            self._store.reschedule(row.id, time)
            failpoint("schedule.rescheduled")
        self._pauses.pop(row.id, None)

    def _pause(self, under_way: UnderWay, error: Exception) -> None:
        """Keep the row of a callback that could not be reached, and leave it alone a while."""
        row = under_way.row
        if self._under_way.get(row.id) is not under_way or not self._store.release(row.id):
            return
        before = self._pauses.get(row.id)
        failures = 1 if before is None else before.failures + 1
        until_ms = self._ports.clock.now_ms() + policy.pause_ms(failures)
        self._pauses[row.id] = Pause(row=row, failures=failures, until_ms=until_ms)
        self._alarm.promise(until_ms)
        text = str(error) or type(error).__name__
        self._emit("schedule:error", row, {"error": text, "attempts": 0})
        if row.owner is None or not isinstance(error, AddressError):
            self._ports.errors.report(error)
            return
        # Its class is not registered, as after a deployment without it: the next may have it again.
        told, kind = _OUT_OF_REACH.format(owner=row.owner, error=text), row.owner.leaf.class_name
        warn_once(_log, type(self._ports.agent), told, about=f"out of reach: {kind}")

    def _ended(self, under_way: UnderWay) -> None:
        if self._under_way.get(under_way.row.id) is under_way:
            del self._under_way[under_way.row.id]
        if self._ports.fence.down:
            return
        if self._more_wait:
            if self._refill is None or self._refill.done():
                self._refill = self._ports.background.start(self._begin_more(), name="schedules")
        elif not self._under_way:
            self._alarm.rearm()

    async def _begin_more(self) -> None:
        """Start what waited, once for all that ended in the same round of the loop."""
        self._begin_due()
        if not self._under_way:
            self._alarm.rearm()

    def _warn_of_many_alike(self) -> None:
        known = [under_way.row for under_way in self._under_way.values()]
        known += [pause.row for pause in self._pauses.values()]
        begun = Counter(row.callback for row in known if row.timing.once)
        due = self._store.due_counts(self._ports.clock.now_ms() // 1000)
        for callback, count in policy.suspicious(due, begun).items():
            # Each may have a moment of its own, as after a downtime: one line tells enough.
            told = _MANY_ALIKE.format(count=count, callback=callback, path=self._ports.path)
            warn_once(_log, type(self._ports.agent), told, about=f"many alike: {callback}")
            self._ports.events.emit(
                "schedule:duplicate_warning",
                {"callback": callback, "count": count, "type": "one-shot"},
            )

    def _emit(self, event: str, row: StoredSchedule, more: JsonObject | None = None) -> None:
        payload: JsonObject = {"callback": row.callback, "id": row.id}
        self._ports.events.emit(event, payload | (more or {}))
