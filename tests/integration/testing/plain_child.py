"""A child that implements the agent-tool adapter by hand, and ways to get each rule wrong."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import ramet
from ramet.core.json import dumps
from ramet.testing import ChildScenario, Gate

TABLES = (
    """CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, status TEXT, started_at INTEGER,
    completed_at INTEGER, error TEXT)""",
    "CREATE TABLE IF NOT EXISTS chunks (run_id TEXT, sequence INTEGER, body TEXT)",
)


class Plain(ramet.Agent[None]):
    """Says three words; waits at a gate after the first when it is asked to be slow."""

    gate: ClassVar[Gate]

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    def on_start(self) -> None:
        for table in TABLES:
            self.sql(table)
        self.sql(
            "UPDATE runs SET status = 'error', error = 'interrupted', completed_at = ? "
            "WHERE completed_at IS NULL",
            self.now(),
        )

    def now(self) -> int:
        return self._ramet.context.clock.now_ms()

    async def start_agent_tool_run(
        self, input: Any, *, run_id: str, signal: ramet.AbortSignal | None = None
    ) -> ramet.Inspection:
        known = await self.inspect_agent_tool_run(run_id)
        if known is not None:
            return known
        self.insert(run_id)
        work = self.work(run_id, str(input))
        self._ramet.context.background.start(work, name="work")
        return await self.begun(run_id)

    async def begun(self, run_id: str) -> ramet.Inspection:
        found = await self.inspect_agent_tool_run(run_id)
        assert found is not None
        return found

    def insert(self, run_id: str) -> None:
        self.sql(
            "INSERT INTO runs (run_id, status, started_at) VALUES (?, 'running', ?)",
            run_id,
            self.now(),
        )

    async def work(self, run_id: str, asked: str) -> None:
        self.say(run_id, "one")
        if asked == "slow":
            await self.gate.wait()
        if asked == "fail":
            self.end(run_id, "error", "it failed")
            return
        for word in ("two", "three"):
            self.say(run_id, word)
        self.end(run_id, "completed")

    def say(self, run_id: str, word: str) -> None:
        if not self.over(run_id):
            number = len(self.sql("SELECT sequence FROM chunks WHERE run_id = ?", run_id))
            body = dumps({"type": "text-delta", "id": "t", "delta": word})
            self.sql("INSERT INTO chunks VALUES (?, ?, ?)", run_id, number, body)
            self.tell()

    def end(self, run_id: str, status: str, error: str | None = None) -> None:
        self.sql(
            "UPDATE runs SET status = ?, error = ?, completed_at = ? "
            "WHERE run_id = ? AND completed_at IS NULL",
            status,
            error,
            self.now(),
            run_id,
        )
        self.tell()

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def over(self, run_id: str) -> bool:
        return not self.sql("SELECT 1 FROM runs WHERE run_id = ? AND completed_at IS NULL", run_id)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.end(run_id, "aborted", reason)

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        rows = self.sql("SELECT * FROM runs WHERE run_id = ?", run_id)
        if not rows:
            return None
        done = rows[0]["status"] == "completed"
        return ramet.Inspection(
            run_id=run_id,
            status=rows[0]["status"],
            started_at=rows[0]["started_at"],
            completed_at=rows[0]["completed_at"],
            error=rows[0]["error"],
            output={"words": 3} if done else None,
            summary="three words" if done else None,
        )

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[ramet.StoredChunk]:
        return self.stored(run_id, after_sequence)

    def stored(self, run_id: str, after: int) -> list[ramet.StoredChunk]:
        rows = self.sql(
            "SELECT * FROM chunks WHERE run_id = ? AND sequence > ? ORDER BY sequence",
            run_id,
            after,
        )
        return [ramet.StoredChunk(sequence=row["sequence"], body=row["body"]) for row in rows]

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        while True:
            changed = self.changed
            for chunk in self.stored(run_id, after_sequence):
                after_sequence = chunk.sequence
                yield chunk
            if self.over(run_id):
                return
            await changed.wait()


def scenario(cls: type[Plain], **more: Any) -> ChildScenario:
    """Steers the runs of a `Plain`."""

    def prepare() -> None:
        cls.gate = Gate()

    options: dict[str, Any] = {
        "slow_input": "slow",
        "failing_input": "fail",
        "release": lambda: cls.gate.open(),
        "prepare": prepare,
        "timeout": 0.3,
        **more,
    }
    return ChildScenario(**options)
