"""A user's own pydantic-ai agent, and plain text, as chunks."""

from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry

from ramet.core.json import JsonObject
from ramet.testing.scripted_model import Reasoning, ScriptedModel, ToolCall
from ramet.think.agent_source import chunks_from_pydantic_ai, chunks_from_text


async def played(agent: Agent[None, str]) -> list[JsonObject]:
    return [chunk async for chunk in chunks_from_pydantic_ai(agent.run_stream_events("go"))]


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
