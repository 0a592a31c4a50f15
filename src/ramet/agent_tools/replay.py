"""Sends a new connection the runs there are, in pages as it takes them (D21, D22)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ramet.agent_tools.chunk_pages import ChunkPages
from ramet.agent_tools.dispatch import Dispatcher
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.replay_plan import runs_to_replay
from ramet.agent_tools.run_cursor import RunCursor, RunRecords
from ramet.agent_tools.run_frames import log_key
from ramet.agent_tools.run_store import StoredRun
from ramet.connections.connection import Connection
from ramet.connections.outbox import PAGE_BYTES

_KEY = log_key("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Starts the replays of one parent's connections."""

    ports: AgentToolPorts
    dispatcher: Dispatcher

    def greet(self, connection: Connection) -> None:
        """Replay to a connection that has just come; changes no row and tells no hook (AT-139)."""
        self._follow(connection, self._planned())

    def busy(self) -> bool:
        """Whether a connection has not caught up with some run yet."""
        return any(
            key.startswith(_KEY)
            for connection in self.ports.clients
            for key in connection.link.behind
        )

    def take_up(self, connection: Connection) -> None:
        """Go on where an earlier instance had begun a replay: the runs that are open, whole."""
        behind = connection.link.behind
        keys = {key for key in behind if key.startswith(_KEY)}
        behind -= keys
        runs = [self.dispatcher.runs.get(key.removeprefix(_KEY)) for key in keys]
        found = [run for run in runs if run is not None]
        self._follow(connection, sorted(found, key=lambda run: run.age))
        connection.link.outbox.resume()

    def _planned(self) -> list[StoredRun]:
        runs, most = self.dispatcher.runs, self.ports.host_options.replay_runs
        unfinished = runs.unfinished()
        newest = runs.newest(most + len(unfinished))
        calls = self.ports.transcript_calls()
        shown = runs.of_calls(calls, most) if calls else []
        known = [run.run_id for run in (*shown, *newest)]
        return runs_to_replay(
            unfinished,
            (shown, newest),
            chunk_counts=self.dispatcher.frames.chunk_counts(known),
            most_runs=most,
            most_chunks=self.ports.host_options.replay_chunks,
        )

    def _follow(self, connection: Connection, runs: Sequence[StoredRun]) -> None:
        runs = [run for run in runs if self.may_view(connection, run)]
        if not runs:
            return
        connection.link.behind.update(log_key(run.run_id) for run in runs)
        connection.link.outbox.follow(RunsReplay(self, connection, runs))

    def may_view(self, connection: Connection, run: StoredRun) -> bool:
        """Whether a client may see a run now."""
        hooks = self.ports.hooks
        return not hooks.filters_views or hooks.can_view(connection, run.info())

    def cursor(self, connection: Connection, run: StoredRun) -> RunCursor:
        """A cursor over one run, for one connection."""
        dispatcher = self.dispatcher
        records = RunRecords(
            runs=dispatcher.runs, frames=dispatcher.frames, in_flight=dispatcher.in_flight
        )
        pages = ChunkPages(
            self.ports, dispatcher.child_of(run), arrived=connection.link.outbox.resume
        )
        return RunCursor(records, run, pages)


class RunsReplay:
    """The replay to one connection: run after run, each until its live frames take over."""

    def __init__(self, replay: Replay, connection: Connection, runs: Sequence[StoredRun]) -> None:
        self._replay = replay
        self._connection = connection
        self._runs = deque(runs)
        self._cursor: RunCursor | None = None

    def next_page(self) -> Sequence[str] | None:
        """The next frames; None while the chunks of a child are fetched.

        When the instance is gone there is nothing more from here: the next one takes the replay up.
        """
        page: list[str] = []
        while self._runs and not self._replay.ports.fence.down:
            if not self._replay.may_view(self._connection, self._runs[0]):
                self._close_run()
                continue
            step = self._current().advance(page, PAGE_BYTES)
            if step == "caught-up":
                self._close_run()
            elif step == "waiting":
                return page or None
            else:
                return page
        return page

    def _current(self) -> RunCursor:
        """The cursor of the run that is being sent."""
        if self._cursor is None:
            self._cursor = self._replay.cursor(self._connection, self._runs[0])
        return self._cursor

    def _close_run(self) -> None:
        self._cursor = None
        run = self._runs.popleft()
        self._connection.link.behind.discard(log_key(run.run_id))
