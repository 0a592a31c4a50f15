"""The step loop: chunks, concurrent tools, failures, limits and cancellation."""

import asyncio
import threading

import pytest
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from ramet.core.current import current, current_agent
from ramet.errors import ChatError
from ramet.testing.quiet import quiet
from ramet.testing.scripted_model import (
    Gate,
    Reasoning,
    ScriptedError,
    ScriptedModel,
    ToolCall,
)
from ramet.think.hooks import StepHooks, StepResult, ToolCallInfo, ToolCallResult
from ramet.think.step_loop import STEP_LIMIT
from tests.unit.think.loop_kit import Loop


def results(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """The tool results in the last message to the model."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return [part for part in last.parts if isinstance(part, ToolReturnPart)]


async def test_a_text_is_streamed_as_one_part_of_one_step() -> None:
    loop = Loop(ScriptedModel(["two words"]))
    assert await loop.run() == [
        {"type": "start-step"},
        {"type": "text-start", "id": "s0p0"},
        {"type": "text-delta", "id": "s0p0", "delta": "two"},
        {"type": "text-delta", "id": "s0p0", "delta": " words"},
        {"type": "text-end", "id": "s0p0"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]


async def test_reasoning_comes_before_the_text_as_a_part_of_its_own() -> None:
    loop = Loop(ScriptedModel([[Reasoning("let me see"), "seen"]]))
    await loop.run()
    assert loop.types == [
        "start-step",
        "reasoning-start",
        *["reasoning-delta"] * 3,
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]


async def test_a_tool_is_called_with_the_models_input_and_the_model_is_told_its_result() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    model = ScriptedModel([ToolCall("add", {"a": 1, "b": 2}), "three"])
    loop = Loop(model, [add])
    with model:
        await loop.run()
    assert loop.chunks[:6] == [
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "call_1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"a":1,"b":2}'},
        {
            "type": "tool-input-available",
            "toolCallId": "call_1",
            "toolName": "add",
            "input": {"a": 1, "b": 2},
        },
        {"type": "tool-output-available", "toolCallId": "call_1", "output": 3},
        {"type": "finish-step"},
    ]
    assert [part.content for part in results(model.requests[1].messages)] == [3]


@pytest.mark.behaviour("D5")
async def test_a_response_is_committed_before_its_tools_run_and_each_result_as_it_comes() -> None:
    gate = Gate()
    loop: Loop

    async def slow() -> str:
        loop.journal.log.append("slow runs")
        await gate.wait()
        return "slow"

    async def quick() -> str:
        loop.journal.log.append("quick runs")
        return "quick"

    loop = Loop(ScriptedModel([[ToolCall("slow"), ToolCall("quick")], "done"]), [slow, quick])
    turn = loop.begin()
    await gate.reached()
    await quiet()
    assert loop.journal.log == [
        "response 0 call_1 call_2",
        "slow runs",
        "quick runs",
        "result call_2",
    ]
    assert loop.of("tool-output-available") == [
        {"type": "tool-output-available", "toolCallId": "call_2", "output": "quick"}
    ]
    gate.open()
    await turn
    assert loop.journal.log[4:] == ["result call_1", "response 1"]


async def test_all_tool_calls_of_a_step_run_at_once_and_results_keep_the_call_order() -> None:
    gates = {topic: Gate() for topic in "abcde"}

    async def research(topic: str) -> str:
        await gates[topic].wait()
        return f"about {topic}"

    model = ScriptedModel([[ToolCall("research", {"topic": topic}) for topic in "abcde"], "all"])
    loop = Loop(model, [research])
    turn = loop.begin()
    for gate in gates.values():
        await gate.reached()
    for topic in "edcba":
        gates[topic].open()
        await quiet()
    await turn
    assert [chunk["output"] for chunk in loop.of("tool-output-available")] == [
        f"about {topic}" for topic in "edcba"
    ]
    assert [part.content for part in results(model.requests[1].messages)] == [
        f"about {topic}" for topic in "abcde"
    ]


async def test_a_cancelled_turn_stops_every_tool_that_runs() -> None:
    gate, stopped = Gate(), list[str]()

    async def research(topic: str) -> str:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            stopped.append(topic)
            raise
        return topic

    model = ScriptedModel([[ToolCall("research", {"topic": topic}) for topic in "abcde"], "all"])
    loop = Loop(model, [research])
    turn = loop.begin()
    await quiet()
    assert gate.waiting == 5
    turn.cancel()
    await quiet()
    assert turn.cancelled()
    assert sorted(stopped) == [*"abcde"]
    assert loop.journal.results == {}
    assert all(task.done() for task in loop.tasks.all)


async def test_what_came_before_the_cancel_is_kept_in_the_journal() -> None:
    gate = Gate()
    loop = Loop(ScriptedModel([["so far", gate, " so good"]]))
    turn = loop.begin()
    await gate.reached()
    turn.cancel()
    await quiet()
    assert turn.cancelled()
    assert [response.text for response in loop.journal.responses] == ["so far"]
    assert loop.journal.responses[0].state == "interrupted"


async def test_one_failing_tool_does_not_stop_the_others() -> None:
    async def good() -> str:
        return "fine"

    async def bad() -> str:
        raise LookupError("no such page")

    model = ScriptedModel([[ToolCall("bad"), ToolCall("good")], "one of two"])
    loop = Loop(model, [good, bad])
    await loop.run()
    assert loop.of("tool-output-error") == [
        {"type": "tool-output-error", "toolCallId": "call_1", "errorText": "no such page"}
    ]
    assert [(part.content, part.outcome) for part in results(model.requests[1].messages)] == [
        ("no such page", "failed"),
        ("fine", "success"),
    ]
    assert loop.said == "one of two"


async def test_a_synchronous_tool_runs_in_a_thread_and_knows_its_agent_and_call() -> None:
    seen: list[object] = []

    def where() -> str:
        found = current()
        assert found is not None
        seen.extend([threading.current_thread() is threading.main_thread(), current_agent()])
        seen.extend([found.request_id, found.tool_call_id])
        return "there"

    loop = Loop(ScriptedModel([ToolCall("where"), "ok"]), [where])
    await loop.run()
    assert seen == [False, "the agent", "request", "call_1"]


async def test_a_cancelled_turn_does_not_wait_for_the_thread_of_a_tool() -> None:
    release, began = threading.Event(), threading.Event()

    def blocking() -> str:
        began.set()
        release.wait(30)
        return "late"

    loop = Loop(ScriptedModel([ToolCall("blocking")]), [blocking])
    turn = loop.begin()
    await asyncio.to_thread(began.wait)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    release.set()
    await quiet()
    assert loop.journal.results == {}


async def test_the_models_error_is_raised_after_what_it_said() -> None:
    loop = Loop(ScriptedModel([["partial", ScriptedError("scripted failure")]]))
    with pytest.raises(ScriptedError, match="scripted failure"):
        await loop.run()
    assert loop.said == "partial"
    assert [response.text for response in loop.journal.responses] == ["partial"]


async def test_at_the_step_limit_the_turn_ends_with_a_sentence() -> None:
    async def again() -> str:
        return "again"

    loop = Loop(ScriptedModel([ToolCall("again")] * 3), [again], max_steps=3)
    await loop.run()
    assert loop.said == STEP_LIMIT.format(limit=3)
    assert loop.types[-1] == "finish"
    assert loop.types.count("start-step") == loop.types.count("finish-step") == 4
    assert loop.journal.responses[-1].text == loop.said


async def test_a_tool_that_asks_for_another_try_gets_one() -> None:
    async def pick(number: int) -> str:
        if number > 9:
            raise ModelRetry("at most 9, please")
        return "picked"

    model = ScriptedModel(
        [ToolCall("pick", {"number": 10}), ToolCall("pick", {"number": 9}), "done"]
    )
    loop = Loop(model, [pick])
    with model:
        await loop.run()
    retried = results(model.requests[1].messages)[0]
    assert (retried.content, retried.outcome) == ("at most 9, please", "retried")
    assert loop.of("tool-output-error")[0]["errorText"] == "at most 9, please"


async def test_a_tool_that_is_used_wrongly_once_too_often_ends_the_turn() -> None:
    async def pick() -> str:
        raise ModelRetry("not like this")

    loop = Loop(ScriptedModel([ToolCall("pick"), ToolCall("pick")]), [pick])
    with pytest.raises(ChatError, match="could not use the tool 'pick': not like this"):
        await loop.run()
    assert len(loop.of("tool-output-error")) == 2


async def test_a_success_in_between_gives_the_model_its_tries_back() -> None:
    async def pick(number: int) -> int:
        if number > 9:
            raise ModelRetry("at most 9")
        return number

    numbers = [10, 1, 10, 2]
    model = ScriptedModel([*(ToolCall("pick", {"number": n}) for n in numbers), "done"])
    loop = Loop(model, [pick])
    with model:
        await loop.run()
    assert loop.said == "done"


async def test_the_tools_own_limit_of_tries_counts() -> None:
    async def pick() -> str:
        raise ModelRetry("no")

    model = ScriptedModel([ToolCall("pick")] * 4)
    loop = Loop(model, [Tool(pick, max_retries=3)])
    with pytest.raises(ChatError), model:
        await loop.run()
    assert len(model.requests) == 4


async def test_an_input_that_does_not_fit_comes_back_to_the_model_with_the_reason() -> None:
    async def pick(number: int) -> int:
        return number

    model = ScriptedModel([ToolCall("pick", {"number": "ten"}), "sorry"])
    loop = Loop(model, [pick])
    await loop.run()
    assert loop.of("tool-output-error")[0]["errorText"] == (
        "number: Input should be a valid integer, unable to parse string as an integer"
    )
    retried = results(model.requests[1].messages)[0]
    assert retried.outcome == "retried"
    assert retried.retry is not None
    assert retried.retry.cause == "validation_error"


async def test_a_tool_that_does_not_exist_comes_back_to_the_model() -> None:
    async def research() -> str:
        return "found"

    model = ScriptedModel([[ToolCall("serach"), ToolCall("research")], "found it"])
    loop = Loop(model, [research])
    await loop.run()
    assert loop.of("tool-output-error")[0]["errorText"] == (
        "Unknown tool name: 'serach'. Available tools: 'research'"
    )
    assert [part.outcome for part in results(model.requests[1].messages)] == ["retried", "success"]


async def test_a_tool_may_fail_for_good_without_spending_a_try() -> None:
    async def pick() -> str:
        raise ToolFailed("sold out")

    model = ScriptedModel([ToolCall("pick"), ToolCall("pick"), ToolCall("pick"), "sorry"])
    loop = Loop(model, [pick])
    with model:
        await loop.run()
    assert [part.outcome for part in results(model.requests[3].messages)] == ["failed"]


async def test_a_tool_that_was_cancelled_by_something_else_only_failed() -> None:
    async def impatient() -> str:
        raise asyncio.CancelledError

    loop = Loop(ScriptedModel([ToolCall("impatient"), "well"]), [impatient])
    await loop.run()
    assert loop.of("tool-output-error")[0]["errorText"] == "The tool was cancelled"
    assert loop.said == "well"


async def test_a_result_that_is_no_json_is_the_tools_failure() -> None:
    async def odd() -> object:
        return {"socket": object()}

    loop = Loop(ScriptedModel([ToolCall("odd"), "well"]), [odd])
    await loop.run()
    text = str(loop.of("tool-output-error")[0]["errorText"])
    assert text.startswith("The tool 'odd' returned something that cannot be written as JSON")


@pytest.mark.behaviour("D8")
async def test_a_call_id_that_was_used_before_is_replaced_on_the_wire_only() -> None:
    async def echo(context: RunContext[object], text: str) -> str:
        found = current()
        assert found is not None
        return f"{text} {context.tool_call_id == found.tool_call_id}"

    model = ScriptedModel(
        [
            [
                ToolCall("echo", {"text": "a"}, id="call_0"),
                ToolCall("echo", {"text": "b"}, "call_0"),
            ],
            ToolCall("echo", {"text": "c"}, id="call_0"),
            "done",
        ]
    )
    loop = Loop(model, [echo], taken=["call_0"])
    await loop.run()
    wire = [str(chunk["toolCallId"]) for chunk in loop.of("tool-input-start")]
    assert len(set(wire)) == 3
    assert "call_0" not in wire
    assert all(each.startswith("call_0-") for each in wire)
    assert [chunk["toolCallId"] for chunk in loop.of("tool-input-available")] == wire
    assert {str(chunk["toolCallId"]) for chunk in loop.of("tool-output-available")} == {*wire}
    assert {part.tool_call_id for part in results(model.requests[1].messages)} == {"call_0"}
    assert [part.content for part in results(model.requests[1].messages)] == ["a True", "b True"]


async def test_a_sequential_tool_runs_alone() -> None:
    log: list[str] = []
    gate = Gate()

    async def alone() -> None:
        log.append("alone begins")
        await gate.wait()
        log.append("alone ends")

    async def other() -> None:
        log.append("other")

    model = ScriptedModel([[ToolCall("other"), ToolCall("alone"), ToolCall("other")], "done"])
    loop = Loop(model, [Tool(alone, sequential=True), other])
    turn = loop.begin()
    await gate.reached()
    await quiet()
    assert log == ["other", "alone begins"]
    gate.open()
    await turn
    assert log == ["other", "alone begins", "alone ends", "other"]


async def test_toolsets_are_opened_for_the_turn_and_mixed_with_functions() -> None:
    async def own() -> str:
        return "own"

    toolset = FunctionToolset[object](instructions="Use `given` first.")

    @toolset.tool_plain
    async def given() -> str:
        return "given"

    model = ScriptedModel([[ToolCall("own"), ToolCall("given")], "both"])
    loop = Loop(model, [own, toolset])
    await loop.run()
    assert sorted(model.requests[0].tool_names) == ["given", "own"]
    assert [part.content for part in results(model.requests[1].messages)] == ["own", "given"]


async def test_the_model_is_given_the_instructions_each_time() -> None:
    async def look() -> str:
        return "seen"

    model = ScriptedModel([ToolCall("look"), "done"])
    await Loop(model, [look], instructions=["Be brief.", "Be kind."]).run()
    assert [asked.instructions for asked in model.requests] == ["Be brief.\n\nBe kind."] * 2


async def test_hooks_are_told_of_steps_and_calls() -> None:
    told: list[object] = []

    async def look(at: str) -> str:
        return f"{at} seen"

    async def before_call(call: ToolCallInfo) -> None:
        told.append(("before", call.tool_call_id, call.tool_name, call.input))

    def after_call(call: ToolCallInfo, result: ToolCallResult) -> None:
        told.append(("after", call.tool_call_id, result.output, result.error))

    def finished(result: StepResult) -> None:
        told.append(("finished", result.step, result.response.text))

    hooks = StepHooks(
        before_step=lambda step: told.append(("step", step)),
        before_tool_call=before_call,
        after_tool_call=after_call,
        on_step_finish=finished,
    )
    await Loop(ScriptedModel([ToolCall("look", {"at": "it"}), "done"]), [look], hooks=hooks).run()
    assert told == [
        ("step", 0),
        ("finished", 0, None),
        ("before", "call_1", "look", {"at": "it"}),
        ("after", "call_1", "it seen", None),
        ("step", 1),
        ("finished", 1, "done"),
    ]


async def test_a_hook_may_refuse_a_tool_call() -> None:
    ran: list[str] = []

    async def delete() -> None:
        ran.append("delete")

    def refuse(call: ToolCallInfo) -> None:
        raise PermissionError(f"{call.tool_name} is not allowed here")

    hooks = StepHooks(before_tool_call=refuse)
    loop = Loop(ScriptedModel([ToolCall("delete"), "ok"]), [delete], hooks=hooks)
    await loop.run()
    assert ran == []
    assert loop.of("tool-output-error")[0]["errorText"] == "delete is not allowed here"


async def test_a_tool_sees_what_its_agent_gave_as_dependencies() -> None:
    async def who(context: RunContext[str]) -> str:
        return context.deps

    model = ScriptedModel([ToolCall("who"), "ok"])
    loop = Loop(model, [who], agent="me")
    await loop.run()
    assert loop.of("tool-output-available")[0]["output"] == "me"
