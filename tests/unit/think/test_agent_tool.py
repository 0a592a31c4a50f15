"""`agent_tool`: its name, parameters and display, and what the model is told of a run."""

from dataclasses import dataclass
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from typing_extensions import TypedDict

import ramet
from ramet.agent_tools.records import RunResult
from ramet.agent_tools.verbs import AgentToolVerbs
from ramet.core.current import Current, current, within, working_for
from ramet.core.json import JsonObject
from ramet.errors import InvalidArguments, NoCurrentAgent, NotAnAgentTool
from ramet.testing.scripted_model import ScriptedModel, ToolCall
from ramet.think.agent_tool import agent_tool, answer
from tests.unit.think.loop_kit import Loop


class HTTPResearcher(ramet.Think):
    """A child."""


class Question(BaseModel):
    """A question."""

    query: str
    depth: int = 1


class Topic(TypedDict):
    """A topic."""

    topic: str
    ms: NotRequired[int]


@dataclass
class Pair:
    """Two things."""

    a: str
    b: str


def finished(**more: Any) -> RunResult[object]:
    known = {"run_id": "r", "agent_type": "HTTPResearcher", "status": "completed", **more}
    return RunResult(**known)


class Parent(AgentToolVerbs):
    """Notes the runs that it is asked for, and ends them as it was told."""

    def __init__(self, result: RunResult[object]) -> None:
        self.result = result
        self.asked: list[dict[str, object]] = []
        self.within: list[Current | None] = []

    async def run_agent_tool(self, cls: type, **asked: Any) -> Any:
        self.asked.append({"cls": cls, **asked})
        self.within.append(current())
        return self.result


def child_tool(**more: Any) -> Any:
    return agent_tool(HTTPResearcher, description="Researches.", **more)


@pytest.mark.behaviour("AT-009")
def test_the_name_is_the_class_name_in_snake_case_unless_given() -> None:
    assert child_tool().name == "http_researcher"
    assert child_tool(name="look-up").name == "look-up"
    assert child_tool().description == "Researches."


class Plain(ramet.Agent[None]):
    """An agent without the methods of a child."""


def test_a_class_that_is_no_child_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(NotAnAgentTool, match="Plain cannot be run as an agent tool"):
        agent_tool(Plain, description="Researches.")
    with pytest.raises(InvalidArguments, match="agent_tool takes an agent class, not 'Child'"):
        agent_tool("Child", description="Researches.")  # type: ignore[arg-type] # as a user may


@pytest.mark.parametrize("name", ["my tool!", "", "x" * 65, "größe", "a.b", "tool\n", 5])
def test_a_name_that_no_provider_takes_is_refused_when_the_tool_is_made(name: object) -> None:
    with pytest.raises(InvalidArguments, match="The name of a tool has 1 to 64 letters") as error:
        child_tool(name=name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize(
    ("given", "properties", "required"),
    [
        (Question, {"query", "depth"}, ["query"]),
        (Topic, {"topic", "ms"}, ["topic"]),
        (Pair, {"a", "b"}, ["a", "b"]),
        (str, {"input"}, ["input"]),
        (list[Question], {"input"}, ["input"]),
    ],
)
def test_the_input_type_gives_the_parameters(
    given: object, properties: set[str], required: list[str]
) -> None:
    schema = child_tool(input=given).tool_def.parameters_json_schema
    assert schema["type"] == "object"
    assert set(schema["properties"]) == properties
    assert schema["required"] == required


@pytest.mark.parametrize(
    ("given", "arguments", "asked"),
    [
        (Question, {"query": "q"}, {"query": "q", "depth": 1}),
        (Topic, {"topic": "t"}, {"topic": "t"}),
        (Pair, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
        (str, {"input": "plain"}, "plain"),
    ],
)
@pytest.mark.behaviour("AT-009", "AT-164")
async def test_the_run_gets_the_checked_input_and_the_model_the_summary(
    given: object, arguments: JsonObject, asked: object
) -> None:
    parent = Parent(finished(summary="found"))
    script = ScriptedModel([ToolCall("http_researcher", arguments), "done"])
    loop = Loop(script, [child_tool(input=given)], agent=parent)
    await loop.run()
    assert parent.asked == [
        {"cls": HTTPResearcher, "input": asked, "output": None, "display": None}
    ]
    assert loop.of("tool-output-available")[0]["output"] == "found"


@pytest.mark.behaviour("AT-012")
async def test_the_run_is_made_within_the_tool_call_as_clients_know_it() -> None:
    parent = Parent(finished(summary=None))
    script = ScriptedModel([ToolCall("http_researcher", {"input": "x"}, id="call_0"), "done"])
    loop = Loop(script, [child_tool()], agent=parent, taken=["call_0"])
    await loop.run()
    (found,) = parent.within
    assert found is not None
    assert found.tool_call_id == loop.of("tool-input-start")[0]["toolCallId"] != "call_0"
    assert loop.of("tool-output-available")[0]["output"] == ""


async def test_an_input_that_does_not_fit_comes_back_to_the_model() -> None:
    parent = Parent(finished())
    script = ScriptedModel([ToolCall("http_researcher", {"depth": 1}), "sorry"])
    loop = Loop(script, [child_tool(input=Question)], agent=parent)
    await loop.run()
    assert parent.asked == []
    assert loop.of("tool-output-error")[0]["errorText"] == "query: Field required"


@pytest.mark.behaviour("AT-011")
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, None),
        ({"display_name": "N"}, {"name": "N"}),
        ({"icon": "I"}, {"name": "HTTP Researcher", "icon": "I"}),
        ({"display": {"tone": 1}}, {"name": "HTTP Researcher", "tone": 1}),
        ({"display": {"name": "n", "tone": 1}, "icon": "I"}, {"name": "n", "tone": 1, "icon": "I"}),
        ({"display": {"name": "n", "icon": "i"}, "display_name": "N"}, {"name": "N", "icon": "i"}),
    ],
)
async def test_the_display_is_absent_or_put_together(given: JsonObject, shown: object) -> None:
    parent = Parent(finished())
    script = ScriptedModel([ToolCall("http_researcher", {"input": "x"}), "done"])
    await Loop(script, [child_tool(**given)], agent=parent).run()
    assert parent.asked[0]["display"] == shown


@pytest.mark.behaviour("AT-165", "AT-168")
async def test_a_typed_run_gives_its_output_instead_of_the_summary() -> None:
    parent = Parent(finished(output=Question(query="q"), summary="s"))
    script = ScriptedModel([ToolCall("http_researcher", {"input": "x"}), "done"])
    loop = Loop(script, [child_tool(output=Question)], agent=parent)
    await loop.run()
    assert parent.asked[0]["output"] is Question
    assert loop.of("tool-output-available")[0]["output"] == {"query": "q", "depth": 1}


@pytest.mark.behaviour("AT-169", "AT-170", "AT-171", "AT-172", "AT-173")
@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            finished(status="error", error="boom"),
            {"ok": False, "status": "error", "error": "boom", "retryable": False},
        ),
        (
            finished(status="error"),
            {"ok": False, "status": "error", "error": "The run failed.", "retryable": False},
        ),
        (
            finished(status="aborted"),
            {
                "ok": False,
                "status": "aborted",
                "error": "The run was cancelled.",
                "retryable": False,
            },
        ),
        (
            finished(status="interrupted", reason="no-progress", child_still_running=True),
            {
                "ok": False,
                "status": "interrupted",
                "error": "The run was interrupted before it could finish; it can be retried.",
                "retryable": True,
                "reason": "no-progress",
                "childStillRunning": True,
            },
        ),
    ],
)
def test_a_run_that_did_not_complete_is_told_as_a_failure(
    result: RunResult[object], told: JsonObject
) -> None:
    assert answer(result, structured=False) == told
    assert answer(result, structured=True) == told


@pytest.mark.behaviour("AT-010")
async def test_outside_of_an_agent_it_says_where_it_belongs() -> None:
    script = ScriptedModel([ToolCall("http_researcher", {"input": "x"})])
    with pytest.raises(NoCurrentAgent, match="from inside a turn of a ramet agent"):
        await Agent(script, tools=[child_tool()]).run("go")


async def test_it_works_in_a_bare_pydantic_ai_agent_inside_of_an_agent() -> None:
    parent = Parent(finished(summary="found"))
    script = ScriptedModel([ToolCall("http_researcher", {"input": "x"}, id="c7"), "done"])
    with working_for(parent), within(request_id="r"):
        result = await Agent(script, tools=[child_tool()]).run("go")
    assert result.output == "done"
    (found,) = parent.within
    assert found is not None
    assert (found.tool_call_id, found.request_id) == ("c7", "r")
