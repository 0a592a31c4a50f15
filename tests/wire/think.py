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

import ramet
from ramet.core.json import JsonObject, dumps
from tests.wire.comparison import compare, verdict
from tests.wire.researchers import Researcher, ThinkResearcher
from tests.wire.script import (
    RECOVERY,
    Asked,
    Command,
    ScriptedFailure,
    Topic,
    last_asked,
    numbered,
    parse,
)

Delta = str | DeltaToolCalls | DeltaThinkingCalls


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
            command, output = parse(asked.text), tool_output(messages)
            if output is not None:
                yield report(command, output)
                return
            async for delta in answer(command, f"call_{asked.id}"):
                yield delta

        return FunctionModel(stream_function=stream, model_name="scripted")

    def get_tools(self) -> Sequence[object]:
        async def run_compare(
            context: RunContext[object], a: str, b: str, outcome: str = ""
        ) -> JsonObject:
            """Research two topics at once."""
            command = Command("compare", (a, b, *outcome.split()))
            return await compare(self, command, str(context.tool_call_id))

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
        ]


async def answer(command: Command, call_id: str) -> AsyncIterator[Delta]:
    """What the model says to the user's text."""
    match command.verb:
        case "say":
            async for word in numbered("w", command.number(0, 1), command.number(1, 0)):
                yield word
        case "think":
            async for word in numbered("r", command.number(0, 1)):
                yield {0: DeltaThinkingPart(content=word)}
            yield "Thought"
        case "research" | "think-research":
            yield call(command.verb, dict(command.topic()), call_id)
        case "compare":
            a, b, *rest = command.args
            arguments: dict[str, object] = {"a": a, "b": b}
            if rest:
                arguments["outcome"] = " ".join(rest)
            yield call("compare", arguments, call_id)
        case "fail":
            yield "partial"
            raise ScriptedFailure
        case _:
            yield f"Unknown: {' '.join((command.verb, *command.args))}"


def call(name: str, arguments: dict[str, object], call_id: str) -> DeltaToolCalls:
    """The delta of a whole tool call."""
    return {0: DeltaToolCall(name=name, json_args=dumps(arguments), tool_call_id=call_id)}


def report(command: Command, output: object) -> str:
    """What the model says once its tool has returned."""
    if command.verb == "compare" and isinstance(output, dict):
        return verdict(output)
    return f"Report: {output}"


def tool_output(messages: Sequence[ModelMessage]) -> object | None:
    """What the tool of this step returned, if the model is asked after one.

    A return before a question is of an earlier turn, which was cut.
    """
    last = messages[-1]
    if not isinstance(last, ModelRequest) or not isinstance(last.parts[-1], ToolReturnPart):
        return None
    return next(part.content for part in last.parts if isinstance(part, ToolReturnPart))
