"""What users may give as tools."""

import threading

import pytest
from pydantic_ai.messages import ToolReturn, UserPromptPart
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from ramet import from_thread
from ramet.agent_tools.verbs import AgentToolVerbs
from ramet.errors import ConfigurationError, NoCurrentAgent
from ramet.testing.scripted_model import ScriptedModel, ToolCall
from ramet.think.tool_gathering import gather
from tests.unit.think.loop_kit import Loop


class Desk:
    """Has methods that are tools."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def whose(self, question: str) -> str:
        """Say whose desk it is.

        Args:
            question: What is asked.
        """
        return f"{self.owner}: {question} {threading.current_thread() is threading.main_thread()}"

    async def where(self, context: RunContext[object], room: int = 1) -> str:
        """Say where the desk is."""
        return f"room {room} of {context.deps}"


async def output_of(tool: object, call: ToolCall, agent: object = "me") -> object:
    loop = Loop(ScriptedModel([call, "done"]), [tool], agent=agent)
    await loop.run()
    (chunk,) = loop.of("tool-output-available")
    return chunk["output"]


def tools_of(given: object) -> dict[str, Tool[object]]:
    toolset = gather([given])
    assert isinstance(toolset, FunctionToolset)
    return toolset.tools


@pytest.mark.parametrize("given", ["text", Desk, None])
def test_what_is_no_tool_is_refused(given: object) -> None:
    with pytest.raises(ConfigurationError, match="is no tool: give functions, pydantic-ai `Tool`s"):
        gather([given])


async def test_methods_keep_their_own_objects_though_their_schema_is_known_already() -> None:
    call = ToolCall("whose", {"question": "whose?"})
    assert await output_of(Desk("Ann").whose, call) == "Ann: whose? False"
    assert await output_of(Desk("Bob").whose, call) == "Bob: whose? False"
    assert await output_of(Desk("Ann").where, ToolCall("where", {"room": 2})) == "room 2 of me"


def test_a_function_that_is_known_already_has_the_same_definition() -> None:
    first, second = (tools_of(Desk(name).whose)["whose"].tool_def for name in ("Ann", "Bob"))
    assert first == second
    assert first.description is not None
    assert first.parameters_json_schema["properties"]["question"]["description"] == "What is asked."


def test_two_functions_of_one_name_and_other_parameters_are_told_apart() -> None:
    def make(annotation: type) -> object:
        def pick(value: object) -> object:
            return value

        pick.__annotations__["value"] = annotation
        return pick

    kinds = [
        tools_of(make(kind))["pick"].tool_def.parameters_json_schema["properties"]["value"]["type"]
        for kind in (int, str)
    ]
    assert kinds == ["integer", "string"]


async def test_a_tool_object_with_a_synchronous_function_runs_in_a_thread() -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    tool = Tool[object](where, name="there")
    assert await output_of(tool, ToolCall("there")) is False
    assert not tool.function_schema.is_async


async def test_a_tool_may_tell_the_model_more_than_it_shows() -> None:
    async def look() -> ToolReturn[int]:
        return ToolReturn(return_value=1, content="look closer", metadata={"secret": True})

    model = ScriptedModel([ToolCall("look"), "done"])
    loop = Loop(model, [look])
    await loop.run()
    assert loop.of("tool-output-available")[0]["output"] == 1
    last = model.requests[1].messages[-1].parts[-1]
    assert isinstance(last, UserPromptPart)
    assert last.content == "look closer"


class Reporter(AgentToolVerbs):
    """Notes what is reported."""

    def __init__(self) -> None:
        self.reported: list[object] = []

    async def report_progress(self, **signal: object) -> str:  # type: ignore[override] # by name
        self.reported.append((signal["fraction"], signal["message"]))
        return "emitted"


async def test_a_synchronous_tool_reports_progress_from_its_thread() -> None:
    def work() -> str:
        return from_thread.report_progress(fraction=0.5, message="half")

    agent = Reporter()
    assert await output_of(work, ToolCall("work"), agent) == "emitted"
    assert agent.reported == [(0.5, "half")]


async def test_in_async_code_the_way_from_a_thread_is_refused() -> None:
    async def work() -> str:
        return from_thread.report_progress(fraction=0.5)

    loop = Loop(ScriptedModel([ToolCall("work"), "done"]), [work], agent=Reporter())
    await loop.run()
    assert "ramet.from_thread was used outside" in str(loop.of("tool-output-error")[0]["errorText"])


def test_outside_of_an_agent_progress_cannot_be_reported() -> None:
    with pytest.raises(NoCurrentAgent, match="use it in a synchronous tool"):
        from_thread.report_progress(fraction=1)
