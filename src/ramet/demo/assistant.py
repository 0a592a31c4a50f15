"""The assistant: the agent a person talks to, with two other agents as its tools."""

import asyncio

from pydantic import BaseModel, Field
from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject, JsonValue
from ramet.demo.background import finish_text, milestone_text, shown_as, title_of
from ramet.demo.build_runner import BuildRunner
from ramet.demo.planner import Planner
from ramet.demo.researcher import Researcher
from ramet.demo.stage import Staged

INSTRUCTIONS = """
You answer questions about the Python language and about the project in the demo's folder. Use
research for what the language reference says, one call for each topic and all calls at once;
compare to set two topics side by side; plan for anything about the project's files. What the user
wants in the background goes to research_in_background; build runs the project's tests and checks.
Do not wait for those two: say that they are at work. A message that begins with "In the background"
tells you how one of them ended: pass on what it found. Answer in Markdown from what the tools
returned, and keep their sources.
"""

BUDGET_SECONDS = 1800
"""How long a run in the background may take."""
SILENCE_SECONDS = 600
"""How long it may say nothing once it has said something."""


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
        """Agents as tools, two of them under one call, and two that nobody waits for."""
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
        return [research, plan, self.compare, self.research_in_background, self.build]

    @ramet.idempotent  # after a crash it is run again, and finds its two runs under their ids
    async def compare(self, a: str, b: str) -> JsonObject:
        """Look two topics up side by side in the Python language reference.

        Args:
            a: The first topic.
            b: The second topic.
        """
        first, second = await asyncio.gather(self._side(a, b, 0), self._side(b, a, 1))
        return {"a": first, "b": second}

    @ramet.idempotent
    async def research_in_background(self, query: str) -> JsonObject:
        """Have one topic researched thoroughly while the conversation goes on.

        Args:
            query: One question about the Python language.
        """
        return await self._let_go(
            Researcher,
            input={"query": query, "thorough": True},
            display=shown_as(f"Research on “{query}”", "🔎"),
            milestones=["sources-found"],
        )

    async def build(self, task: str) -> JsonObject:
        """Run one of the project's fixed tasks while the conversation goes on.

        Args:
            task: `tests` for its tests, `syntax` to check that every file is Python.
        """
        chosen = self.stage.tasks.get(task)
        if chosen is None:
            known = ", ".join(self.stage.tasks) or "nothing"
            return _refused(f"{task!r} cannot be run in this folder, only: {known}.")
        title = chosen.title
        if any(title_of(run) == title for run in self._under_way(BuildRunner)):
            return _refused(f"{title} is at work already.")
        return await self._let_go(
            BuildRunner,
            input={"task": task},
            display=shown_as(title, "🛠️"),
            milestones=["first-failure", "started-again"],
        )

    def format_detached_completion(
        self, run: ramet.RunInfo, result: ramet.RunResult[object]
    ) -> str:
        """What the conversation is told of the end of a run in the background."""
        return finish_text(run, result)

    def format_detached_milestone(self, run: ramet.RunInfo, milestone: ramet.Milestone) -> str:
        """What the conversation is told of a milestone of one."""
        return milestone_text(run, milestone)

    @ramet.rpc
    async def cancel_run(self, run_id: str) -> None:
        """End a run early, for the page's tray."""
        await self.cancel_agent_tool(run_id, "cancelled on the page")

    @ramet.rpc
    async def clear_runs(self) -> int:
        """Forget every run and its child, for the page's clear button; returns how many."""
        runs = len(self.list_agent_tool_runs())
        await self.clear_agent_tool_runs()
        return runs

    async def _let_go(
        self, cls: type, *, input: JsonObject, display: JsonObject, milestones: list[str]
    ) -> JsonObject:
        """Start a run that reports back by itself, whatever happens to this process."""
        run = await self.run_agent_tool(
            cls,
            input=input,
            display=display,
            detached=ramet.Detached(
                notify=True,
                on_milestones=milestones,
                max_budget=BUDGET_SECONDS,
                no_progress_budget=SILENCE_SECONDS,
            ),
        )
        if run.error is not None:
            return _refused(run.error)
        return {"started": display["name"], "status": "at work in the background"}

    def _under_way(self, cls: type) -> list[ramet.RunInfo]:
        return self.list_agent_tool_runs(cls, status=["starting", "running"])

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


def _refused(error: str) -> JsonObject:
    return {"ok": False, "status": "error", "error": error}
