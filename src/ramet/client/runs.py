"""The runs of an agent's agent tools, as a client knows them from their events."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ramet.client.client import AgentClient
from ramet.client.listeners import Listeners
from ramet.core.json import JsonObject
from ramet.protocol.run_reducer import apply_agent_tool_event, frame_identity
from ramet.protocol.run_state import AgentToolState, RunState


class AgentToolEvents:
    """Collects the runs that a client is told of; each event counts once, live or replayed (D27).

    It may be made before the client connects or after: what came before is kept for the first one.
    """

    def __init__(self, client: AgentClient) -> None:
        self._clock = client.options.clock
        self._state = AgentToolState()
        self._seen: dict[str, set[tuple[str, str]]] = {}
        self._changes: Listeners[AgentToolState] = Listeners("agent-tool events")
        self._stop = client.on_run_event(self._take)

    @property
    def state(self) -> AgentToolState:
        """Everything that is known now; it does not change afterwards."""
        return self._state

    @property
    def runs_by_id(self) -> Mapping[str, RunState]:
        """Every run, by its id."""
        return MappingProxyType(dict(self._state.runs_by_id))

    @property
    def runs_by_tool_call_id(self) -> Mapping[str, Sequence[RunState]]:
        """The runs of each tool call, by `order`, then by id."""
        return MappingProxyType(dict(self._state.runs_by_tool_call_id))

    @property
    def unbound_runs(self) -> Sequence[RunState]:
        """The runs that no tool call has started."""
        return self._state.unbound_runs

    def runs_for_tool_call(self, tool_call_id: str) -> Sequence[RunState]:
        """The runs of one tool call; none for one that has none."""
        return self._state.runs_by_tool_call_id.get(tool_call_id, ())

    def on_change(self, listener: Callable[[AgentToolState], object]) -> Callable[[], None]:
        """Call `listener` with the new state after each event that changes it; ends by the result.

        Returns:
            The function that ends it.
        """
        return self._changes.add(listener)

    def reset_local_state(self) -> None:
        """Forget all runs, here alone; events that come again count again (AT-162)."""
        self._seen.clear()
        self._changed(AgentToolState())

    def close(self) -> None:
        """Take no more events."""
        self._stop()

    def _take(self, frame: JsonObject) -> None:
        identity = frame_identity(frame)
        if identity is None:
            return
        call_id, run_id, what = identity
        seen = self._seen.setdefault(run_id, set())
        if (call_id, what) in seen:
            return
        seen.add((call_id, what))
        state = apply_agent_tool_event(self._state, frame, now_ms=self._clock.now_ms())
        if state is not self._state:
            self._changed(state)

    def _changed(self, state: AgentToolState) -> None:
        self._state = state
        self._changes.tell(state)
