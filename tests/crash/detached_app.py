"""The application of the kill tests of detached runs: `ramet serve tests.crash.detached_app:app`.

What a parent is told goes to a file at once, so that a test can see it without opening the agent.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

import ramet

TOLD = "RAMET_TEST_TOLD"
"""The variable that names the file."""


class Worker(ramet.AIChatAgent):
    """Works for as many milliseconds as it is told."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        seconds = float(turn.body["agentToolInput"])
        await self.report_progress(milestone="begun")
        yield "working"
        await self._ramet.context.clock.sleep(seconds)
        yield " done"


class Boss(ramet.Agent[Any]):
    """Lets go of a worker as the last segment of a request's path says."""

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        scene = request.path.strip("/")
        if scene:
            await self.play(scene)
        return ramet.Response("done")

    async def play(self, scene: str) -> None:
        """Begin what a test wants to be cut."""
        match scene:
            case "finish":
                await self._let_go(0.05, ramet.Detached(on_finish=self.note))
            case "give-up":
                await self._let_go(3600, ramet.Detached(on_finish=self.note, max_budget=1))
            case "again":
                await self._let_go(0.05, ramet.Detached(on_finish=self.note), run_id="again")
            case _:
                raise ValueError(f"There is no scene {scene!r}")

    async def _let_go(self, seconds: float, detached: ramet.Detached, *, run_id: str = "r") -> None:
        await self.run_agent_tool(Worker, run_id=run_id, input=seconds, detached=detached)

    async def note(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """Note on disk how a run ended."""
        file = os.open(os.environ[TOLD], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(file, f"{run.run_id} {result.status}\n".encode())
        finally:
            os.close(file)


class Chatter(ramet.AIChatAgent):
    """A chat that is told of its runs, and answers."""

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        run_id = request.path.strip("/")
        if run_id:
            wishes = ramet.Detached(notify=True, on_milestones=["begun"])
            await self.run_agent_tool(Worker, run_id=run_id, input=0.05, detached=wishes)
        return ramet.Response("done")

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        yield f"Heard of {turn.message_ids[-1]}"


app = ramet.App(agents=[Boss, Chatter], sub_agents=[Worker])
