"""The scripted model: plays its script, and fails on what is not in it."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from ramet.errors import InvalidArguments
from ramet.testing.manual_clock import ManualClock
from ramet.testing.quiet import quiet
from ramet.testing.scripted_model import (
    Delay,
    Gate,
    Piece,
    ScriptBroken,
    ScriptedError,
    ScriptedModel,
    ToolCall,
    last_asked,
)
from tests.unit.think.loop_kit import Loop


async def test_a_call_that_is_not_in_the_script_fails() -> None:
    model = ScriptedModel(["only one"])
    await Loop(model).run()
    with pytest.raises(ScriptBroken, match="no answer for request 2"):
        await Loop(model).run()
    with pytest.raises(ScriptBroken, match="asked 2 times; its script has 1 answers"):
        model.assert_done()


async def test_an_answer_that_was_never_asked_for_fails_when_the_block_ends() -> None:
    with (
        pytest.raises(ScriptBroken, match="1 of the script's 2 answers"),
        ScriptedModel(["one", "two"]) as model,
    ):
        await Loop(model).run()


async def test_an_error_in_the_block_is_not_hidden_by_what_is_left_of_the_script() -> None:
    with pytest.raises(KeyError), ScriptedModel(["never asked"]):
        raise KeyError


async def test_a_delay_waits_on_the_clock_that_was_given() -> None:
    clock = ManualClock()
    loop = Loop(ScriptedModel([["before", Delay(5), " after"]], sleep=clock.sleep))
    turn = loop.begin()
    await quiet()
    assert loop.said == "before"
    clock.move(5)
    await turn
    assert loop.said == "before after"


async def test_a_gate_holds_until_it_is_opened_and_then_lets_everything_pass() -> None:
    gate = Gate()
    loop = Loop(ScriptedModel([["a", gate, "b", gate, "c"]]))
    turn = loop.begin()
    await gate.reached()
    assert (loop.said, gate.waiting) == ("a", 1)
    gate.open()
    await turn
    assert (loop.said, gate.waiting) == ("abc", 0)


async def test_an_error_is_raised_with_its_message() -> None:
    with pytest.raises(ScriptedError, match="out of credit"):
        await Loop(ScriptedModel([ScriptedError("out of credit")])).run()


async def test_it_notes_what_it_was_asked() -> None:
    async def look() -> str:
        return "seen"

    model = ScriptedModel(["done"])
    await Loop(model, [look], instructions=["Be brief."]).run()
    (asked,) = model.requests
    assert asked.tool_names == ["look"]
    assert asked.instructions == "Be brief."
    assert isinstance(asked.messages[-1], ModelRequest)


async def test_a_rule_makes_up_each_answer() -> None:
    def rule(messages: list[ModelMessage], tools: list[ToolDefinition]) -> list[Piece]:
        return [ToolCall(tools[0].name)] if len(messages) == 1 else [f"{len(messages)} messages"]

    async def look() -> str:
        return "seen"

    model = ScriptedModel.by_rule(rule)
    loop = Loop(model, [look])
    with model:
        await loop.run()
    assert loop.said == "3 messages"


async def test_it_works_in_a_bare_pydantic_ai_agent_too() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    with ScriptedModel([ToolCall("add", {"a": 1, "b": 2}), "three"]) as model:
        result = await Agent(model, tools=[add]).run("1 + 2?")
    assert result.output == "three"


def test_a_text_is_no_script() -> None:
    with pytest.raises(InvalidArguments, match=r"write ScriptedModel\(\['hello'\]\)"):
        ScriptedModel("hello")


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        (UserPromptPart("What is QUIC?"), "What is QUIC?"),
        (UserPromptPart(["What ", "now?"]), "What now?"),
        (ToolReturnPart("look", "a door", "call_1"), "a door"),
        (ToolReturnPart("look", {"doors": 2}, "call_1"), '{"doors":2}'),
    ],
)
def test_what_a_model_was_asked_last_is_a_text(newest: object, text: str) -> None:
    request = ModelRequest(parts=[UserPromptPart("before"), newest])  # type: ignore[list-item] # any part

    assert last_asked([request]).startswith(text)
    assert last_asked([request, ModelResponse(parts=[TextPart("so far")])]).startswith(text)


def test_nothing_was_asked_of_a_model_without_messages() -> None:
    assert last_asked([]) == ""
