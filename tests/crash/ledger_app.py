"""The agents of the wire app, and one that keeps a ledger of all that is done later than asked.

`ramet serve tests.crash.ledger_app:app`. The ledger is a table of the agent itself: what was called
is committed by the call, in the database in which the order stood.
"""

from collections.abc import AsyncIterator

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

import ramet
from ramet.core.json import dumps
from ramet.fibers.records import FiberContext, FiberResult, InterruptedFiber
from tests.wire.chat import ChatAgent
from tests.wire.researchers import Researcher, ThinkResearcher
from tests.wire.script import pause
from tests.wire.think import ThinkAgent

OPEN = """
SELECT (SELECT count(*) FROM cf_agents_queues) + (SELECT count(*) FROM cf_agents_runs)
    + (SELECT count(*) FROM cf_agents_schedules WHERE id NOT LIKE 'cf:%')
    + (SELECT count(*) FROM cf_think_submissions WHERE status IN ('pending', 'running')) AS open
"""
STEPS = 3
STEP_MS = 15


class LedgerAgent(ramet.Think):
    """Takes orders by HTTP: the answer comes when the order is stored."""

    options = ramet.AgentOptions(keep_alive_interval=1)

    def on_start(self) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS ledger (line TEXT NOT NULL)")

    def get_model(self) -> Model:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            for step in range(STEPS):
                await pause(STEP_MS)
                yield f"{step} "

        return FunctionModel(stream_function=stream, model_name="scripted")

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        kind, _, item = request.path.strip("/").partition("/")
        match kind:
            case "schedule":
                await self.schedule(1, self.enter, item)
            case "queue":
                await self.queue(self.enter, item)
            case "fiber":
                await self.start_fiber(item, self.work, fiber_id=item)
            case "submission":
                await self.submit_messages(item, submission_id=item)
            case _:
                return ramet.Response(self._report())
        return ramet.Response("stored")

    def _report(self) -> str:
        """The ledger, and how much is still to be done."""
        lines = [row["line"] for row in self.sql("SELECT line FROM ledger ORDER BY rowid")]
        return dumps({"lines": lines, "open": self.sql(OPEN)[0]["open"]})

    async def enter(self, item: str) -> None:
        """Take some time, then enter a line."""
        await pause(STEP_MS)
        self.sql("INSERT INTO ledger VALUES (?)", item)

    async def work(self, fiber: FiberContext) -> None:
        """Go on for some steps, and enter the end."""
        for step in range(STEPS):
            fiber.stash({"step": step})
            await pause(STEP_MS)
        self.sql("INSERT INTO ledger VALUES (?)", fiber.id)

    async def on_fiber_recovered(self, fiber: InterruptedFiber) -> FiberResult:
        self.sql("INSERT INTO ledger VALUES (?)", f"{fiber.name} recovered")
        return FiberResult(status="completed")


app = ramet.App(
    agents=[ChatAgent, ThinkAgent, LedgerAgent],
    sub_agents=[Researcher, ThinkResearcher],
)
