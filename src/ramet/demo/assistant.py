"""The assistant: the agent a person talks to, with two other agents as its tools."""

import asyncio

from pydantic import BaseModel, Field
from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject, JsonValue
from ramet.demo.planner import Planner
from ramet.demo.researcher import Researcher
from ramet.demo.stage import Staged

INSTRUCTIONS = """
You answer questions about the Python language and about the project in the demo's folder. Use
research for what the language reference says, one call for each topic and all calls at once;
compare to set two topics side by side; plan for anything about the project's files. Answer in
Markdown from what the tools returned, and keep their sources.
"""


class ResearchInput(BaseModel):
    """What a researcher is asked."""

    query: str = Field(description="One question about the Python language")


class PlanInput(BaseModel):
    """What a planner is asked."""

    goal: str = Field(description="What should be found or changed in the project")


class Assistant(Staged, ramet.Think):
    """The chat agent of the page; every user of the page has one of their own."""

    instructions = INSTRUCTIONS
    options = ramet.AgentOptions(max_concurrent_agent_tools=16)

    def get_model(self) -> Model:
        """The model that the demo was started with."""
        return self.stage.model

    def get_tools(self) -> list[object]:
        """Two agents as tools, and a function that runs two agents under one call."""
        research = ramet.agent_tool(
            Researcher,
            name="research",
            description="Look one topic up in the Python language reference",
            input=ResearchInput,
            display_name="Researcher",
            icon="🔎",
        )
        plan = ramet.agent_tool(
            Planner,
            name="plan",
            description="Inspect the project's files and propose steps",
            input=PlanInput,
            display_name="Planner",
            icon="🗺️",
        )
        return [research, plan, self.compare]

    async def compare(self, a: str, b: str) -> JsonObject:
        """Look two topics up side by side in the Python language reference.

        Args:
            a: The first topic.
            b: The second topic.
        """
        first, second = await asyncio.gather(self._side(a, b, 0), self._side(b, a, 1))
        return {"a": first, "b": second}

    @ramet.rpc
    async def clear_runs(self) -> int:
        """Forget every run and its child, for the page's clear button; returns how many."""
        runs = len(self.list_agent_tool_runs())
        await self.clear_agent_tool_runs()
        return runs

    async def _side(self, topic: str, other: str, order: int) -> JsonValue:
        """Research one side; a side that fails says so and does not stop the other."""
        result = await self.run_agent_tool(
            Researcher,
            input={"query": topic, "compared_with": other},
            display_order=order,
            display={"name": topic, "icon": "⚖️"},
        )
        if result.status == "completed":
            return result.summary or ""
        return {"ok": False, "status": result.status, "error": result.error}
