"""The parts of pydantic-ai that `think` stands on: an upgrade that moves one of them fails here.

The library is used below its `Agent`, where it promises less. Each test names one thing that the
code in `ramet.think` takes for granted.
"""

import inspect
from collections.abc import AsyncIterator
from dataclasses import fields, replace

import pytest
from pydantic import ValidationError
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    RetryInfo,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import GenerateToolJsonSchema, RunContext, Tool
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset
from pydantic_ai.usage import RequestUsage, RunUsage

QUESTION: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("what?")])]


async def told(model: Model, **more: object) -> list[object]:
    parameters = ModelRequestParameters(**more)  # type: ignore[arg-type] # by the test's names
    request = model_request_stream(model, QUESTION, model_request_parameters=parameters)
    async with request as stream:
        return [event async for event in stream]


def context(**more: object) -> RunContext[object]:
    known: dict[str, object] = {"deps": None, "model": TestModel(), "usage": RunUsage(), **more}
    return RunContext[object](**known)  # type: ignore[arg-type] # by the test's names


async def manager_of(*tools: Tool[object], retries: int = 1) -> ToolManager[object]:
    manager = ToolManager(FunctionToolset[object](tools), default_max_retries=retries)
    return await manager.for_run_step(context(max_retries=retries))


def parameters_of(function: object) -> set[str]:
    assert callable(function)
    return set(inspect.signature(function).parameters)


def test_the_streamed_request_takes_what_the_seam_gives() -> None:
    assert parameters_of(model_request_stream) >= {
        "model",
        "messages",
        "model_settings",
        "model_request_parameters",
    }
    names = {field.name for field in fields(ModelRequestParameters)}
    assert names >= {"function_tools", "instruction_parts"}
    assert InstructionPart.join([InstructionPart(content="a"), InstructionPart(content="b")]) == (
        "a\n\nb"
    )


async def test_a_text_is_a_start_with_the_first_piece_then_deltas_then_an_end() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for piece in ("one", " two"):
            yield piece

    events = await told(FunctionModel(stream_function=stream))
    kinds = [type(event).__name__ for event in events]
    assert [kind for kind in kinds if kind != "FinalResultEvent"] == [
        "PartStartEvent",
        "PartDeltaEvent",
        "PartEndEvent",
    ]
    start, delta, end = (event for event in events if type(event).__name__ != "FinalResultEvent")
    assert isinstance(start, PartStartEvent)
    assert isinstance(start.part, TextPart)
    assert start.part.content == "one"
    assert isinstance(delta, PartDeltaEvent)
    assert isinstance(delta.delta, TextPartDelta)
    assert delta.delta.content_delta == " two"
    assert isinstance(end, PartEndEvent)
    assert end.index == start.index == delta.index


async def test_thinking_and_calls_have_parts_and_deltas_of_their_own() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[object]:
        yield {0: DeltaThinkingPart(content="hm")}
        yield {0: DeltaThinkingPart(content=" so")}
        yield {1: DeltaToolCall(name="look", json_args='{"a"', tool_call_id="c")}
        yield {1: DeltaToolCall(json_args=":1}")}

    model = FunctionModel(stream_function=stream)  # type: ignore[arg-type] # all its deltas
    starts = [event.part for event in await told(model) if isinstance(event, PartStartEvent)]
    assert [type(part) for part in starts] == [ThinkingPart, ToolCallPart]
    deltas = [event.delta for event in await told(model) if isinstance(event, PartDeltaEvent)]
    assert [type(delta) for delta in deltas] == [ThinkingPartDelta, ToolCallPartDelta]
    call = starts[1]
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.tool_call_id, call.args) == ("look", "c", '{"a"')


async def test_a_stream_can_be_asked_for_what_came_so_far_and_says_that_it_was_cut() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "one"
        yield " two"

    async with model_request_stream(FunctionModel(stream_function=stream), QUESTION) as streamed:
        assert isinstance(streamed, StreamedResponse)
        async for event in streamed:
            if isinstance(event, PartStartEvent):
                break
        assert (streamed.get().text, streamed.get().state) == ("one", "incomplete")
        async for _ in streamed:
            pass
        assert (streamed.get().text, streamed.get().state) == ("one two", "complete")


async def test_what_a_models_code_raises_comes_out_as_it_is() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "one"
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await told(FunctionModel(stream_function=stream))


async def test_the_librarys_own_test_model_streams_through_the_same_door() -> None:
    events = await told(TestModel(call_tools=[], custom_output_text="all is well"))
    said = [event.part for event in events if isinstance(event, PartEndEvent)]
    assert [part.content for part in said if isinstance(part, TextPart)] == ["all is well"]


def test_models_are_known_by_name_and_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = TestModel()
    assert infer_model(model) is model
    with pytest.raises(UserError, match="`OPENAI_API_KEY`"):
        infer_model("openai:gpt-5")
    with pytest.raises(UserError, match="Unknown model"):
        infer_model("nobody:nothing")
    with pytest.raises(ImportError, match=r"pydantic-ai-slim\[groq\]"):
        infer_model("groq:llama")


def test_messages_go_to_json_and_back_with_all_that_providers_need() -> None:
    messages: list[ModelMessage] = [
        ModelResponse(
            parts=[
                ThinkingPart("hm", signature="signed", provider_name="p"),
                ToolCallPart("look", '{"a": 1}', "c"),
            ],
            usage=RequestUsage(input_tokens=1),
            provider_name="p",
            metadata={"own": 1},
            state="interrupted",
        ),
        ModelRequest(
            parts=[
                ToolReturnPart(
                    "look",
                    {"seen": [1, None]},
                    "c",
                    outcome="retried",
                    retry=RetryInfo(cause="model_retry", attempt=1, max_retries=1),
                ),
                UserPromptPart("and"),
            ]
        ),
    ]
    encoded = ModelMessagesTypeAdapter.dump_json(messages)
    assert ModelMessagesTypeAdapter.validate_json(encoded) == messages


def test_a_call_without_a_result_is_repaired_as_interrupted() -> None:
    calls = ModelResponse(parts=[ToolCallPart("look", {}, "a"), ToolCallPart("look", {}, "b")])
    partly = ModelRequest(parts=[ToolReturnPart("look", "seen", "b"), UserPromptPart("go on")])
    repaired = repair_messages([*QUESTION, calls, partly])
    returns = [part for part in repaired[2].parts if isinstance(part, ToolReturnPart)]
    assert {part.tool_call_id: part.outcome for part in returns} == {
        "a": "interrupted",
        "b": "success",
    }
    assert isinstance(repaired[2].parts[-1], UserPromptPart)


def test_the_input_of_a_call_is_an_object_or_says_that_it_is_none() -> None:
    assert ToolCallPart("look", '{"a": 1}').args_as_dict(raise_if_invalid=True) == {"a": 1}
    assert ToolCallPart("look", None).args_as_dict(raise_if_invalid=True) == {}
    for broken in ("[1]", '{"a":'):
        with pytest.raises((ValueError, AssertionError)):
            ToolCallPart("look", broken).args_as_dict(raise_if_invalid=True)


async def test_a_tool_manager_checks_then_runs_a_call_and_lets_raw_errors_out() -> None:
    async def pick(ctx: RunContext[object], number: int) -> str:
        if number == 1:
            raise ModelRetry("not one")
        if number == 2:
            raise ToolFailed("not two")
        return f"{number} {ctx.tool_call_id} {ctx.deps}"

    manager = await manager_of(Tool[object](pick))
    assert manager.tools is not None
    assert manager.tools["pick"].max_retries == 1

    async def run(name: str, arguments: object) -> object:
        call = ToolCallPart(name, arguments, "c")  # type: ignore[arg-type] # wrong on purpose too
        validated = await manager.validate_tool_call(call, wrap_validation_errors=False)
        return await manager.execute_tool_call(validated, wrap_validation_errors=False)

    assert await run("pick", {"number": 3}) == "3 c None"
    with pytest.raises(ModelRetry, match="not one"):
        await run("pick", {"number": 1})
    with pytest.raises(ToolFailed, match="not two"):
        await run("pick", {"number": 2})
    with pytest.raises(ValidationError):
        await run("pick", {"number": "ten"})
    with pytest.raises(ModelRetry, match=r"Unknown tool name: 'pack'\. Available tools: 'pick'"):
        await run("pack", {})
    assert manager.failed_tools == set()


async def test_failures_are_carried_to_the_next_step_and_a_success_forgets_them() -> None:
    async def pick() -> None:
        return None

    manager = await manager_of(Tool[object](pick))
    manager.failed_tools.add("pick")
    manager = await manager.for_run_step(context(run_step=1, max_retries=1))
    assert manager.ctx is not None
    assert manager.ctx.retries == {"pick": 1}
    manager.succeeded_tools.add("pick")
    manager = await manager.for_run_step(context(run_step=2, max_retries=1))
    assert manager.ctx is not None
    assert manager.ctx.retries == {}


async def test_tools_that_need_a_person_are_known_before_they_run() -> None:
    async def pick() -> None:
        raise AssertionError("it must not run")

    manager = await manager_of(Tool[object](pick, requires_approval=True))
    validated = await manager.validate_tool_call(
        ToolCallPart("pick", {}, "c"), wrap_validation_errors=False
    )
    assert validated.tool is not None
    assert validated.tool.tool_def.defer
    assert issubclass(CallDeferred, Exception)
    assert issubclass(ApprovalRequired, Exception)


async def test_sequential_tools_are_known() -> None:
    async def pick() -> None:
        return None

    manager = await manager_of(Tool[object](pick, sequential=True))
    assert manager.is_sequential(ToolCallPart("pick", {}, "c"))


async def test_a_functions_schema_can_be_moved_to_another_function() -> None:
    async def add(a: int, b: int = 2) -> int:
        """Add.

        Args:
            a: The first.
            b: The second.
        """
        return a + b

    async def multiply(a: int, b: int = 2) -> int:
        return a * b

    original = Tool[object](add)
    schema = replace(original.function_schema, function=multiply)
    moved = Tool[object](
        multiply, name=original.name, description=original.description, function_schema=schema
    )
    assert moved.tool_def == original.tool_def
    assert original.function_schema.is_async
    assert await moved.function_schema.call({"a": 3, "b": 4}, context()) == 12


async def test_a_tool_from_a_schema_checks_its_input_with_the_given_function() -> None:
    def check(ctx: RunContext[object], /, **arguments: object) -> None:
        if "ctx" not in arguments:
            raise ModelRetry("give ctx")

    async def run(ctx: RunContext[object], /, **arguments: object) -> object:
        return arguments

    schema = {"type": "object", "properties": {"ctx": {"type": "string"}}}
    tool = Tool.from_schema(run, "run", "runs", schema, takes_ctx=True, args_validator=check)
    manager = await manager_of(tool)
    with pytest.raises(ModelRetry, match="give ctx"):
        await manager.validate_tool_call(ToolCallPart("run", {}), wrap_validation_errors=False)
    validated = await manager.validate_tool_call(
        ToolCallPart("run", {"ctx": "a"}), wrap_validation_errors=False
    )
    assert await manager.execute_tool_call(validated, wrap_validation_errors=False) == {"ctx": "a"}
    assert hasattr(GenerateToolJsonSchema, "generate")


async def test_toolsets_are_combined_and_tell_their_instructions() -> None:
    first = FunctionToolset[object](instructions="first")
    second = FunctionToolset[object](instructions="second")
    both = CombinedToolset([first, second])
    assert list(both.toolsets) == [first, second]
    given = await both.get_instructions(context())
    assert isinstance(given, list)
    assert [getattr(part, "content", part) for part in given] == ["first", "second"]
    async with both as entered:
        assert entered is both


def test_a_tool_may_say_more_than_its_result() -> None:
    more = ToolReturn(return_value=1, content="look closer", metadata={"a": 1})
    assert (more.return_value, more.content, more.metadata) == (1, "look closer", {"a": 1})


def test_usage_adds_up() -> None:
    usage = RunUsage()
    usage.incr(RequestUsage(input_tokens=2, output_tokens=3))
    usage.incr(RequestUsage(input_tokens=5))
    assert (usage.input_tokens, usage.output_tokens) == (7, 3)
