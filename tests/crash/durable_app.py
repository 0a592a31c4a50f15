"""The application of the durable kill tests: `ramet serve tests.crash.durable_app:app`.

What an agent is called with goes to a file in the data directory at once, so that a test can see
it without opening the agent.
"""

import os
from typing import Any

import ramet
from ramet.fibers.records import FiberContext, FiberResult, InterruptedFiber

CALLS = "RAMET_TEST_CALLS"
"""The variable that names the file."""


class Worker(ramet.Agent[Any]):
    """Does what the last segment of a request's path says."""

    options = ramet.AgentOptions(keep_alive_interval=1, hung_schedule_timeout=1)

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        scene = request.path.strip("/")
        if scene:
            await self.play(scene)
        return ramet.Response("done")

    async def play(self, scene: str) -> None:
        """Begin what a test wants to be cut."""
        match scene:
            case "delayed":
                await self.schedule(1, self.note, "delayed")
            case "interval":
                await self.schedule_every(1, self.note, "interval")
            case "queued":
                await self.queue(self.note, "queued")
            case "fiber":
                await self.run_fiber("plain", self.work)
            case "managed":
                await self.start_fiber("managed", self.work, fiber_id="f1", wait=True)
            case "below":
                helper = await self.sub_agent(Helper, "h")
                await helper.play("fiber")
            case _:
                raise ValueError(f"There is no scene {scene!r}")

    async def note(self, text: str) -> None:
        """Note a call on disk."""
        file = os.open(os.environ[CALLS], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)

    async def work(self, fiber: FiberContext) -> None:
        """Keep how far it is, and come to an end."""
        await self.note("begun")
        fiber.stash({"step": 1})
        await self.note("ended")

    async def on_fiber_recovered(self, fiber: InterruptedFiber) -> FiberResult:
        await self.note(f"recovered {fiber.snapshot}")
        return FiberResult(status="completed")


class Helper(Worker):
    """The same, below another."""


app = ramet.App(agents=[Worker], sub_agents=[Helper])
