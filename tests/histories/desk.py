"""A program that uses everything that is stored; while `Held.on` its work does not come to an end.

A fixture outlives the version that made it: keep class names, method names and run ids as they are.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

from pydantic_ai.messages import ModelMessage
from pydantic_ai.tools import ToolDefinition

import ramet
from ramet.core.json import JsonObject
from ramet.protocol.messages import parts_of
from ramet.protocol.ui_message import UIMessage
from ramet.testing import ScriptedModel, ToolCall
from ramet.testing.scripted_model import Answer

STEADY_CALL = "call-steady"
"""The tool call under which the run stands that is under way."""


class Held:
    """Whether work waits where it is meant to be found unfinished."""

    on: ClassVar[bool] = False

    @classmethod
    async def here(cls) -> None:
        """Wait for ever, if so."""
        if cls.on:
            await asyncio.Event().wait()


class _Noting(ramet.Agent[JsonObject]):
    """Notes in a table of its own what it is called with."""

    def note(self, text: str) -> None:
        """Add a line to the ledger."""
        self.sql("CREATE TABLE IF NOT EXISTS ledger (line TEXT)")
        self.sql("INSERT INTO ledger VALUES (?)", text)

    def noted(self) -> list[str]:
        """The ledger, in order."""
        self.sql("CREATE TABLE IF NOT EXISTS ledger (line TEXT)")
        return [str(row["line"]) for row in self.sql("SELECT line FROM ledger ORDER BY rowid")]

    async def called(self, text: str) -> None:
        """What schedules and the queue call."""
        await Held.here()
        self.note(text)

    async def work(self, fiber: ramet.FiberContext) -> None:
        """A fiber that keeps how far it is."""
        fiber.stash({"step": 1})
        await Held.here()

    async def on_fiber_recovered(self, fiber: ramet.InterruptedFiber) -> ramet.FiberResult:
        self.note(f"{fiber.name} recovered at {fiber.snapshot}")
        return ramet.FiberResult(status="completed")


class Leaf(ramet.AIChatAgent):
    """The lowest."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        yield "a leaf"


class Helper(_Noting, ramet.AIChatAgent):
    """Works for the desk; what it was at is not taken up after a crash."""

    chat_recovery: ramet.ChatRecovery | bool = False

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        topic = _text(turn.messages[-1])
        yield f"about {topic}: "
        await self.report_progress(milestone="begun", data={"topic": topic})
        if topic == "trees":
            leaf = await self.run_agent_tool(Leaf, input="which?", run_id="run-leaf")
            yield str(leaf.summary)
        else:
            await Held.here()
            yield "nothing"

    async def begin(self) -> None:
        """Leave a schedule and a fiber below a root."""
        await self.schedule(3600, self.called, "below")
        await self.start_fiber("below", self.work, fiber_id="f-below")


class Steady(Helper):
    """The same, but taken up."""

    chat_recovery: ramet.ChatRecovery | bool = True


class Desk(_Noting, ramet.Think):
    """The root."""

    def get_tools(self) -> list[object]:
        return [ramet.agent_tool(Steady, description="Knows things.", name="steady")]

    async def ask(self, topic: str) -> str:
        """Run a helper outside of any turn."""
        run = await self.run_agent_tool(Helper, input=topic, run_id=f"run-{topic}")
        return run.status

    async def let_go(self, topic: str) -> str:
        """Run a helper in the background."""
        run = await self.run_agent_tool(
            Steady,
            input=topic,
            run_id=f"run-{topic}",
            detached=ramet.Detached(on_finish=self.came_back),
        )
        return run.status

    async def came_back(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """What the end of a run in the background calls."""
        self.note(f"{run.run_id} came back {result.status}")


def _answer(messages: list[ModelMessage], _: list[ToolDefinition]) -> Answer:
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt" and "look up" in str(last.content):
        return ["Looking. ", ToolCall("steady", {"input": "bees"}, id=STEADY_CALL)]
    return ["Well said."]


def _text(message: UIMessage) -> str:
    return "".join(str(part.get("text", "")) for part in parts_of(message))


Desk.model = ScriptedModel.by_rule(_answer)
