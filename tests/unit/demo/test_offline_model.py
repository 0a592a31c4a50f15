"""The offline rules as a pydantic-ai model: what is streamed, counted, named and survived."""

from typing import Literal

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

from ramet.core.json import JsonValue
from ramet.demo.offline_model import OfflineModel
from tests.unit.demo.rig import FAILURE, Conversation, no_sleep, parameters_for, researcher_tools
from tests.unit.demo.small_reference import small_reference

INTERRUPTED = "The tool call was interrupted before it gave a result."
QUESTIONS = ["What is a generator?", "What's the walrus operator?", "who won the world cup"]


def question(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def shape(response: ModelResponse) -> list[tuple[str, str]]:
    """The parts of a response without what is new each time."""
    shapes = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            shapes.append((part.tool_name, part.args_as_json_str()))
        elif isinstance(part, TextPart | ThinkingPart):
            shapes.append((part.part_kind, part.content))
    return shapes


@pytest.mark.parametrize("text", QUESTIONS)
async def test_a_streamed_conversation_is_the_same_as_one_that_is_not(text: str) -> None:
    whole = Conversation(researcher_tools())
    streamed = Conversation(researcher_tools(), streamed=True)
    assert await streamed.ask(text) == await whole.ask(text)
    pairs = zip(streamed.messages, whole.messages, strict=True)
    for one, other in pairs:
        if isinstance(one, ModelResponse) and isinstance(other, ModelResponse):
            assert shape(one) == shape(other)
            assert one.usage == other.usage
            assert (one.model_name, one.provider_name) == (other.model_name, other.provider_name)


async def test_a_response_begins_with_its_reason_and_comes_in_small_pieces() -> None:
    model = OfflineModel(sleep=no_sleep)
    parameters = parameters_for(researcher_tools())
    async with model_request_stream(
        model, [question("What is a generator?")], model_request_parameters=parameters
    ) as stream:
        events = [event async for event in stream]
    starts = [event.part for event in events if isinstance(event, PartStartEvent)]
    assert [part.part_kind for part in starts] == ["thinking", "tool-call"]
    assert len([event for event in events if isinstance(event, PartDeltaEvent)]) > 8
    assert stream.get().state == "complete"
    assert stream.get().timestamp.tzinfo is not None


async def test_a_stream_can_be_stopped_halfway() -> None:
    model = OfflineModel(sleep=no_sleep)
    async with model_request_stream(model, [question("hello")]) as stream:
        async for event in stream:
            if isinstance(event, PartDeltaEvent):
                await stream.cancel()
                break
        assert stream.get().state == "interrupted"
        assert stream.get().parts


async def test_the_pause_before_each_piece_is_what_was_asked_for() -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    model = OfflineModel(delay_seconds=0.5, sleep=note)
    async with model_request_stream(model, [question("hello")]) as stream:
        async for _ in stream:
            pass
    assert set(waits) == {0.5}


async def test_usage_counts_words() -> None:
    response = await model_request(OfflineModel(), [question("one two three")])
    words = sum(len(text.split()) for _, text in shape(response))
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, words)


async def test_tool_call_ids_are_unique_in_a_conversation() -> None:
    conversation = Conversation(researcher_tools())
    ids: list[str] = []
    for text in QUESTIONS * 2:
        await conversation.ask(text)
        ids += [call.tool_call_id for call in conversation.calls]
    assert len(set(ids)) == len(ids) > 15


async def test_it_is_named_for_what_it_is() -> None:
    response = await model_request(OfflineModel(), [question("hello")])
    assert (response.model_name, response.provider_name) == ("offline", "ramet")


async def test_a_greeting_is_answered_from_what_the_tools_say_of_themselves() -> None:
    conversation = Conversation({"research": research})
    answer = await conversation.ask("Hello!")
    assert conversation.steps == []
    assert "- **research** — Find out about one topic." in answer
    assert "More than that" not in answer


async def test_without_tools_it_says_so() -> None:
    response = await model_request(
        OfflineModel(),
        [question("What is a generator?")],
        model_request_parameters=ModelRequestParameters(),
    )
    assert shape(response)[-1][1].endswith("I have no tools here.")


@pytest.mark.parametrize(
    "outcome", [FAILURE, '{"ok": false, "status": "error", "error": "the disk is on fire"}']
)
async def test_a_failure_envelope_is_named_in_the_answer(outcome: JsonValue) -> None:
    answer = await Conversation({"research": lambda query: outcome}).ask("What is a generator?")
    assert "**Not answered:** “generator” failed — the disk is on fire" in answer
    assert answer.startswith("None of this could be answered.")


async def test_a_tool_that_raised_is_named_in_the_answer() -> None:
    call = ToolCallPart("research", {"query": "tea"}, "call-1")
    messages: list[ModelMessage] = [
        question("What is tea?"),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[ToolReturnPart("research", "no kettle", "call-1", outcome="failed")]),
    ]
    response = await model_request(OfflineModel(), messages)
    assert "**Not answered:** “tea” failed — no kettle" in shape(response)[-1][1]


@pytest.mark.parametrize("reason", ["interrupted", "failed"])
async def test_a_question_after_a_cancelled_one_is_answered_and_not_the_interrupted_call(
    reason: Literal["interrupted", "failed"],
) -> None:
    call = ToolCallPart("research", {"query": "tea"}, "call-1")
    interrupted = ToolReturnPart("research", INTERRUPTED, "call-1", outcome=reason)
    messages: list[ModelMessage] = [
        question("What is tea?"),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[interrupted, UserPromptPart("What is a decorator?")]),
    ]
    response = await model_request(
        OfflineModel(),
        messages,
        model_request_parameters=parameters_for({"research": research}),
    )
    assert shape(response)[-1] == ("research", '{"query":"decorator"}')


async def test_a_question_after_a_crash_is_the_last_of_those_that_wait_together() -> None:
    call = ToolCallPart("research", {"query": "tea"}, "call-1")
    messages: list[ModelMessage] = [
        question("What is tea?"),
        ModelResponse(parts=[call]),
        ModelRequest(
            parts=[
                ToolReturnPart("research", INTERRUPTED, "call-1", outcome="failed"),
                UserPromptPart("What is a lambda?"),
                UserPromptPart("And when do I need it?"),
            ]
        ),
    ]
    response = await model_request(
        OfflineModel(),
        messages,
        model_request_parameters=parameters_for({"research": research}),
    )
    assert shape(response)[-1] == ("research", '{"query":"And when do I need it (lambda)"}')


async def test_results_that_follow_a_question_asked_after_a_cancel_are_composed() -> None:
    first, second = (ToolCallPart("research", {"query": q}, q) for q in ("tea", "milk"))
    messages: list[ModelMessage] = [
        question("What is tea?"),
        ModelResponse(parts=[first]),
        ModelRequest(
            parts=[
                ToolReturnPart("research", INTERRUPTED, "tea", outcome="failed"),
                UserPromptPart("What is milk?"),
            ]
        ),
        ModelResponse(parts=[second]),
        ModelRequest(parts=[ToolReturnPart("research", "> Milk is white.", "milk")]),
    ]
    response = await model_request(OfflineModel(), messages)
    assert shape(response)[-1] == ("text", "> Milk is white.")


async def test_one_side_of_a_comparison_that_failed_is_named() -> None:
    tools = {"compare": lambda a, b: {"a": "> Lists change.", "b": FAILURE}}
    answer = await Conversation(tools).ask("lists vs tuples")
    assert "> Lists change." in answer
    assert "**Not answered:** “tuples” failed — the disk is on fire" in answer
    assert "1 of 2 questions were answered: **lists**." in answer


async def test_a_passage_that_could_not_be_read_is_named() -> None:
    real = researcher_tools(small_reference())

    def read(id: str) -> JsonValue:
        """Read all but one."""
        outcome = FAILURE if id == "types/generator-functions" else real["read"](id=id)
        assert isinstance(outcome, dict)
        return outcome

    answer = await Conversation({**real, "read": read}).ask("What is a generator?")
    assert "**Failed:** `read` of “types/generator-functions” — the disk is on fire" in answer
    assert "**Sources**" in answer


async def test_when_every_search_fails_it_stops_and_says_so() -> None:
    tools = {**researcher_tools(), "search": lambda query: FAILURE}
    conversation = Conversation(tools)
    answer = await conversation.ask("What is a generator?")
    assert "**Failed:** `search`" in answer
    assert len(conversation.steps) <= 4


async def test_a_very_long_question_is_read_in_no_time() -> None:
    answer = await Conversation({"research": research}).ask(
        "compare a and the difference " * 20_000
    )
    assert answer


def research(query: str) -> JsonValue:
    """Find out about one topic.

    More than that it does not do.
    """
    return f"> About {query}."
