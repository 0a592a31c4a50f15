"""What an agent can do later: the methods that `Agent` gains from this feature."""

from collections.abc import Callable
from datetime import datetime, timedelta

from ramet.core.options import RetryOptions
from ramet.schedules.feature import Schedules
from ramet.schedules.records import Schedule, ScheduleType


class ScheduleVerbs:
    """The schedule methods of an agent."""

    _ramet_schedules: Schedules

    async def schedule(
        self,
        when: float | timedelta | datetime | str,
        method: Callable[..., object] | str,
        payload: object = None,
        *,
        idempotent: bool | None = None,
        retry: RetryOptions | None = None,
    ) -> Schedule:
        """Have a method called later with `(payload, schedule)`, as far as it takes arguments.

        `when` is a delay (seconds or `timedelta`), an aware `datetime`, or a cron line in UTC,
        which repeats. What was due while no process ran is called when one runs again, a cron line
        once however often it was due. A crash during a call has it called again: at least once.
        With `idempotent` (the default for cron lines) a schedule with the same kind of time, method
        and payload, and the same cron line, stands for the new one.

        Raises:
            InvalidSchedule: No schedule can have that time.
            MethodNotFound: This agent has no such method.
            InvalidArguments: `when` or `method` is something else, such as a function.
            NotJson: JSON cannot carry the payload.
            InvalidOptions: `retry` does not fit together with the options of the class.
        """
        return self._ramet_schedules.schedule(
            when, method, payload, idempotent=idempotent, retry=retry
        )

    async def schedule_every(
        self,
        seconds: float | timedelta,
        method: Callable[..., object] | str,
        payload: object = None,
        *,
        retry: RetryOptions | None = None,
    ) -> Schedule:
        """Have a method called again and again, each time this long after the last has ended.

        The same method with the same interval and payload is scheduled once. A call that takes
        longer than `AgentOptions.hung_schedule_timeout` is cancelled and made anew.

        Raises:
            InvalidSchedule: The interval is not above zero, or longer than 30 days.
            MethodNotFound: This agent has no such method.
            InvalidArguments: An argument is something else.
            NotJson: JSON cannot carry the payload.
            InvalidOptions: `retry` does not fit together with the options of the class.
        """
        return self._ramet_schedules.schedule_every(seconds, method, payload, retry=retry)

    async def cancel_schedule(self, id: str) -> bool:
        """Cancel one of this agent's schedules; False when it has none of that id.

        A call that is under way goes on.
        """
        return self._ramet_schedules.cancel(id)

    async def get_schedule(self, id: str) -> Schedule | None:
        """One of this agent's schedules; None when it has none of that id."""
        return self._ramet_schedules.get(id)

    async def list_schedules(
        self,
        *,
        id: str | None = None,
        type: ScheduleType | None = None,
        time_range: tuple[datetime | None, datetime | None] | None = None,
    ) -> list[Schedule]:
        """This agent's schedules that fit all that is given, the earliest first.

        A time range includes both of its aware ends; None leaves an end open.
        """
        return self._ramet_schedules.matching(id=id, type=type, time_range=time_range)
