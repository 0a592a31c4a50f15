"""What of an agent outlives its process: schedules, the queue and fibers, put together."""

from collections.abc import Awaitable, Callable, Mapping

from ramet.agent.context import AgentContext
from ramet.agent.hooks import Hooks
from ramet.core.alarm import Alarm
from ramet.core.paths import AgentPath
from ramet.core.retry import Retrier
from ramet.fibers.feature import Fibers
from ramet.fibers.ports import RECOVER_FIBERS, FiberPorts
from ramet.fibers.ports import RootSide as FiberRootSide
from ramet.queue.feature import Queue
from ramet.queue.ports import RESUME_QUEUE, QueuePorts
from ramet.schedules.feature import Schedules
from ramet.schedules.ports import EXECUTE_SCHEDULE, SchedulePorts
from ramet.schedules.ports import RootSide as ScheduleRootSide
from ramet.schedules.retries import Retries


class Durable:
    """The features of one agent that take up again what an earlier process left."""

    def __init__(
        self,
        context: AgentContext,
        *,
        agent: object,
        hooks: Hooks,
        alarm: Alarm | None,
        internal: dict[str, Callable[..., Awaitable[object]]],
    ) -> None:
        self.fibers = Fibers(_fiber_ports(context, hooks=hooks, alarm=alarm))
        self.schedules = Schedules(
            _schedule_ports(context, agent=agent, hooks=hooks, alarm=alarm, internal=internal)
        )
        self.queue = Queue(
            QueuePorts(
                path=context.path,
                database=context.database,
                clock=context.clock,
                ids=context.ids,
                fence=context.fence,
                background=context.background,
                events=context.events,
                errors=hooks,
                options=context.options,
                agent=agent,
                wake=self.schedules.wake,
            )
        )
        self.retries = Retries(
            retrier=Retrier(clock=context.clock, ids=context.ids), defaults=context.options.retry
        )
        internal[EXECUTE_SCHEDULE] = self.schedules.execute
        internal[RESUME_QUEUE] = self.queue.woken
        internal[RECOVER_FIBERS] = self.fibers.recover_for_root

    @property
    def schedule_side(self) -> ScheduleRootSide:
        """What a root keeps of the schedules of the agents below it."""
        side = self.schedules.root_side
        assert side is not None, "only a root is asked"
        return side

    @property
    def fiber_side(self) -> FiberRootSide:
        """What a root keeps of the fibers of the agents below it."""
        return self.fibers

    async def start_up(self) -> None:
        """Before `on_start`: note what is there and recover interrupted fibers (FB-010)."""
        self.schedules.start_up()
        self.queue.start_up()
        await self.fibers.recover()

    async def resume(self) -> None:
        """After `on_start`: set the alarm and go on with the queue."""
        await self.schedules.resume()
        await self.queue.resume()

    def busy(self) -> str | None:
        """Why the instance may not be evicted now."""
        return self.schedules.busy() or self.queue.busy() or self.fibers.busy()

    def rename(self, names: Mapping[str, str]) -> None:
        """Take over what a root keeps for sub-agents whose classes had other names before."""
        self.schedules.rename(names)
        self.fibers.rename(names)

    def forget(self, path: AgentPath) -> None:
        """Forget what a root keeps for a sub-agent that is deleted, and for those below it."""
        self.schedules.forget(path)
        self.fibers.forget(path)


def _fiber_ports(context: AgentContext, *, hooks: Hooks, alarm: Alarm | None) -> FiberPorts:
    return FiberPorts(
        path=context.path,
        database=context.database,
        clock=context.clock,
        ids=context.ids,
        fence=context.fence,
        background=context.background,
        events=context.events,
        errors=hooks,
        options=context.options,
        hook=hooks,
        alarm=alarm,
        root=lambda: context.root().fiber_side,
        dispatch=context.dispatch,
    )


def _schedule_ports(
    context: AgentContext,
    *,
    agent: object,
    hooks: Hooks,
    alarm: Alarm | None,
    internal: dict[str, Callable[..., Awaitable[object]]],
) -> SchedulePorts:
    return SchedulePorts(
        path=context.path,
        database=context.database,
        clock=context.clock,
        ids=context.ids,
        fence=context.fence,
        background=context.background,
        events=context.events,
        errors=hooks,
        options=context.options,
        agent=agent,
        alarm=alarm,
        root=lambda: context.root().schedule_side,
        dispatch=context.dispatch,
        internal=internal,
    )
