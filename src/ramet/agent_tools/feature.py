"""Agent-tool runs of one parent: the feature that `Agent` composes, in front of its parts."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ramet.agent_tools.cancel import Cancellation
from ramet.agent_tools.carry_out import RunTasks
from ramet.agent_tools.detached.runs import DetachedPorts, DetachedRuns
from ramet.agent_tools.detached_observers import DetachedObservers
from ramet.agent_tools.dispatch import Dispatcher, RunOrder
from ramet.agent_tools.finalize import Finalizer
from ramet.agent_tools.frame_store import FrameStore
from ramet.agent_tools.in_flight import RunsInFlight
from ramet.agent_tools.look_up import LookUp
from ramet.agent_tools.observe import Observer
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import DetachedRun, RunInfo, RunInspection, RunResult
from ramet.agent_tools.recovery import Recovery
from ramet.agent_tools.replay import Replay
from ramet.agent_tools.retention import Retention
from ramet.agent_tools.run_store import RunStore
from ramet.connections.connection import Connection
from ramet.core.signals import AbortSignal
from ramet.protocol.run_events import RunStatus

__all__ = ["AgentToolPorts", "AgentTools", "DetachedPorts"]


class AgentTools:
    """The runs of one parent agent."""

    def __init__(self, ports: AgentToolPorts, detached: DetachedPorts) -> None:
        runs, frames, in_flight = (
            RunStore(ports.database),
            FrameStore(ports.database),
            RunsInFlight(),
        )
        tasks = RunTasks(
            ports=ports,
            runs=runs,
            in_flight=in_flight,
            observer=Observer(ports=ports),
            finalizer=Finalizer(ports, runs),
        )
        dispatcher = Dispatcher(
            ports=ports,
            runs=runs,
            frames=frames,
            in_flight=in_flight,
            tasks=tasks,
            observers=DetachedObservers(),
        )
        self.detached = DetachedRuns(dispatcher, detached)
        ports.fence.on_down(lambda: self._gone(ports.fence.error()))
        self._in_flight = in_flight
        self._dispatcher = dispatcher
        self._recovery = Recovery(ports=ports, dispatcher=dispatcher, tasks=tasks)
        self._replay = Replay(ports=ports, dispatcher=dispatcher)
        self._cancellation = Cancellation(dispatcher=dispatcher, detached=self.detached)
        self._retention = Retention(ports=ports, dispatcher=dispatcher)
        self._look_up = LookUp(ports=ports, dispatcher=dispatcher)

    def _gone(self, error: Exception) -> None:
        self._in_flight.gone(error)
        self._dispatcher.observers.gone(error)

    def note_unfinished(self) -> None:
        """Note what an earlier instance left unfinished; before `on_start`."""
        self._recovery.note()

    def recover_unfinished(self) -> None:
        """Take up what was noted, in the background; after `on_start`."""
        self._recovery.begin()
        self.detached.take_up()

    def replay_to(self, connection: Connection) -> None:
        """Send the runs there are to a new connection."""
        self._replay.greet(connection)

    def take_up_replay(self, connection: Connection) -> None:
        """Go on with the replay that an earlier instance had begun for a connection."""
        self._replay.take_up(connection)

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        if len(self._in_flight):
            return "an agent-tool run is under way"
        if (reporting := self.detached.busy()) is not None:
            return reporting
        return "a client is being sent the runs there are" if self._replay.busy() else None

    async def run(self, order: RunOrder, signal: AbortSignal | None) -> RunResult[object]:
        """Run a child as a tool and wait for its result; see `Dispatcher.run`."""
        return await self._dispatcher.run(order, signal)

    async def let_go(
        self, order: RunOrder, asked: object, signal: AbortSignal | None
    ) -> DetachedRun:
        """Run a child as a tool that reports back by itself; see `DetachedRuns.dispatch`."""
        return await self.detached.dispatch(order, asked, signal)

    async def cancel(self, run_id: str, reason: str | None) -> None:
        """Tell a run's child to stop."""
        await self._cancellation.cancel(run_id, reason)

    async def ended(self, run_id: str) -> None:
        """Wait until the run that this instance works for has its end, if it does for that one."""
        live = self._in_flight.get(run_id)
        if live is not None:
            await live.sealed.wait()

    def has(self, cls: type | str, run_id: str) -> bool:
        """Whether there is a run of that class and id."""
        return self._look_up.has(cls, run_id)

    def matching(
        self,
        cls: type | str | None,
        *,
        status: RunStatus | Sequence[RunStatus] | None,
        parent_tool_call_id: str | None,
    ) -> list[RunInfo]:
        """The runs that fit all that is given, oldest first."""
        return self._look_up.matching(cls, status=status, parent_tool_call_id=parent_tool_call_id)

    async def inspect(self, run_id: str) -> RunInspection | None:
        """Where a run is, by its row and its child."""
        return await self._look_up.inspect(run_id)

    async def clear(
        self,
        *,
        older_than: timedelta | datetime | None,
        status: RunStatus | Sequence[RunStatus] | None,
    ) -> int:
        """Remove runs with their children."""
        return await self._retention.clear(older_than=older_than, status=status)
