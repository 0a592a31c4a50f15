"""`ThinkAgent`: the same answers from a `Think` with a scripted model."""

from collections.abc import AsyncIterator, Sequence

from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

import ramet
from ramet.core.json import JsonObject, dumps
from tests.wire.comparison import compare, verdict
from tests.wire.researchers import LET_GO, Researcher, ThinkResearcher
from tests.wire.script import (
    DEFAULT_PACE,
    RECOVERY,
    Asked,
    Command,
    ScriptedFailure,
    Topic,
    last_asked,
    numbered,
    parse,
    reported,
)

Delta = str | DeltaToolCalls | DeltaThinkingCalls


GET_WEATHER = ToolDefinition(
    name="getWeather",
    description="The weather in a city; the browser knows it.",
    parameters_json_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)


def danger(target: str) -> str:
    """Do something dangerous."""
    return "executed"


class ThinkAgent(ramet.Think):
    """Answers by script, through tools that the model calls."""

    chat_recovery = RECOVERY

    def __init__(self) -> None:
        self.asked = Asked("", "")

    def before_turn(self, turn: ramet.Turn) -> None:
        self.asked = last_asked(turn.messages)

    def get_model(self) -> Model:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
            asked = self.asked
            command, returned = parse(asked.text), tool_return(messages)
            if returned is not None:
                yield report(command, returned)
                return
            async for delta in answer(command, asked):
                yield delta

        return FunctionModel(stream_function=stream, model_name="scripted")

    def get_tools(self) -> Sequence[object]:
        async def run_compare(
            context: RunContext[object], a: str, b: str, outcome: str = ""
        ) -> JsonObject:
            """Research two topics at once."""
            command = Command("compare", (a, b, *outcome.split()))
            return await compare(self, command, str(context.tool_call_id))

        async def background(topic: str, ms: int = DEFAULT_PACE) -> JsonObject:
            """Research a topic and let go of it."""
            asked = Topic(topic=topic, ms=ms)
            run = await self.run_agent_tool(
                Researcher, input=asked, input_preview=asked, detached=LET_GO
            )
            return {"runId": run.run_id, "status": run.status}

        return [
            ramet.agent_tool(
                Researcher, name="research", description="Research a topic.", input=Topic
            ),
            ramet.agent_tool(
                ThinkResearcher,
                name="think-research",
                description="Research a topic with a model.",
                input=Topic,
            ),
            Tool(run_compare, name="compare"),
            background,
            Tool(danger, requires_approval=True),
            ExternalToolset([GET_WEATHER]),
        ]


async def answer(command: Command, asked: Asked) -> AsyncIterator[Delta]:
    """What the model says to the user's text."""
    match command.verb:
        case "say":
            async for word in numbered("w", command.number(0, 1), command.number(1, 0)):
                yield word
        case "think":
            async for word in numbered("r", command.number(0, 1)):
                yield {0: DeltaThinkingPart(content=word)}
            yield "Thought"
        case "fail":
            yield "partial"
            raise ScriptedFailure
        case "Background":
            yield reported(asked)
        case _:
            arguments = tool_arguments(command)
            if arguments is None:
                yield f"Unknown: {asked.text}"
            else:
                name = "getWeather" if command.verb == "weather" else command.verb
                yield call(name, arguments, f"call_{asked.id}")


def tool_arguments(command: Command) -> dict[str, object] | None:
    """What the model calls the tool of a command with; None when it has none."""
    match command.verb:
        case "research" | "think-research" | "background":
            return dict(command.topic())
        case "compare":
            a, b, *rest = command.args
            outcome = {"outcome": " ".join(rest)} if rest else {}
            return {"a": a, "b": b, **outcome}
        case "weather":
            return {"city": " ".join(command.args)}
        case "danger":
            return {"target": " ".join(command.args)}
        case _:
            return None


def call(name: str, arguments: dict[str, object], call_id: str) -> DeltaToolCalls:
    """The delta of a whole tool call."""
    return {0: DeltaToolCall(name=name, json_args=dumps(arguments), tool_call_id=call_id)}


def report(command: Command, returned: ToolReturnPart) -> str:
    """What the model says once its tool has returned."""
    output = returned.content
    if command.verb == "weather":
        return f"Weather: {output}"
    if command.verb == "background":
        return "Started"
    if command.verb == "danger":
        return "Denied" if returned.outcome == "denied" else "Executed"
    if command.verb == "compare" and isinstance(output, dict):
        return verdict(output)
    return f"Report: {output}"


def tool_return(messages: Sequence[ModelMessage]) -> ToolReturnPart | None:
    """What the tool of this step came to, if the model is asked after one.

    A return before a question is of an earlier turn, which was cut.
    """
    last = messages[-1]
    if not isinstance(last, ModelRequest) or not isinstance(last.parts[-1], ToolReturnPart):
        return None
    return next(part for part in last.parts if isinstance(part, ToolReturnPart))
