"""The agents of these tests, `tests.integration.control.desk:app`: a desk and its clerks."""

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

import ramet
from ramet.core.json import JsonObject
from ramet.testing import Gate, ScriptedChild


class Clerk(ramet.AIChatAgent[JsonObject]):
    """Reports a little, then waits until a test lets it go on, if it is asked to."""

    gates: ClassVar[dict[str, Gate]] = {}

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        await self.report_progress(fraction=0.25, message="Reading", phase="look-up")
        await self.report_progress(milestone="found", message="Two books")
        yield f"The answer of {self.name}"
        if self.name.startswith("slow"):
            await self.gates.setdefault(self.name, Gate()).wait()


Stranger = ScriptedChild.script("Stranger", ["one", "two"])
"""A child that keeps its runs in tables of its own."""


class Desk(ramet.Agent[JsonObject]):
    """Hands out work, and has a little of everything."""

    initial_state: JsonObject = {}
    finished: ClassVar[dict[str, asyncio.Event]] = {}

    @ramet.rpc
    async def give(self, run_id: str) -> str:
        """Let go of a clerk."""
        self.finished[run_id] = asyncio.Event()
        handle = await self.run_agent_tool(
            Clerk,
            input={"question": run_id},
            run_id=run_id,
            detached=ramet.Detached(on_finish=self.done),
        )
        return handle.status

    @ramet.rpc
    async def ask(self, run_id: str) -> str:
        """Wait for a clerk."""
        return (await self.run_agent_tool(Clerk, input=run_id, run_id=run_id)).status

    async def ask_by_name(self, run_id: str, name: str) -> str:
        run = await self.run_agent_tool(
            Clerk, input=run_id, run_id=run_id, display={"name": name, "icon": "🔎"}
        )
        return run.status

    async def ask_stranger(self, run_id: str) -> str:
        return (await self.run_agent_tool(Stranger, input=run_id, run_id=run_id)).status

    async def done(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        if run.run_id in self.finished:
            self.finished[run.run_id].set()

    async def plan(self) -> None:
        """Wait for something in every way there is."""
        await self.schedule(3600, self.remind, "later")
        await self.queue(self.hang, None)
        await self.start_fiber("sort", self.sort)
        await self.sub_agent(Folder, "a/b")

    async def plan_below(self) -> None:
        """Have a sub-agent wait for something."""
        await (await self.sub_agent(Folder, "f")).sort_later()

    async def remind(self, what: str) -> None:
        """Nothing."""

    async def hang(self, payload: None) -> None:
        await asyncio.Event().wait()

    async def sort(self, fiber: ramet.FiberContext) -> None:
        await asyncio.Event().wait()


class Folder(ramet.Agent[JsonObject]):
    """A sub-agent."""

    async def sort_later(self) -> None:
        await self.schedule(7200, self.sort, None)

    async def sort(self, payload: None) -> None:
        """Nothing."""


class HTTPDesk(Desk):
    """A desk whose class has another URL form than one would think."""


app = ramet.App(
    agents=[Desk, HTTPDesk],
    sub_agents=[Clerk, Stranger, Folder],
    options=ramet.HostOptions(grace_period=0),
)
