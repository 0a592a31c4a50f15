"""What `forward.py` serves: agents that forward chunks, and the same without ramet beside them."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelRequest,
    PartDeltaEvent,
    TextPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

import ramet
from ramet.core.json import JsonObject

DELTAS = 200
BODIES = [
    json.dumps({"type": "text-delta", "id": "t1", "delta": f" word{number:05d}"})
    for number in range(1000)
]
TABLE = "CREATE TABLE chunks (id INTEGER PRIMARY KEY, run TEXT, body TEXT, position INTEGER)"
INSERT = "INSERT INTO chunks (run, body, position) VALUES (?, ?, ?)"


async def source(count: int, burst: int) -> AsyncIterator[str]:
    """Bodies of chunks; the event loop gets a turn after each burst, as between network reads."""
    for number in range(count):
        if number % burst == 0:
            await asyncio.sleep(0)
        yield BODIES[number % len(BODIES)]


class RawChild(ramet.Agent[JsonObject]):
    """A child that has nothing but the adapter, and stores each chunk by one commit."""

    def on_start(self) -> None:
        self.sql(TABLE)
        self._count, self._burst, self._done = 0, 1, False

    async def start_agent_tool_run(
        self, input: JsonObject, *, run_id: str, signal: object = None
    ) -> ramet.Inspection:
        self._count, self._burst = int(str(input["count"])), int(str(input["burst"]))
        return self._inspection(run_id)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        self._done = True

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection:
        return self._inspection(run_id)

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[ramet.StoredChunk]:
        rows = self.sql("SELECT * FROM chunks WHERE position > ? ORDER BY id", after_sequence)
        return [ramet.StoredChunk(sequence=row["position"], body=row["body"]) for row in rows]

    async def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1, signal: object = None
    ) -> AsyncIterator[ramet.StoredChunk]:
        number = 0
        async for body in source(self._count, self._burst):
            self.sql(INSERT, run_id, body, number)
            yield ramet.StoredChunk(sequence=number, body=body)
            number += 1
        self._done = True

    def _inspection(self, run_id: str) -> ramet.Inspection:
        status = "completed" if self._done else "running"
        return ramet.Inspection(run_id=run_id, status=status, started_at=0, summary="")


class ChatChild(ramet.AIChatAgent):
    """The same chunks from a chat agent, which also folds them into a message."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
        asked = turn.body["agentToolInput"]
        assert isinstance(asked, dict)
        yield {"type": "text-start", "id": "t1"}
        async for body in source(int(str(asked["count"])), int(str(asked["burst"]))):
            yield json.loads(body)


class Parent(ramet.Agent[JsonObject]):
    """Forwards a child's chunks to whoever is connected."""

    @ramet.rpc
    async def forward(self, child: str, count: int, burst: int) -> str:
        cls = {"raw": RawChild, "chat": ChatChild}[child]
        result = await self.run_agent_tool(cls, input={"count": count, "burst": burst})
        return result.status


async def floor(socket: WebSocket) -> None:
    """The same frames and the same rows, without ramet."""
    await socket.accept()
    folder = Path(socket.app.state.data) / "floor"
    folder.mkdir(exist_ok=True)
    async for order in socket.iter_text():
        run, count, burst = order.split()
        file = folder / f"{run}.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("PRAGMA page_size = 1024")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(TABLE)
            number = 0
            async for body in source(int(count), int(burst)):
                database.execute(INSERT, (run, body, number))
                await socket.send_text(
                    f'{{"type":"agent-tool-event","sequence":{number + 1},"event":{{"kind":"chunk",'
                    f'"runId":"{run}","body":{json.dumps(body)}}}}}'
                )
                number += 1
        await socket.send_text('{"type":"rpc","success":true}')


async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """The child's model: 200 deltas."""
    for number in range(DELTAS):
        yield f" word{number:05d}"


async def delegate(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """The parent's model: asks the child, then says that it has."""
    last = messages[-1]
    returned = isinstance(last, ModelRequest) and isinstance(last.parts[-1], ToolReturnPart)
    if returned:
        yield "Here you are."
    else:
        yield {0: DeltaToolCall(name="child", json_args='{"input":"go"}', tool_call_id="call_1")}


class ThinkChild(ramet.Think):
    """Streams what its model says."""

    def get_model(self) -> Model:
        return FunctionModel(stream_function=speak, model_name="scripted")


class ThinkParent(ramet.Think):
    """Asks its child."""

    def get_model(self) -> Model:
        return FunctionModel(stream_function=delegate, model_name="scripted")

    def get_tools(self) -> list[object]:
        return [ramet.agent_tool(ThinkChild, name="child", description="Speaks.")]


bare_child = Agent(FunctionModel(stream_function=speak, model_name="scripted"))
bare_parent = Agent(
    FunctionModel(stream_function=delegate, model_name="scripted"), deps_type=WebSocket
)


async def _stream(context: RunContext[WebSocket], events: AsyncIterator[AgentStreamEvent]) -> None:
    async for event in events:
        if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            chunk = {"type": "text-delta", "id": "t1", "delta": event.delta.content_delta}
            await context.deps.send_text(json.dumps({"type": "chunk", "body": chunk}))


@bare_parent.tool(name="child")
async def ask_child(context: RunContext[WebSocket], input: str) -> str:
    """Ask the child, and stream what it says."""
    result = await bare_child.run(input, deps=context.deps, event_stream_handler=_stream)
    return result.output


async def bare(socket: WebSocket) -> None:
    """A pydantic-ai agent whose tool delegates to another, straight to the WebSocket."""
    await socket.accept()
    async for question in socket.iter_text():
        await bare_parent.run(question, deps=socket, event_stream_handler=_stream)
        await socket.send_text('{"done":true}')


def make_app(data: Path) -> ASGIApp:
    agents = ramet.App(
        agents=[Parent, ThinkParent],
        sub_agents=[RawChild, ChatChild, ThinkChild],
        data_dir=data / "agents",
    )
    app = Starlette(
        routes=[
            WebSocketRoute("/floor", floor),
            WebSocketRoute("/bare", bare),
            Mount("/", agents),
        ],
        lifespan=agents.lifespan,
    )
    app.state.data = data
    return app
