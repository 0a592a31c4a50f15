"""The schedules of one agent: checked at the call, kept by its root, carried out as its code."""

import logging
from collections.abc import Mapping

from ramet.core.callbacks import callback_name
from ramet.core.json import JsonValue
from ramet.core.listing import check_text
from ramet.core.options import RetryOptions
from ramet.core.paths import AgentPath
from ramet.core.payloads import dump_payload
from ramet.core.retry import complete_retry, dump_retry
from ramet.errors import InvalidArguments
from ramet.schedules.execution import Execution
from ramet.schedules.policy import Timing, bounds_of, interval_timing, timing_of
from ramet.schedules.ports import RootSide, SchedulePorts
from ramet.schedules.records import SCHEDULE_TYPES, Schedule, ScheduleType
from ramet.schedules.store import INTERNAL, NewSchedule, StoredSchedule, owner_key
from ramet.schedules.timetable import Timetable

_ARGUMENTS = 2
"""A callback gets the payload and the schedule."""

_log = logging.getLogger("ramet.schedules")


class Schedules:
    """What one agent has scheduled."""

    def __init__(self, ports: SchedulePorts) -> None:
        self._ports = ports
        self._owner = None if ports.path.is_root else ports.path
        self._execution = Execution(ports)
        self._timetable = (
            None if ports.alarm is None else Timetable(ports, ports.alarm, self._execution)
        )
        self._warned: set[str] | None = None
        """The callbacks that were warned of while `on_start` runs; None at any other time."""

    @property
    def root_side(self) -> RootSide | None:
        """What a root gives to the agents below it; None below a root."""
        return self._timetable

    def start_up(self) -> None:
        """Take note that `on_start` is about to run."""
        self._warned = set()

    async def resume(self) -> None:
        """Set the alarm if something is scheduled; after `on_start`."""
        self._warned = None
        if self._timetable is not None:
            self._timetable.heal()

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        if self._execution.running:
            return "a scheduled callback is running"
        return None if self._timetable is None else self._timetable.busy()

    async def execute(self, row: StoredSchedule) -> None:
        """Carry out a row of this agent; its root calls this as an internal handler."""
        await self._execution.run(row)

    def rename(self, names: Mapping[str, str]) -> None:
        """Take over the schedules of sub-agents whose classes had other names before; of a root."""
        if self._timetable is not None:
            self._timetable.rename(names)

    def forget(self, path: AgentPath) -> None:
        """Remove the schedules of a deleted sub-agent and of those below it; for a root."""
        if self._timetable is not None:
            self._timetable.forget(path)

    def schedule(
        self,
        when: object,
        method: object,
        payload: object,
        *,
        idempotent: bool | None,
        retry: RetryOptions | None,
    ) -> Schedule:
        """Have a method called later; see `ScheduleVerbs.schedule`."""
        self._ports.fence.check()
        timing = timing_of(when, self._ports.clock.now_ms())
        default = timing.type == "cron"
        new = self._checked(
            timing,
            method,
            payload,
            retry=retry,
            idempotent=default if idempotent is None else idempotent,
        )
        if idempotent is None and timing.once:
            self._warn_in_start(new.callback)
        return self._add(new)

    def schedule_every(
        self, seconds: object, method: object, payload: object, *, retry: RetryOptions | None
    ) -> Schedule:
        """Have a method called again and again; see `ScheduleVerbs.schedule_every`."""
        self._ports.fence.check()
        timing = interval_timing(seconds, self._ports.clock.now_ms())
        return self._add(self._checked(timing, method, payload, idempotent=True, retry=retry))

    def cancel(self, id: str) -> bool:
        """Remove one of this agent's schedules; False when there is none of that id."""
        if self.get(id) is None:
            return False
        row = self._root_side.remove(id, self._owner)
        if row is not None:
            self._ports.events.emit("schedule:cancel", {"callback": row.callback, "id": row.id})
        return row is not None

    def get(self, id: str) -> Schedule | None:
        """One of this agent's schedules; None when there is none of that id."""
        check_text(id, what="The id of a schedule")
        return next(iter(self.matching(id=id)), None)

    def matching(
        self,
        *,
        id: str | None = None,
        type: ScheduleType | None = None,
        time_range: object = None,
    ) -> list[Schedule]:
        """This agent's schedules that fit all that is given, the earliest first."""
        self._ports.fence.check()
        if id is not None:
            check_text(id, what="The id of a schedule")
        if type is not None and type not in SCHEDULE_TYPES:
            raise InvalidArguments(f"{type!r} is not one of the types {', '.join(SCHEDULE_TYPES)}")
        first, last = bounds_of(time_range)
        return [
            row.shown()
            for row in self._root_side.of_owner(self._owner, id)
            if not row.internal
            and (type is None or row.timing.type == type)
            and first <= row.timing.time <= last
        ]

    def wake(
        self,
        handler: str,
        due_ms: int | None,
        *,
        payload: JsonValue = None,
        delay: float | None = None,
    ) -> None:
        """Have an internal handler of this agent called at a moment, in place of the one before.

        For features that have to go on after a crash: an agent that is not open then is opened.
        None takes the moment back. Users neither see nor name it (D16). It is `LONGEST_WAKING` away
        at most: one that is further away is brought nearer.
        """
        self._ports.fence.check()
        id = self._waking_id(handler)
        if due_ms is None:
            self._root_side.remove(id, self._owner)
            return
        time = -(-due_ms // 1000)
        new = NewSchedule(
            owner=self._owner,
            callback=handler,
            payload=dump_payload(payload, what=f"The payload of {handler}"),
            timing=Timing(type="delayed", time=time, delay_in_seconds=delay),
            id=id,
        )
        self._root_side.add(new)

    def woken_at(self, handler: str) -> int | None:
        """When `wake` is to have a handler called, in epoch milliseconds; None when it is not."""
        rows = self._root_side.of_owner(self._owner, self._waking_id(handler))
        return rows[0].timing.time * 1000 if rows else None

    def _waking_id(self, handler: str) -> str:
        return f"{INTERNAL}{handler}:{owner_key(self._owner) or ''}"

    @property
    def _root_side(self) -> RootSide:
        return self._timetable or self._ports.root()

    def _checked(
        self,
        timing: Timing,
        method: object,
        payload: object,
        *,
        idempotent: bool,
        retry: RetryOptions | None,
    ) -> NewSchedule:
        """Check all that was given; nothing is written unless all of it is right."""
        callback = callback_name(self._ports.agent, method, gives=_ARGUMENTS)
        return NewSchedule(
            owner=self._owner,
            callback=callback,
            payload=dump_payload(payload, what=f"The payload of {callback}"),
            timing=timing,
            retry=dump_retry(complete_retry(retry, self._ports.options.retry)),
            idempotent=idempotent,
        )

    def _add(self, new: NewSchedule) -> Schedule:
        row, created = self._root_side.add(new)
        if created:
            self._ports.events.emit("schedule:create", {"callback": row.callback, "id": row.id})
        return row.shown()

    def _warn_in_start(self, callback: str) -> None:
        if self._warned is None or callback in self._warned:
            return
        self._warned.add(callback)
        _log.warning(
            "%s: on_start schedules %s, which makes a new schedule at every start; "
            "pass idempotent=True to have one, or False if this is meant",
            self._ports.path,
            callback,
        )
