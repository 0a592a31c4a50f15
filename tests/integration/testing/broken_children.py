"""Children that keep all rules of the adapter but one, by the check that has to find it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

import ramet
from ramet.core.json import dumps
from tests.integration.testing.plain_child import Plain


class WithoutSequence(Plain):
    async def get_agent_tool_chunks(self, run_id: str) -> list[ramet.StoredChunk]:  # type: ignore[override]
        return self.stored(run_id, -1)


class Nosy(Plain):
    """Gives the run that it has, whatever it is asked for."""

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        return await super().inspect_agent_tool_run(self.name)


class Misnaming(Plain):
    async def begun(self, run_id: str) -> ramet.Inspection:
        return replace(await super().begun(run_id), run_id="another")


class Eager(Plain):
    """Begins whenever it is told to start."""

    async def start_agent_tool_run(
        self, input: Any, *, run_id: str, signal: ramet.AbortSignal | None = None
    ) -> ramet.Inspection:
        if await self.inspect_agent_tool_run(run_id) is None:
            self.insert(run_id)
        self._ramet.context.background.start(self.work(run_id, str(input)), name="work")
        return await self.begun(run_id)

    def over(self, run_id: str) -> bool:
        return False


class Timeless(Plain):
    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        found = await super().inspect_agent_tool_run(run_id)
        return None if found is None else replace(found, completed_at=None)


class FromOne(Plain):
    def stored(self, run_id: str, after: int) -> list[ramet.StoredChunk]:
        found = super().stored(run_id, after - 1)
        return [replace(chunk, sequence=chunk.sequence + 1) for chunk in found]


class Inclusive(Plain):
    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[ramet.StoredChunk]:
        return self.stored(run_id, after_sequence - 1)


class Raising(Plain):
    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        found = await super().inspect_agent_tool_run(run_id)
        if found is not None and found.status == "error":
            raise RuntimeError(found.error)
        return found


class Forgetting(Plain):
    """Leaves the first chunk out of its tails."""

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        tail = super().tail_agent_tool_run(run_id, after_sequence=max(0, after_sequence))
        async for chunk in tail:
            yield chunk


class Shared(Plain):
    """Counts the chunks of all runs together."""

    count: ClassVar[int] = 0

    def say(self, run_id: str, word: str) -> None:
        body = dumps({"type": "text-delta", "id": "t", "delta": word})
        self.sql("INSERT INTO chunks VALUES (?, ?, ?)", run_id, Shared.count, body)
        Shared.count += 1


class InMemory(Plain):
    """Keeps its chunks in memory."""

    def on_start(self) -> None:
        super().on_start()
        self.sql("DELETE FROM chunks")


class Starting(Plain):
    """Begins with what a crash has cut as if it had never been."""

    def on_start(self) -> None:
        super().on_start()
        self.sql("DELETE FROM runs WHERE error = 'interrupted'")


class Endless(Plain):
    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        async for chunk in super().tail_agent_tool_run(run_id, after_sequence=after_sequence):
            yield chunk
        await self.changed.wait()


class Stored(Plain):
    """Gives in its tails what is stored, and no more."""

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        for chunk in self.stored(run_id, after_sequence):
            yield chunk


class FromTheStart(Plain):
    """Gives everything once a run has ended."""

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        after = -1 if self.over(run_id) else after_sequence
        async for chunk in super().tail_agent_tool_run(run_id, after_sequence=after):
            yield chunk


class Lonely(Plain):
    """Gives up when a reader leaves."""

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1
    ) -> AsyncIterator[ramet.StoredChunk | bytes]:
        try:
            async for chunk in super().tail_agent_tool_run(run_id, after_sequence=after_sequence):
                yield chunk
        finally:
            self.end(run_id, "aborted", "nobody looks")


class Deaf(Plain):
    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        return


class Silent(Plain):
    """Does not tell its tails of a cancel."""

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.sql("UPDATE runs SET status = 'aborted', completed_at = ?", self.now())


class Undead(Plain):
    """Completes although it was cancelled."""

    def end(self, run_id: str, status: str, error: str | None = None) -> None:
        self.sql(
            "UPDATE runs SET status = ?, completed_at = ? WHERE run_id = ?",
            status,
            self.now(),
            run_id,
        )
        self.tell()


class Again(Plain):
    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.end(run_id, "aborted", reason)
        self.sql("UPDATE runs SET error = ? WHERE status = 'aborted'", reason)


class Resentful(Plain):
    """Remembers a cancel of a run that there is not."""

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        await super().cancel_agent_tool_run(run_id, reason)
        self.sql("CREATE TABLE IF NOT EXISTS refused (run_id TEXT)")
        self.sql("INSERT INTO refused VALUES (?)", run_id)

    def insert(self, run_id: str) -> None:
        super().insert(run_id)
        if self.sql("SELECT 1 FROM sqlite_master WHERE name = 'refused'"):
            self.end(run_id, "aborted", "refused")


class Undone(Plain):
    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.sql("UPDATE runs SET status = 'aborted', error = ?", reason)
        self.end(run_id, "aborted", reason)


class Failing(Plain):
    """Calls a cancel an error."""

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self.end(run_id, "error", reason)


BROKEN: dict[str, type[Plain]] = {
    "has_the_methods": WithoutSequence,
    "knows_no_unknown_run": Nosy,
    "starts_with_an_inspection": Misnaming,
    "starts_once": Eager,
    "tells_all_fields": Timeless,
    "numbers_chunks_from_0": FromOne,
    "reads_after_a_sequence": Inclusive,
    "reports_a_failure": Raising,
    "serves_its_parent": Forgetting,
    "keeps_runs_apart": Shared,
    "survives_a_crash": InMemory,
    "survives_a_crash_under_way": Starting,
    "tails_to_the_end": Endless,
    "tails_stored_then_live": Stored,
    "tails_after_the_end": FromTheStart,
    "goes_on_unobserved": Lonely,
    "can_be_cancelled": Deaf,
    "ends_tails_when_cancelled": Silent,
    "can_be_cancelled_at_once": Undead,
    "can_be_cancelled_twice": Again,
    "can_be_cancelled_before_the_start": Resentful,
    "stays_ended": Undone,
    "ends_when_its_parent_aborts": Failing,
}
