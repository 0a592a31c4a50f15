"""`ChatAgent`: an `AIChatAgent` that streams its own chunks, by the last text of the user."""

from collections.abc import AsyncIterator

import ramet
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.messages import parts_of
from tests.wire.comparison import compare, verdict
from tests.wire.parts import called, closing, opening, returned, spoken
from tests.wire.researchers import LET_GO, Researcher, ThinkResearcher
from tests.wire.script import (
    RECOVERY,
    Asked,
    Command,
    ScriptedFailure,
    Topic,
    last_asked,
    numbered,
    once,
    parse,
    reported,
)

CHILDREN: dict[str, type[Researcher | ThinkResearcher]] = {
    "research": Researcher,
    "think-research": ThinkResearcher,
}


class ChatAgent(ramet.AIChatAgent):
    """Answers by script."""

    chat_recovery = RECOVERY

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
        asked = last_asked(turn.messages)
        command = parse(asked.text)
        for chunk in opening():
            yield chunk
        async for chunk in self._answer(command, asked, turn):
            yield chunk
        for chunk in closing():
            yield chunk

    def _answer(
        self, command: Command, asked: Asked, turn: ramet.Turn
    ) -> AsyncIterator[JsonObject]:
        match command.verb:
            case "say":
                words = numbered("w", command.number(0, 1), command.number(1, 0))
                return spoken("text", "t1", words)
            case "think":
                return _thought(command.number(0, 1))
            case "fail":
                return _failing()
            case "Background":
                return spoken("text", "t1", once(reported(asked)))
            case _:
                return self._with_tool(command, asked, turn)

    def _with_tool(
        self, command: Command, asked: Asked, turn: ramet.Turn
    ) -> AsyncIterator[JsonObject]:
        match command.verb:
            case "research" | "think-research":
                return self._research(command, asked, turn)
            case "compare":
                return self._compare(command, asked)
            case "background":
                return self._background(command, asked)
            case "weather":
                return _weather(command, asked, turn)
            case "danger":
                return _danger(command, asked, turn)
            case _:
                return spoken("text", "t1", once(f"Unknown: {asked.text}"))

    async def _research(
        self, command: Command, asked: Asked, turn: ramet.Turn
    ) -> AsyncIterator[JsonObject]:
        call_id, topic = f"call_{asked.id}", command.topic()
        for chunk in called(call_id, command.verb, as_json(topic)):
            yield chunk
        result = await self.run_agent_tool(
            CHILDREN[command.verb],
            input=topic,
            run_id=f"agent-tool:{call_id}",
            parent_tool_call_id=call_id,
            input_preview=topic,
            signal=turn.signal,
        )
        for chunk in returned(call_id, result.summary):
            yield chunk
        async for chunk in spoken("text", "t1", once(f"Report: {result.summary}")):
            yield chunk

    async def _compare(self, command: Command, asked: Asked) -> AsyncIterator[JsonObject]:
        call_id = f"call_{asked.id}"
        sides: JsonObject = dict(zip(("a", "b"), command.args, strict=False))
        for chunk in called(call_id, "compare", sides):
            yield chunk
        output = await compare(self, command, call_id)
        for chunk in returned(call_id, output):
            yield chunk
        async for chunk in spoken("text", "t1", once(verdict(output))):
            yield chunk

    async def _background(self, command: Command, asked: Asked) -> AsyncIterator[JsonObject]:
        call_id, topic = f"call_{asked.id}", command.topic()
        for chunk in called(call_id, "background", as_json(topic)):
            yield chunk
        run = await self.run_agent_tool(
            Researcher,
            input=topic,
            run_id=f"agent-tool:{call_id}",
            parent_tool_call_id=call_id,
            input_preview=topic,
            detached=LET_GO,
        )
        for chunk in returned(call_id, {"runId": run.run_id, "status": run.status}):
            yield chunk
        async for chunk in spoken("text", "t1", once("Started")):
            yield chunk


async def _thought(words: int) -> AsyncIterator[JsonObject]:
    async for chunk in spoken("reasoning", "r1", numbered("r", words)):
        yield chunk
    async for chunk in spoken("text", "t1", once("Thought")):
        yield chunk


async def _weather(command: Command, asked: Asked, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
    call_id = f"call_{asked.id}"
    call = earlier_call(turn, call_id)
    if call is None:
        for chunk in called(call_id, "getWeather", {"city": " ".join(command.args)}):
            yield chunk
        return
    async for chunk in spoken("text", "t1", once(f"Weather: {call.get('output')}")):
        yield chunk


async def _danger(command: Command, asked: Asked, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
    call_id = f"call_{asked.id}"
    call = earlier_call(turn, call_id)
    if call is None:
        for chunk in called(call_id, "danger", {"target": " ".join(command.args)}):
            yield chunk
        yield {
            "type": "tool-approval-request",
            "approvalId": f"approval_{asked.id}",
            "toolCallId": call_id,
        }
        return
    approved = call.get("state") == "approval-responded"
    if approved:
        yield {"type": "tool-output-available", "toolCallId": call_id, "output": "executed"}
    async for chunk in spoken("text", "t1", once("Executed" if approved else "Denied")):
        yield chunk


def earlier_call(turn: ramet.Turn, call_id: str) -> JsonObject | None:
    """The call as it stands in the answer that this turn goes on with."""
    if not turn.continuation:
        return None
    for message in turn.messages:
        for part in parts_of(message):
            if part.get("toolCallId") == call_id:
                return part
    return None


async def _failing() -> AsyncIterator[JsonObject]:
    async for chunk in spoken("text", "t1", once("partial")):
        yield chunk
    raise ScriptedFailure


def as_json(topic: Topic) -> dict[str, JsonValue]:
    """A researcher's input as the JSON object that it is."""
    return dict(topic.items())  # type: ignore[arg-type] # a TypedDict's values are objects
