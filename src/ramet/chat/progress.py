"""What a child reports of its progress: to its own clients, its row and its parent (D23, D24)."""

import logging
import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.agent_tools.records import Milestone, Progress, StoredChunk
from ramet.chat.live_turn import LiveTurn
from ramet.chat.ports import ChatPorts
from ramet.chat.signals import milestone_chunk, progress_chunk
from ramet.core.clock import Timer
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, JsonValue, to_json_strict
from ramet.core.warn_once import warn_once
from ramet.protocol import chunks, frames
from ramet.protocol.chunks import ChunkKind

ReportOutcome: TypeAlias = Literal["emitted", "coalesced", "inactive"]

QUIET_SECONDS = 0.2
SIGNAL_ID_LENGTH = 12
OUTSIDE = "report_progress outside of a run: nobody is told"

_log = logging.getLogger("ramet.chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One call of `report_progress`, checked."""

    fraction: float | None = None
    message: str | None = None
    phase: str | None = None
    milestone: str | None = None
    data: JsonValue = None
    persist: bool = False
    """Whether the data of a progress signal is stored."""


def checked_report(
    *,
    fraction: float | None,
    message: str | None,
    phase: str | None,
    milestone: str | None,
    data: object,
    persist: bool,
) -> Report:
    """Check what a child reports.

    Raises:
        ValueError: The fraction is not a finite number, the milestone has no name, or the data is
            not JSON.
    """
    if milestone is not None and not milestone.strip():
        raise ValueError(f"A milestone must have a name, not {milestone!r}")
    if fraction is not None and not math.isfinite(fraction):
        raise ValueError(f"fraction must be a finite number, not {fraction!r}")
    return Report(
        fraction=fraction,
        message=message,
        phase=phase,
        milestone=milestone,
        data=None if data is None else to_json_strict(data),
        persist=persist,
    )


@dataclass(slots=True)
class _Pace:
    """How one run has signalled lately."""

    last: float
    held: Report | None = None
    timer: Timer | None = None

    def drop_held(self) -> Report | None:
        """Give the signal that waits, which then waits no more."""
        held, self.held = self.held, None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        return held


class ProgressReporter:
    """Sends the signals of the run that a turn works for."""

    def __init__(self, ports: ChatPorts) -> None:
        self._ports = ports
        self._paces: dict[str, _Pace] = {}

    def report(self, live: LiveTurn | None, report: Report) -> ReportOutcome:
        """Send a signal, or hold it back for a moment when one was sent just now.

        Of those held back the last one is sent when the 200 ms are over; a milestone or a fraction
        of 1 overtakes it.
        """
        run_id = None if live is None else live.plan.run_id
        if live is None or run_id is None or live.phase != "streaming" or live.discarded:
            warn_once(_log, self._ports.context.cls, OUTSIDE)
            return "inactive"
        now = self._ports.context.clock.monotonic()
        pace = self._paces.get(run_id)
        final = report.milestone is not None or (report.fraction or 0) >= 1
        if pace is not None and not final and now - pace.last < QUIET_SECONDS:
            self._hold(live, pace, report, due=pace.last + QUIET_SECONDS - now)
            return "coalesced"
        if pace is not None:
            pace.drop_held()
        self._emit(live, run_id, report)
        return "emitted"

    def flush(self, live: LiveTurn) -> None:
        """Send what is held back, before the turn's end is told, and forget the run's pace."""
        run_id = live.plan.run_id
        pace = None if run_id is None else self._paces.pop(run_id, None)
        held = None if pace is None else pace.drop_held()
        if held is not None and run_id is not None and not live.discarded:
            self._emit(live, run_id, held)
            self._paces.pop(run_id, None)

    def _hold(self, live: LiveTurn, pace: _Pace, report: Report, *, due: float) -> None:
        pace.held = report
        if pace.timer is None:
            pace.timer = self._ports.context.clock.call_later(due, lambda: self._due(live))

    def _due(self, live: LiveTurn) -> None:
        run_id = live.plan.run_id
        pace = None if run_id is None else self._paces.get(run_id)
        if self._ports.context.fence.down or pace is None or run_id is None:
            return
        held = pace.drop_held()
        if held is not None:
            self._emit(live, run_id, held)

    def _emit(self, live: LiveTurn, run_id: str, report: Report) -> None:
        clock = self._ports.context.clock
        pace = self._paces.setdefault(run_id, _Pace(last=0.0))
        pace.last = clock.monotonic()
        if report.milestone is None:
            self._emit_progress(live, run_id, report)
        else:
            self._emit_milestone(live, run_id, report, name=report.milestone)

    def _emit_progress(self, live: LiveTurn, run_id: str, report: Report) -> None:
        ids, now = self._ports.context.ids, self._ports.context.clock.now_ms()
        progress = Progress(
            fraction=report.fraction, message=report.message, phase=report.phase, at=now
        )
        told = Progress(
            fraction=report.fraction,
            message=report.message,
            phase=report.phase,
            data=report.data,
            at=now,
        )
        self._ports.runs.keep_progress(run_id, told if report.persist else progress)
        self._send(live, progress_chunk(ids.url_safe(SIGNAL_ID_LENGTH), told), "progress")

    def _emit_milestone(self, live: LiveTurn, run_id: str, report: Report, *, name: str) -> None:
        runs = self._ports.runs
        milestone = Milestone(
            name=name,
            sequence=runs.next_milestone(run_id),
            at=self._ports.context.clock.now_ms(),
            fraction=report.fraction,
            message=report.message,
            phase=report.phase,
            data=report.data,
        )
        runs.add_milestone(run_id, milestone, position=live.next_index - 1)
        failpoint("chat.milestone.committed")
        chunk = milestone_chunk(milestone)
        if live.answer is not None:
            live.answer.add(chunk)
        self._send(live, chunk, "milestone")

    def _send(self, live: LiveTurn, chunk: JsonObject, kind: ChunkKind) -> None:
        body = chunks.chunk_body(chunk)
        frame = frames.chat_response(live.plan.request_id, body=body, done=False)
        self._ports.clients.broadcast_log(frame, live.log_key)
        item = StoredChunk(sequence=live.next_index - 1, body=body, kind=kind)
        if kind == "progress":
            live.progress = item
        for tail in tuple(live.tails):
            tail.push(item)
