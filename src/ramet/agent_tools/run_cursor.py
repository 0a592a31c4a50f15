"""A cursor over the frames of one run, from its beginning to where the feed is.

Frames that are no chunks come from their rows, chunks from the child; all have the numbers they had
live. Between two pages it holds no statement and no copy of the run, only how far it has come.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.agent_tools.chunk_pages import ChunkPages
from ramet.agent_tools.frame_store import FrameStore, StoredFrame
from ramet.agent_tools.in_flight import RunsInFlight
from ramet.agent_tools.run_frames import event_of_ending, started_event
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.protocol.run_events import RunEvent, chunk_envelope, encode_event

FRAMES_AT_ONCE = 64

Step: TypeAlias = Literal["full", "waiting", "caught-up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecords:
    """Where a cursor reads."""

    runs: RunStore
    frames: FrameStore
    in_flight: RunsInFlight


class RunCursor:
    """Reads the frames of one run in pages."""

    def __init__(self, records: RunRecords, run: StoredRun, chunks: ChunkPages) -> None:
        self._records = records
        self._run = run
        self._chunks = chunks
        self._envelope = chunk_envelope(run.run_id, run.parent_tool_call_id, replay=True)
        self._frames: deque[StoredFrame] = deque()
        self._number = -1
        self._in_line = 0
        self._next_chunk = 0
        self._exhausted = False

    def advance(self, page: list[str], room: int) -> Step:
        """Add frames to a page until it has `room` characters, or there is nothing to add now."""
        run = self._records.runs.get(self._run.run_id)
        if run is None:
            return "caught-up"
        self._run = run
        self._exhausted = False
        limit = self._limit()
        size = sum(map(len, page))
        while size < room:
            begun = len(page)
            step = self._step(page, limit)
            if step is not None:
                return step
            size += sum(map(len, page[begun:]))
        return "full"

    def _step(self, page: list[str], limit: float) -> Step | None:
        """Add the next frame, or the next chunks before it."""
        frame = self._next_frame()
        bound = limit if frame is None or frame.position is None else min(frame.position, limit)
        if self._next_chunk < bound and not self._exhausted:
            return self._add_chunks(page, bound)
        if frame is None:
            return "caught-up"
        self._frames.popleft()
        self._number = frame.number
        if frame.position is not None:
            self._in_line += 1
        text = self._text(frame)
        if text is not None:
            page.append(text)
        return None

    def _add_chunks(self, page: list[str], bound: float) -> Step | None:
        chunks = self._chunks.take(self._next_chunk, bound)
        if chunks is None:
            return "waiting"
        for chunk in chunks:
            page.append(self._envelope.frame(chunk.sequence + self._in_line, chunk.body))
            self._next_chunk = chunk.sequence + 1
        if not chunks and math.isinf(bound):
            self._exhausted = True
        elif not chunks:
            self._next_chunk = int(bound)
        return None

    def _next_frame(self) -> StoredFrame | None:
        if not self._frames:
            run_id = self._run.run_id
            self._frames.extend(
                self._records.frames.after(run_id, self._number, limit=FRAMES_AT_ONCE)
            )
        return self._frames[0] if self._frames else None

    def _limit(self) -> float:
        """The chunk index up to which the feed has given numbers."""
        live = self._records.in_flight.get(self._run.run_id)
        if live is not None:
            return live.feed.next_chunk
        line = self._records.frames.line(self._run.run_id)
        return math.inf if line.closed else line.position

    def _text(self, frame: StoredFrame) -> str | None:
        """A stored frame as it is sent again; None for one that only kept its number."""
        match frame.kind:
            case "started":
                return self._event(started_event(self._run), frame.number)
            case "milestone":
                return (
                    None if frame.body is None else self._envelope.frame(frame.number, frame.body)
                )
            case "progress":
                ended = self._run.status not in {"starting", "running"}
                if ended or frame.body is None:
                    return None
                return self._envelope.frame(frame.number, frame.body)
            case "terminal":
                return self._ending(frame)

    def _ending(self, frame: StoredFrame) -> str | None:
        last = self._records.frames.last_terminal(frame.run_id)
        event = event_of_ending(self._run)
        if event is None or last is None or last.number != frame.number:
            return None
        return self._event(event, frame.number)

    def _event(self, event: RunEvent, number: int) -> str:
        call_id = self._run.parent_tool_call_id
        return encode_event(event, sequence=number, parent_tool_call_id=call_id, replay=True)
