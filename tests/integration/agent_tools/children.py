"""The agents of these tests: children that a test moves by hand, and parents that take notes."""

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

import ramet
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.core.json import JsonObject, JsonValue, dumps, loads
from ramet.core.tail import Tail
from ramet.protocol import chunks
from ramet.protocol.run_events import ABSENT, Absent
from ramet.storage import Database, Row
from ramet.testing import Ending, ScriptedChild


def read_items(
    database: Database, run_id: str, after_sequence: int, limit: int
) -> list[StoredChunk]:
    """What a child has stored, read without asking it."""
    rows = database.query(
        "SELECT * FROM items WHERE sequence > ? ORDER BY rowid LIMIT ?", after_sequence, limit
    )
    return [_item(row) for row in rows]


class HandChild(ramet.Agent[object]):
    """A child that does what its test says and stores what it did."""

    read_stored_run: ClassVar[object] = staticmethod(read_items)

    stalls_on: ClassVar[set[str]] = set()
    """Adapter methods that never return."""
    fails_on: ClassVar[dict[str, Exception]] = {}
    """Adapter methods that raise."""
    calls: ClassVar[list[str]] = []
    """The adapter calls of all children, in order."""

    def __init__(self) -> None:
        self.tails: list[Tail[StoredChunk]] = []
        self.cancel_reasons: list[str | None] = []
        self.inputs: list[object] = []
        self.stops_when_cancelled = True

    def on_start(self) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS items (sequence, body, kind)")
        self.sql(
            "CREATE TABLE IF NOT EXISTS outcome (run_id, status, output, summary, error, ended)"
        )

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: ramet.AbortSignal | None = None
    ) -> Inspection:
        await self._pass("start")
        self.inputs.append(input)
        self.sql("INSERT INTO outcome VALUES (?, 'running', NULL, NULL, NULL, NULL)", run_id)
        return Inspection(run_id=run_id, status="running", started_at=1)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.cancel_reasons.append(reason)
        await self._pass("cancel")
        if self.stops_when_cancelled:
            self.end("aborted", error=reason)

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection | None:
        await self._pass("inspect")
        rows = self.sql("SELECT * FROM outcome")
        if not rows:
            return None
        row = rows[0]
        return Inspection(
            run_id=run_id,
            status=row["status"],
            started_at=1,
            completed_at=row["ended"],
            output=ABSENT if row["output"] is None else loads(row["output"]),
            summary=row["summary"],
            error=row["error"],
        )

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[StoredChunk]:
        await self._pass("chunks")
        return self.stored(after_sequence)

    def tail_agent_tool_run(
        self,
        run_id: str,
        *,
        after_sequence: int = -1,
        signal: ramet.AbortSignal | None = None,
    ) -> AsyncIterator[StoredChunk]:
        self.calls.append("tail")
        tail: Tail[StoredChunk] = Tail(on_detach=lambda: self.tails.remove(tail))
        self.tails.append(tail)
        for item in self.stored(after_sequence):
            tail.push(item)
        if self.status() != "running":
            tail.end()
        return tail

    def stored(self, after: int = -1) -> list[StoredChunk]:
        """What is stored after a chunk index; milestones that stand there come too."""
        rows = self.sql("SELECT * FROM items ORDER BY rowid")
        items = [_item(row) for row in rows]
        return [
            item
            for item in items
            if item.sequence > after or (item.kind == "milestone" and item.sequence >= after)
        ]

    def status(self) -> str | None:
        """How the run is."""
        rows = self.sql("SELECT status FROM outcome")
        return rows[0]["status"] if rows else None

    def say(self, *words: str) -> None:
        """Stream words as text chunks."""
        for word in words:
            sequence = self._last() + 1
            self._keep(sequence, chunks.chunk_body(chunks.text_delta("t", word)), "chunk")

    def progress(self, fraction: float) -> None:
        """Report progress, which is not stored."""
        body = chunks.chunk_body(chunks.progress(f"p{fraction}", {"fraction": fraction}))
        self._push(StoredChunk(sequence=self._last(), body=body, kind="progress"))

    def milestone(self, name: str, sequence: int) -> None:
        """Report a milestone, which is stored."""
        body = chunks.chunk_body(chunks.milestone({"name": name, "sequence": sequence, "at": 7}))
        self._keep(self._last(), body, "milestone")

    def end(
        self,
        status: str = "completed",
        *,
        output: JsonValue | Absent = ABSENT,
        summary: str | None = None,
        error: str | None = None,
    ) -> None:
        """End the run and its tails."""
        encoded = None if isinstance(output, Absent) else dumps(output)
        self.sql(
            "UPDATE outcome SET status = ?, output = ?, summary = ?, error = ? "
            "WHERE status = 'running'",
            status,
            encoded,
            summary,
            error,
        )
        self.cut()

    def cut(self) -> None:
        """End the tails without ending the run."""
        for tail in tuple(self.tails):
            tail.end()

    def _last(self) -> int:
        row = self.sql("SELECT coalesce(max(sequence), -1) AS last FROM items")[0]
        last: int = row["last"]
        return last

    def _keep(self, sequence: int, body: str, kind: str) -> None:
        self.sql("INSERT INTO items VALUES (?, ?, ?)", sequence, body, kind)
        row = self.stored()[-1]
        self._push(row)

    def _push(self, item: StoredChunk) -> None:
        for tail in tuple(self.tails):
            tail.push(item)

    async def _pass(self, method: str) -> None:
        self.calls.append(method)
        if method in self.fails_on:
            raise self.fails_on[method]
        if method in self.stalls_on:
            await asyncio.get_running_loop().create_future()


class OtherChild(HandChild):
    """The same under another name."""


class AskedChild(HandChild):
    """The same, but its chunks can only be had by asking it."""

    read_stored_run: ClassVar[object] = None


NoTailChild = ScriptedChild.script(
    "NoTailChild", ["a", "b", "c"], ending=Ending(summary="done"), tail=False
)
"""A child that has done its work when its start returns, and cannot be followed."""

BusyNoTailChild = ScriptedChild.script(
    "BusyNoTailChild", ["a"], ending=Ending(status="running"), tail=False
)
"""A child that cannot be followed and is never done."""


class NoAdapter(ramet.Agent[object]):
    """An agent that cannot be run as a tool."""


class Parent(ramet.Agent[object]):
    """A parent that notes what its hooks are told."""

    start_error: ClassVar[Exception | None] = None
    finish_error: ClassVar[Exception | None] = None
    log: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.started: list[ramet.RunInfo] = []
        self.finished: list[tuple[ramet.RunInfo, ramet.RunResult[object]]] = []
        self.seen_progress: list[ramet.Progress] = []
        self.errors: list[BaseException] = []

    def on_agent_tool_start(self, run: ramet.RunInfo) -> None:
        self.log.append(f"start {run.run_id}")
        self.started.append(run)
        if self.start_error is not None:
            raise self.start_error

    def on_agent_tool_finish(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        self.log.append(f"finish {run.run_id}")
        self.finished.append((run, result))
        if self.finish_error is not None:
            raise self.finish_error

    def on_progress(self, run: ramet.RunInfo, progress: ramet.Progress) -> None:
        self.seen_progress.append(progress)

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(error)


def _item(row: Row) -> StoredChunk:
    return StoredChunk(sequence=row["sequence"], body=row["body"], kind=row["kind"])


def events(frames: list[JsonObject]) -> list[JsonObject]:
    """The run events among a client's frames."""
    return [frame for frame in frames if frame["type"] == "agent-tool-event"]
