"""`CounterAgent`: state, rpc, access and a run without a tool call, on a plain agent."""

from typing_extensions import TypedDict

import ramet
from ramet.core.json import JsonValue
from tests.wire.researchers import Researcher
from tests.wire.script import Topic, pause


class Count(TypedDict):
    """The state of a counter."""

    count: int


class CounterAgent(ramet.Agent[Count]):
    """Counts; says no to a count below zero and to children named `forbidden`."""

    initial_state = Count(count=0)

    def validate_state_change(self, state: Count, source: object) -> None:
        if state["count"] < 0:
            raise ValueError("The count cannot be negative")

    def should_connection_be_readonly(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> bool:
        return request.query.get("mode") == "readonly"

    def should_send_protocol_messages(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> bool:
        return request.query.get("mode") != "silent"

    async def on_before_sub_agent(
        self, request: ramet.Request, target: ramet.Target
    ) -> ramet.Response | None:
        if target.name == "forbidden":
            return ramet.Response("Forbidden", status=403)
        return None

    @ramet.rpc
    async def increment(self, n: int = 1) -> int:
        count = self.state["count"] + n
        self.set_state(Count(count=count))
        return count

    @ramet.rpc
    async def echo(self, v: JsonValue) -> JsonValue:
        return v

    @ramet.rpc
    async def fail(self, msg: str) -> None:
        raise RuntimeError(msg)

    @ramet.rpc
    async def slow(self, ms: int) -> str:
        await pause(ms)
        return "slow"

    @ramet.rpc(streaming=True)
    async def count_to(self, stream: ramet.RpcStream, n: int) -> None:
        for number in range(1, n + 1):
            stream.send(number)
        stream.end("done")

    @ramet.rpc
    async def start_report(self, topic: str) -> str | None:
        result = await self.run_agent_tool(Researcher, input=Topic(topic=topic))
        return result.summary

    async def secret(self) -> str:
        """Not marked as callable, so no client can call it."""
        return "secret"
