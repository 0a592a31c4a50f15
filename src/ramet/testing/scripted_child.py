"""A child that plays a script: its start, inspection, chunks and tail are up to the test."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from ramet.agent.agent import Agent
from ramet.agent_tools.records import (
    ChildStatus,
    Inspection,
    Milestone,
    Progress,
    StoredChunk,
)
from ramet.chat.signals import milestone_chunk, progress_chunk
from ramet.core.json import JsonValue, dumps, loads
from ramet.core.signals import AbortSignal
from ramet.core.tail import Tail
from ramet.protocol import chunks
from ramet.protocol.chunks import ChunkKind
from ramet.protocol.run_events import ABSENT, Absent
from ramet.testing.scripted_model import Delay, Gate

AdapterCall: TypeAlias = Literal["start", "cancel", "inspect", "chunks", "tail"]

_TABLES = (
    """CREATE TABLE IF NOT EXISTS scripted_items (
        number INTEGER PRIMARY KEY, run_id TEXT, sequence INTEGER, body TEXT, kind TEXT)""",
    """CREATE TABLE IF NOT EXISTS scripted_runs (
        run_id TEXT PRIMARY KEY, status TEXT, output TEXT, summary TEXT, error TEXT,
        started_at INTEGER, completed_at INTEGER)""",
)


@dataclass(frozen=True, slots=True)
class Cut:
    """Closes the tails early, while the run goes on."""


Piece: TypeAlias = str | Mapping[str, object] | Progress | Milestone | Gate | Delay | Cut
"""What a child gives: a text or a chunk, a signal, or a place where it waits or loses its tails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What an inspection says once the script was played to its end."""

    status: ChildStatus = "completed"
    output: JsonValue | Absent = ABSENT
    summary: str | None = None
    error: str | None = None


COMPLETED = Ending()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildScript:
    """What the runs of one class of children do."""

    pieces: Sequence[Piece] = ()
    ending: Ending = COMPLETED
    raises: Mapping[AdapterCall, Exception] = field(default_factory=dict)
    gates: Mapping[AdapterCall, Gate] = field(default_factory=dict)
    ignores_cancel: bool = False


class ScriptedChild(Agent[Any]):
    """A child that does what its script says, and stores what it did as a real one does.

    By itself it completes at once and gives nothing. `ScriptedChild.script(…)` makes a class with a
    script of its own, as many as a harness needs.
    """

    _script: ClassVar[ChildScript] = ChildScript()

    calls: ClassVar[list[AdapterCall]] = []
    """The adapter calls of all children of this class, in order, over crashes."""
    inputs: ClassVar[list[object]] = []
    """What the runs were asked, in order."""
    cancel_reasons: ClassVar[list[str | None]] = []
    """Why they were cancelled, in order."""

    @classmethod
    def script(
        cls,
        name: str,
        pieces: Sequence[Piece] = (),
        *,
        ending: Ending = COMPLETED,
        tail: bool = True,
        raises: Mapping[AdapterCall, Exception] | None = None,
        gates: Mapping[AdapterCall, Gate] | None = None,
        ignores_cancel: bool = False,
    ) -> "type[ScriptedChild]":
        """Make a class of children that play this script, each run from its beginning.

        Args:
            name: The name of the class; each in a harness needs one of its own.
            pieces: What a run gives, in order; up to the first gate before its start returns.
            ending: How a run ends once all is played; as "running" it never does.
            tail: Whether its chunks can be followed; else they can only be fetched.
            raises: What an adapter call raises.
            gates: Where an adapter call waits, before it does or raises anything.
            ignores_cancel: Whether a run goes on when it is cancelled.
        """
        script = ChildScript(
            pieces=tuple(pieces),
            ending=ending,
            raises=dict(raises or {}),
            gates=dict(gates or {}),
            ignores_cancel=ignores_cancel,
        )
        body = {"_script": script, "calls": [], "inputs": [], "cancel_reasons": []}
        return type(name, (cls,), body if tail else {**body, "tail_agent_tool_run": None})

    def __init__(self) -> None:
        self._tails: dict[Tail[StoredChunk], str] = {}
        self._progress: dict[str, StoredChunk] = {}

    def on_start(self) -> None:
        """Make the tables of what was played."""
        for table in _TABLES:
            self.sql(table)

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: AbortSignal | None = None
    ) -> Inspection:
        """Begin to play; a run that is known is only looked at."""
        await self._called("start")
        known = self._inspection(run_id)
        if known is not None:
            return known
        self.inputs.append(input)
        begun = Inspection(run_id=run_id, status="running", started_at=self._now())
        self.sql(
            "INSERT INTO scripted_runs (run_id, status, started_at) VALUES (?, 'running', ?)",
            run_id,
            begun.started_at,
        )
        pieces = iter(self._script.pieces)
        stop = self._play(run_id, pieces)
        if stop is not None:
            work = self._play_on(run_id, stop, pieces)
            self._ramet.context.background.start(work, name=f"script of {run_id}")
        return begun

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        """End a run that is under way as aborted, with the reason as its error."""
        self.cancel_reasons.append(reason)
        await self._called("cancel")
        if not self._script.ignores_cancel:
            self._end(run_id, Ending(status="aborted", error=reason))

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection | None:
        """Where a run is."""
        await self._called("inspect")
        return self._inspection(run_id)

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[StoredChunk]:
        """What is stored after a chunk."""
        await self._called("chunks")
        return self._stored(run_id, after_sequence)

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1, signal: AbortSignal | None = None
    ) -> AsyncIterator[StoredChunk]:
        """What is stored after a chunk, then what comes, until the run ends or is cut."""
        await self._called("tail")
        tail: Tail[StoredChunk] = Tail(on_detach=lambda: self._tails.pop(tail, None))
        self._tails[tail] = run_id
        for item in self._stored(run_id, after_sequence):
            tail.push(item)
        if not self._under_way(run_id):
            tail.end()
        elif run_id in self._progress:
            tail.push(self._progress[run_id])
        try:
            async for item in tail:
                yield item
        finally:
            await tail.aclose()

    async def _called(self, method: AdapterCall) -> None:
        self.calls.append(method)
        gate = self._script.gates.get(method)
        if gate is not None:
            await gate.wait()
        error = self._script.raises.get(method)
        if error is not None:
            raise error

    def _play(self, run_id: str, pieces: Iterator[Piece]) -> Gate | Delay | None:
        """Play up to the next place to wait, which is given, or to the end."""
        for piece in pieces:
            if isinstance(piece, Gate | Delay):
                return piece
            self._give(run_id, piece)
        self._end(run_id, self._script.ending)
        return None

    async def _play_on(self, run_id: str, stop: Gate | Delay, pieces: Iterator[Piece]) -> None:
        waiting: Gate | Delay | None = stop
        while waiting is not None:
            if isinstance(waiting, Gate):
                await waiting.wait()
            else:
                await self._ramet.context.clock.sleep(waiting.seconds)
            waiting = self._play(run_id, pieces) if self._under_way(run_id) else None

    def _give(
        self, run_id: str, piece: str | Mapping[str, object] | Progress | Milestone | Cut
    ) -> None:
        match piece:
            case Cut():
                self._end_tails(run_id)
            case Progress():
                signal_id = self._ramet.context.ids.url_safe(12)
                body = chunks.chunk_body(progress_chunk(signal_id, piece))
                self._progress[run_id] = self._item(run_id, body, "progress")
                self._push(run_id, self._progress[run_id])
            case Milestone():
                self._keep(run_id, chunks.chunk_body(milestone_chunk(piece)), "milestone")
            case str():
                self._keep(run_id, chunks.chunk_body(chunks.text_delta("text", piece)), "chunk")
            case _:
                self._keep(run_id, chunks.chunk_body(piece), "chunk")

    def _keep(self, run_id: str, body: str, kind: ChunkKind) -> None:
        item = self._item(run_id, body, kind)
        self.sql(
            "INSERT INTO scripted_items (run_id, sequence, body, kind) VALUES (?, ?, ?, ?)",
            run_id,
            item.sequence,
            item.body,
            item.kind,
        )
        self._push(run_id, item)

    def _item(self, run_id: str, body: str, kind: ChunkKind) -> StoredChunk:
        """The next item; what is no chunk has the number of the chunk before it."""
        row = self.sql(
            "SELECT count(*) AS made FROM scripted_items WHERE run_id = ? AND kind = 'chunk'",
            run_id,
        )[0]
        sequence = row["made"] if kind == "chunk" else row["made"] - 1
        return StoredChunk(sequence=sequence, body=body, kind=kind)

    def _push(self, run_id: str, item: StoredChunk) -> None:
        for tail, followed in self._tails.items():
            if followed == run_id:
                tail.push(item)

    def _end(self, run_id: str, ending: Ending) -> None:
        if ending.status == "running":
            return
        self.sql(
            "UPDATE scripted_runs SET status = ?, output = ?, summary = ?, error = ?, "
            "completed_at = ? WHERE run_id = ? AND status = 'running'",
            ending.status,
            None if isinstance(ending.output, Absent) else dumps(ending.output),
            ending.summary,
            ending.error,
            self._now(),
            run_id,
        )
        self._end_tails(run_id)

    def _end_tails(self, run_id: str) -> None:
        for tail in [tail for tail, followed in self._tails.items() if followed == run_id]:
            tail.end()

    def _stored(self, run_id: str, after: int) -> list[StoredChunk]:
        """What stands after a chunk; milestones right behind it come too."""
        rows = self.sql(
            "SELECT * FROM scripted_items WHERE run_id = ? AND "
            "(sequence > ? OR (kind = 'milestone' AND sequence >= ?)) ORDER BY number",
            run_id,
            after,
            after,
        )
        return [
            StoredChunk(sequence=row["sequence"], body=row["body"], kind=row["kind"])
            for row in rows
        ]

    def _inspection(self, run_id: str) -> Inspection | None:
        rows = self.sql("SELECT * FROM scripted_runs WHERE run_id = ?", run_id)
        if not rows:
            return None
        row = rows[0]
        return Inspection(
            run_id=run_id,
            status=row["status"],
            started_at=row["started_at"],
            completed_at=row["completed_at"],
            output=ABSENT if row["output"] is None else loads(row["output"]),
            summary=row["summary"],
            error=row["error"],
        )

    def _under_way(self, run_id: str) -> bool:
        known = self._inspection(run_id)
        return known is not None and known.status == "running"

    def _now(self) -> int:
        return self._ramet.context.clock.now_ms()
