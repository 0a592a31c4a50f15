"""The feed of one run: the one place that gives its frames their numbers and sends them live (D2).

The numbers: `started` is 0, each further frame one more. Chunk *i* of the child has *i* plus the
count of frames before it that are no chunks. Those have rows: the numbers outlive a restart.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, Self

from ramet.agent_tools.frame_store import FrameKind, FrameStore, StoredFrame
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import StoredChunk
from ramet.agent_tools.run_frames import event_of_ending, log_key, started_event
from ramet.agent_tools.run_store import StoredRun
from ramet.agent_tools.signals import milestone_key, progress_of
from ramet.connections.link import ClientLink
from ramet.core.failpoints import failpoint
from ramet.protocol.run_events import RunEvent, chunk_envelope, encode_event


class Feed:
    """Numbers, keeps and broadcasts the frames of one run."""

    def __init__(self, ports: AgentToolPorts, frames: FrameStore, run: StoredRun) -> None:
        """Begin the numbering of a new run; see `resume` for one that has frames already."""
        self.run = run
        """The run as it stands; whoever changes the row says so here."""
        self._ports = ports
        self._frames = frames
        self._log = log_key(run.run_id)
        self._envelope = chunk_envelope(run.run_id, run.parent_tool_call_id, replay=False)
        self._others = 0
        self._next_chunk = 0
        self._last_number = -1
        self._closed = False
        self._only = self._may_view if ports.hooks.filters_views else None
        self._last_progress: int | None = None
        self._progress_body: str | None = None
        self._milestones: set[str] = set()
        self.activity = 0
        """How many items came that had not been there before."""
        self.resumed = False
        """Whether chunks may have been sent that it has not seen."""
        self.on_signal: Callable[[StoredChunk], object] | None = None
        """Told of each progress and milestone that was passed on."""

    @classmethod
    def resume(cls, ports: AgentToolPorts, frames: FrameStore, run: StoredRun) -> Self:
        """Take up the numbering where the stored frames leave it.

        Chunks after the last of them may have been sent before: they get the same numbers again.
        """
        feed = cls(ports, frames, run)
        feed.resumed = True
        line = frames.line(run.run_id)
        feed._others = line.frames
        feed._next_chunk = line.position
        feed._last_number = line.number
        feed._closed = line.closed
        progress = frames.last_progress(run.run_id)
        if progress is not None:
            feed._last_progress, feed._progress_body = progress.number, progress.body
        feed._milestones = {milestone_key(body) for body in frames.milestones(run.run_id)}
        return feed

    @property
    def next_chunk(self) -> int:
        """The chunk index up to which everything has its number; replay reads no further."""
        return self._next_chunk

    @property
    def last_sequence(self) -> int:
        """The index of the last chunk that was numbered; -1 before the first."""
        return self._next_chunk - 1

    def start(self) -> None:
        """Tell clients that the run exists; only the first call counts."""
        if self._last_number < 0:
            number = self._add("started")
            self._send(started_event(self.run), number)

    def take(self, item: StoredChunk) -> None:
        """Pass on one item of the child; what was passed on before is dropped (AT-109)."""
        if item.kind != "chunk":
            self._take_signal(item, item.kind)
            return
        sequence = item.sequence
        if sequence < self._next_chunk:
            return
        self._next_chunk = sequence + 1
        self._came()
        clients = self._ports.clients
        if len(clients):
            frame = self._envelope.frame(sequence + self._others, item.body)
            clients.broadcast_log(frame, self._log, only=self._only)

    def end(self, run: StoredRun, *, counted: bool = True) -> None:
        """Keep and send the frame that ends the run, by its sealed row; inside the sealing commit.

        When not all chunks could be counted, it stands outside their line, under a number that
        none of them has.
        """
        self.run = run
        self._closed = self._closed or not counted
        number = self._add("terminal")
        event = event_of_ending(run)
        if event is not None:
            self._send(event, number)

    def _take_signal(self, item: StoredChunk, kind: Literal["progress", "milestone"]) -> None:
        if kind == "milestone":
            key = milestone_key(item.body)
            if key in self._milestones:
                return
            self._milestones.add(key)
        elif item.body == self._progress_body:
            return
        else:
            self._progress_body = item.body
        self._came()
        number = self._add(kind, body=item.body)
        failpoint("run.signal_stored")
        self._broadcast(self._envelope.frame(number, item.body))
        progress = progress_of(item.body, at=self._ports.clock.now_ms())
        if progress is not None:
            self._ports.hooks.agent_tool_progress(self.run.info(), progress)
        if self.on_signal is not None:
            self.on_signal(item)

    def _came(self) -> None:
        self.activity += 1
        self._ports.forwarded()

    def _add(self, kind: FrameKind, *, body: str | None = None) -> int:
        number, position = self._place()
        frame = StoredFrame(
            run_id=self.run.run_id, number=number, kind=kind, position=position, body=body
        )
        overtakes = self._last_progress if kind == "progress" else None
        self._frames.add(frame, overtakes=overtakes)
        self._last_number = number
        self._others += 0 if position is None else 1
        if kind == "progress":
            self._last_progress = number
        return number

    def _place(self) -> tuple[int, int | None]:
        """The next number, and the chunk index that its frame stands before."""
        if self._closed:
            return max(self._ports.clock.now_ms(), self._last_number + 1), None
        return self._next_chunk + self._others, self._next_chunk

    def _send(self, event: RunEvent, number: int) -> None:
        call_id = self.run.parent_tool_call_id
        frame = encode_event(event, sequence=number, parent_tool_call_id=call_id, replay=False)
        self._broadcast(frame)

    def _broadcast(self, frame: str) -> None:
        """Send a frame to whoever may see the run, once what it tells of is committed."""
        send = partial(self._ports.clients.broadcast_log, frame, self._log, only=self._only)
        self._ports.database.after_commit(send)

    def _may_view(self, link: ClientLink) -> bool:
        connection = self._ports.clients.of(link)
        return connection is not None and self._ports.hooks.can_view(connection, self.run.info())
