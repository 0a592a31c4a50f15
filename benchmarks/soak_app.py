"""The application of the soak: `ramet serve benchmarks.soak_app:app`; see `soak.py`."""

import asyncio
import time
from collections.abc import AsyncIterator

import ramet
from ramet.core.json import dumps

LATE: list[float] = []
"""Milliseconds by which scheduled calls came late, since they were last asked for."""
CALLS = {"ticks": 0, "queued": 0, "runs": 0, "opened": 0}
TICK_SECONDS = 5
WORDS = 25
RUNS_KEPT = 4


class Helper(ramet.AIChatAgent):
    """A child that says a little."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        for number in range(WORDS // 2):
            await asyncio.sleep(0.01)
            yield f"finding {number} "
            await self.report_progress(fraction=number * 2 / WORDS)


class Chat(ramet.AIChatAgent):
    """A chat with schedules, queue items and runs, which keeps only so much of each."""

    max_persisted_messages = 20

    def on_start(self) -> None:
        CALLS["opened"] += 1

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        for number in range(WORDS):
            await asyncio.sleep(0.02)
            yield f"word {number} "
        await self.queue(self.counted, "queued")
        if len(self.messages) % 3 == 0:
            run = await self.run_agent_tool(Helper, input="anything")
            yield str(run.summary)
            CALLS["runs"] += 1
            await self._forget_old_runs()
        if not await self.list_schedules():
            await self.schedule_every(TICK_SECONDS, self.tick)
        due = int(time.time()) + 2
        await self.schedule(2, self.rung, due)

    async def counted(self, what: str) -> None:
        CALLS[what] += 1

    async def tick(self) -> None:
        CALLS["ticks"] += 1

    async def rung(self, due: int) -> None:
        LATE.append(max(0.0, (time.time() - due) * 1000))

    async def _forget_old_runs(self) -> None:
        runs = self.sql("SELECT run_id FROM cf_agent_tool_runs WHERE completed_at IS NOT NULL")
        if len(runs) > RUNS_KEPT:
            await self.clear_agent_tool_runs()


class Gauge(ramet.Agent[None]):
    """Says how late things were."""

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        late, LATE[:] = sorted(LATE), []
        last = late[int(len(late) * 0.99)] if late else 0.0
        return ramet.Response(dumps({"late_p99_ms": last, "rung": len(late), **CALLS}))


app = ramet.App(
    agents=[Chat, Gauge], sub_agents=[Helper], options=ramet.HostOptions(idle_timeout=4)
)
