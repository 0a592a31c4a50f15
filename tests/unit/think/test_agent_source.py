"""A user's own pydantic-ai agent, and plain text, as chunks."""

from collections.abc import AsyncGenerator, AsyncIterator

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from ramet.core.json import JsonObject, JsonValue
from ramet.testing.scripted_model import Reasoning, ScriptedError, ScriptedModel, ToolCall
from ramet.think.agent_source import chunks_from_pydantic_ai, chunks_from_text


async def played(agent: Agent[None, str]) -> list[JsonObject]:
    return [chunk async for chunk in chunks_from_pydantic_ai(agent.run_stream_events("go"))]


async def until_error(
    chunks: AsyncGenerator[JsonObject], error: type[Exception]
) -> list[JsonValue]:
    """The types of the chunks that came before an error, which has to come."""
    told: list[JsonValue] = []
    try:
        async for chunk in chunks:
            told.append(chunk["type"])  # noqa: PERF401 - what came before the error counts
    except error:
        return told
    raise AssertionError(f"no {error.__name__} came")


async def test_an_agents_run_is_told_step_by_step() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    script = ScriptedModel([[Reasoning("hm"), ToolCall("add", {"a": 1, "b": 2})], "three it is"])
    told = await played(Agent(script, tools=[add]))
    assert [chunk["type"] for chunk in told] == [
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "text-start",
        *["text-delta"] * 3,
        "text-end",
        "finish-step",
        "finish",
    ]
    assert told[6]["input"] == {"a": 1, "b": 2}
    assert told[7]["output"] == 3


async def test_a_call_that_has_to_be_made_again_is_told_as_a_failure() -> None:
    async def pick(number: int) -> int:
        if number > 9:
            raise ModelRetry("at most 9")
        return number

    calls = [ToolCall("pick", {"number": number}) for number in (10, 9)]
    told = await played(Agent(ScriptedModel([*calls, "ok"]), tools=[pick]))
    errors = [chunk["errorText"] for chunk in told if chunk["type"] == "tool-output-error"]
    assert errors == ["at most 9"]


async def test_pieces_of_text_become_one_part() -> None:
    async def pieces() -> AsyncIterator[str]:
        yield "one "
        yield "two"

    expected = [
        {"type": "start-step"},
        {"type": "text-start", "id": "text"},
        {"type": "text-delta", "id": "text", "delta": "one "},
        {"type": "text-delta", "id": "text", "delta": "two"},
        {"type": "text-end", "id": "text"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    assert [chunk async for chunk in chunks_from_text(pieces())] == expected
    assert [chunk async for chunk in chunks_from_text(["one ", "two"])] == expected


async def test_a_whole_text_is_one_piece() -> None:
    told = [chunk async for chunk in chunks_from_text("one two")]
    assert [chunk["delta"] for chunk in told if chunk["type"] == "text-delta"] == ["one two"]


async def test_the_end_says_why_and_what_it_took() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "four words of text"

    told = await played(Agent(FunctionModel(stream_function=stream)))
    assert told[-1] == {
        "type": "finish",
        "finishReason": "stop",
        "messageMetadata": {"usage": {"inputTokens": 50, "outputTokens": 4, "totalTokens": 54}},
    }


async def test_a_run_by_nodes_is_told_like_one_by_events() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    def agent() -> Agent[None, str]:
        call = ToolCall("add", {"a": 1, "b": 2}, "c1")
        return Agent(ScriptedModel([[Reasoning("hm"), call], "three it is"]), tools=[add])

    by_nodes = [chunk async for chunk in chunks_from_pydantic_ai(agent().iter("go"))]
    assert by_nodes == await played(agent())
    async with agent().iter("go") as run:
        assert [chunk async for chunk in chunks_from_pydantic_ai(run)] == by_nodes


async def test_an_output_tool_is_shown_as_a_call_with_its_result() -> None:
    class Sum(BaseModel):
        value: int

    script = ScriptedModel([ToolCall("final_result", {"value": 3}, "c1")])
    agent = Agent(script, output_type=Sum)
    told = [chunk async for chunk in chunks_from_pydantic_ai(agent.run_stream_events("go"))]
    available = [chunk for chunk in told if chunk["type"] == "tool-input-available"]
    assert [chunk["input"] for chunk in available] == [{"value": 3}]
    assert [chunk["type"] for chunk in told][-3:] == [
        "tool-output-available",
        "finish-step",
        "finish",
    ]


async def test_deferred_calls_stay_open_and_ask_for_the_approvals_that_they_need() -> None:
    def danger(x: int) -> int:
        return x

    calls = [ToolCall("danger", {"x": 1}, "c1"), ToolCall("outside", {}, "c2")]
    agent = Agent(
        ScriptedModel([calls]),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(danger, requires_approval=True)],
        toolsets=[ExternalToolset([ToolDefinition(name="outside")])],
    )
    told = [chunk async for chunk in chunks_from_pydantic_ai(agent.run_stream_events("go"))]
    inputs = [each["toolCallId"] for each in told if each["type"] == "tool-input-available"]
    assert sorted(map(str, inputs)) == ["c1", "c2"]
    assert [each for each in told if "output" in str(each["type"])] == []
    assert {
        "type": "tool-approval-request",
        "approvalId": "approval_c1",
        "toolCallId": "c1",
    } in told


async def test_what_a_tool_raises_ends_the_answer_after_what_was_told() -> None:
    async def fail() -> str:
        raise LookupError("nothing there")

    agent = Agent(ScriptedModel([ToolCall("fail", {}, "c1")]), tools=[fail])
    chunks = chunks_from_pydantic_ai(agent.run_stream_events("go"))
    told = await until_error(chunks, LookupError)
    assert told[-1] == "tool-input-available"


async def test_an_error_of_the_model_is_raised_after_the_text_that_came() -> None:
    agent = Agent(ScriptedModel([["some", ScriptedError("out of credit")]]))
    chunks = chunks_from_pydantic_ai(agent.run_stream_events("go"))
    told = await until_error(chunks, ScriptedError)
    assert told[:3] == ["start-step", "text-start", "text-delta"]
    assert "finish" not in told


async def test_closing_the_chunks_ends_the_run_of_the_agent() -> None:
    ended: list[str] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        try:
            yield "some "
            yield "more"
            yield "and more"
        finally:
            ended.append("yes")

    agent = Agent(FunctionModel(stream_function=stream))
    chunks = chunks_from_pydantic_ai(agent.run_stream_events("go"))
    assert [(await anext(chunks))["type"] for _ in range(3)][-1] == "text-delta"
    await chunks.aclose()
    assert ended == ["yes"]


async def test_closing_the_chunks_of_text_closes_its_source() -> None:
    closed: list[str] = []

    async def pieces() -> AsyncIterator[str]:
        try:
            yield "one "
            yield "two"
        finally:
            closed.append("yes")

    chunks = chunks_from_text(pieces())
    for _ in range(3):
        await anext(chunks)
    await chunks.aclose()
    assert closed == ["yes"]


async def test_no_text_is_an_empty_part() -> None:
    assert [chunk["type"] async for chunk in chunks_from_text([])] == [
        "start-step",
        "text-start",
        "text-end",
        "finish-step",
        "finish",
    ]
