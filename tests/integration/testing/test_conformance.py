"""The conformance suite: every kind of child passes it, and a broken one fails at its rule."""

import asyncio
import unittest
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition

import ramet
from ramet.testing import (
    AgentToolConformance,
    ChildScenario,
    Ending,
    Gate,
    ScriptedChild,
    ScriptedError,
    ScriptedModel,
    assert_agent_tool_child,
    check_agent_tool_child,
)
from ramet.testing.conformance import CHECKS
from ramet.testing.scripted_child import ChildScript
from ramet.testing.scripted_model import Answer
from tests.integration.testing.broken_children import BROKEN
from tests.integration.testing.plain_child import Plain, scenario

PATIENT = 5.0


class Stage:
    """The gate that slow runs wait at, made anew for each check."""

    gate: Gate

    def prepare(self) -> None:
        self.gate = Gate()

    def release(self) -> None:
        self.gate.open()

    def scenario(self) -> ChildScenario:
        return ChildScenario(
            slow_input="slow",
            failing_input="fail",
            prepare=self.prepare,
            release=self.release,
            timeout=PATIENT,
        )


class Chatting(ramet.AIChatAgent):
    stage: ClassVar[Stage] = Stage()

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        asked = str(turn.body["agentToolInput"])
        yield "one "
        if asked == "slow":
            await self.stage.gate.wait()
        if asked == "fail":
            raise ScriptedError("it failed")
        yield "two"


class Thinking(ramet.Think):
    stage: ClassVar[Stage] = Stage()

    def get_model(self) -> Model:
        return ScriptedModel.by_rule(self.answer)

    def answer(self, messages: list[ModelMessage], tools: list[ToolDefinition]) -> Answer:
        request = messages[0]
        assert isinstance(request, ModelRequest)
        asked = next(part for part in request.parts if isinstance(part, UserPromptPart)).content
        if asked == "slow":
            return ["one ", self.stage.gate, "two"]
        return ["one ", ScriptedError("it failed") if asked == "fail" else "two"]


class Scripted(ScriptedChild):
    stage: ClassVar[Stage] = Stage()

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: ramet.AbortSignal | None = None
    ) -> ramet.Inspection:
        waits = [self.stage.gate] if input == "slow" else []
        ending = Ending(status="error", error="it failed") if input == "fail" else Ending(output=1)
        pieces: list[Any] = ["one", ramet.Milestone(name="half", sequence=0, at=1), *waits, "two"]
        self._script = ChildScript(pieces=pieces, ending=ending)  # type: ignore[misc]
        return await super().start_agent_tool_run(input, run_id=run_id, signal=signal)


class TestAIChatAgent(AgentToolConformance):
    child = Chatting
    scenario = Chatting.stage.scenario()


class TestThink(AgentToolConformance):
    child = Thinking
    scenario = Thinking.stage.scenario()


class TestScriptedChild(AgentToolConformance):
    child = Scripted
    scenario = Scripted.stage.scenario()


class TestPlainChild(AgentToolConformance):
    child = Plain
    scenario = scenario(Plain, timeout=PATIENT)


def checking(cls: type[Plain], name: str) -> Any:
    """The test of one check for a class, as pytest would call it."""
    body = {"child": cls, "scenario": scenario(cls)}
    suite = type("TestBroken", (AgentToolConformance,), body)()
    return getattr(suite, f"test_{name}")


@pytest.mark.parametrize("name", BROKEN)
def test_a_child_that_breaks_a_rule_fails_the_check_of_that_rule(name: str) -> None:
    cls = BROKEN[name]
    cls.count = 0  # type: ignore[attr-defined] # what `Shared` counts
    with pytest.raises(AssertionError):
        checking(cls, name)()


def test_every_check_was_shown_to_fail() -> None:
    assert set(BROKEN) == {check.name for check in CHECKS}


async def test_a_report_has_each_check_with_its_rule_and_what_went_wrong() -> None:
    report = await check_agent_tool_child(BROKEN["reports_a_failure"], scenario(Plain))
    assert [result.name for result in report.results] == [check.name for check in CHECKS]
    assert not report.passed
    failed = {result.name: result.detail for result in report.failed}
    assert failed["reports_a_failure"] == "RuntimeError: it failed"
    assert "passed starts_once (A run id names one run, however often it is started.)" in str(
        report
    )


async def test_what_a_scenario_leaves_out_is_skipped_and_says_so() -> None:
    report = await check_agent_tool_child(Plain)
    skipped = {result.name: result.detail for result in report.results if result.status != "passed"}
    assert skipped["reports_a_failure"] == "the scenario has no failing_input"
    assert "the scenario has no slow_input" in skipped["goes_on_unobserved"]
    assert report.passed


async def test_an_assertion_names_every_rule_that_is_broken() -> None:
    await assert_agent_tool_child(Plain)
    with pytest.raises(AssertionError, match="numbers_chunks_from_0") as raised:
        await assert_agent_tool_child(BROKEN["numbers_chunks_from_0"], scenario(Plain))
    assert "reads_after_a_sequence" in str(raised.value)


def test_a_child_without_a_tail_has_the_checks_of_tails_skipped() -> None:
    fetched = type("Fetched", (Plain,), {"tail_agent_tool_run": None})
    with pytest.raises(unittest.SkipTest, match="no tail_agent_tool_run"):
        checking(fetched, "tails_to_the_end")()
    checking(fetched, "serves_its_parent")()


async def test_a_child_without_the_methods_fails_once_and_is_checked_no_further() -> None:
    class Deaf(ramet.Agent[None]):
        pass

    report = await check_agent_tool_child(Deaf)
    [failed] = report.failed
    assert failed.name == "has_the_methods"
    assert "no async start_agent_tool_run" in failed.detail
    others = {result.detail for result in report.results if result is not failed}
    assert others == {"the child lacks methods: see has_the_methods"}


def test_it_runs_without_pytest() -> None:
    report = asyncio.run(check_agent_tool_child(Plain, scenario(Plain, timeout=PATIENT)))
    assert report.passed, str(report)
