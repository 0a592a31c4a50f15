"""What a page has answered leads to one more turn, not two: a turn that saw it is that turn."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject
from ramet.protocol.messages import parts_of, text_of
from ramet.testing import Gate, Harness, TestClient
from tests.integration.chat.support import END, Fed, request, user
from tests.integration.chat.test_client_tools import (
    approval,
    call_parts,
    called,
    result,
    verdict,
)

WEATHER: JsonObject = {"name": "getWeather"}
FINISH_STEP: JsonObject = {"type": "finish-step"}


class Recovering(Fed):
    """Goes on after a crash, once `decides` is open."""

    chat_recovery: ramet.ChatRecovery | bool = True
    decides: ClassVar[Gate | None] = None

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        if self.decides is not None:
            await self.decides.wait()


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    monkeypatch.setattr(Recovering, "decides", None)
    async with Harness(agents=[Recovering], data_dir=tmp_path) as harness:
        yield harness


async def streaming(harness: Harness, *chunks: object) -> tuple[TestClient, Recovering]:
    """A page and an agent whose first answer has called, and streams still."""
    client = await harness.connect(Recovering, "a")
    agent = await harness.agent(Recovering, "a")
    await client.send(request("r1", [user("u-r1", "hi")], clientTools=[WEATHER]))
    agent.give({"type": "start-step"}, *(chunks or called()))
    await harness.settle()
    return client, agent


async def crashed(harness: Harness) -> tuple[TestClient, Recovering]:
    """The page and the agent in the next process."""
    await harness.crash()
    await harness.restart()
    client, agent = await harness.connect(Recovering, "a"), await harness.agent(Recovering, "a")
    await harness.settle()
    return client, agent


async def ended(harness: Harness, agent: Recovering, *chunks: object) -> None:
    """Let the turn that runs end with these, and wait for what comes then."""
    agent.give(*chunks, END)
    await harness.advance(1)


def triggers(agent: Recovering) -> list[str]:
    return [turn.trigger for turn in agent.turns]


def seen(turn: Turn) -> list[tuple[object, object]]:
    """The tool calls of the answer that a turn goes on with, as its producer sees them."""
    return [(part["toolCallId"], part["state"]) for part in call_parts(turn.messages[-1])]


@pytest.mark.parametrize("closed", [(), (FINISH_STEP,)], ids=["in its step", "after its step"])
async def test_what_a_lost_turn_was_told_before_the_crash_is_answered_once(
    harness: Harness, closed: tuple[JsonObject, ...]
) -> None:
    client, agent = await streaming(harness, *called(), *closed)
    await client.send(result())
    _, agent = await crashed(harness)
    (turn,) = agent.turns
    assert seen(turn) == [("c1", "output-available")]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["recovery-continue"]
    assert text_of(agent.messages[-1]) == "Sunny."


async def test_what_a_lost_turn_is_told_before_it_goes_on_is_answered_once(
    harness: Harness,
) -> None:
    Recovering.decides = Gate()
    client, _ = await streaming(harness, *called(), *called("c2"))
    await client.send(result())
    client, agent = await crashed(harness)
    await client.send(result("c2"))
    Recovering.decides.open()
    await harness.advance(1)
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["auto-continuation"]
    assert seen(agent.turns[0]) == [("c1", "output-available"), ("c2", "output-available")]
    assert text_of(agent.messages[-1]) == "Sunny."


async def test_all_calls_of_a_step_that_were_answered_before_a_crash_are_answered_once(
    harness: Harness,
) -> None:
    calls = [*called(), *called("c2", "danger"), approval("c2"), *called("c3", "ours")]
    client, _ = await streaming(harness, *calls)
    await client.send(result())
    await client.send(verdict(approved=True, call_id="c2"))
    _, agent = await crashed(harness)
    (turn,) = agent.turns
    assert seen(turn) == [
        ("c1", "output-available"),
        ("c2", "approval-responded"),
        ("c3", "output-error"),
    ]
    done: JsonObject = {"type": "tool-output-available", "toolCallId": "c2", "output": "done"}
    await ended(harness, agent, done, "Sunny.")
    assert triggers(agent) == ["recovery-continue"]
    states = [part["state"] for part in call_parts(agent.messages[-1])]
    assert states == ["output-available", "output-available", "output-error"]


async def test_a_refusal_before_a_crash_is_answered_once(harness: Harness) -> None:
    client, _ = await streaming(harness, *called(name="danger"), approval())
    await client.send(verdict(approved=False))
    _, agent = await crashed(harness)
    assert seen(agent.turns[0]) == [("c1", "output-denied")]
    await ended(harness, agent, "Then not.")
    assert triggers(agent) == ["recovery-continue"]


async def test_an_answer_before_two_crashes_is_answered_once(harness: Harness) -> None:
    client, _ = await streaming(harness)
    await client.send(result())
    _, agent = await crashed(harness)
    agent.give("It ")
    await harness.settle()
    _, agent = await crashed(harness)
    assert seen(agent.turns[0]) == [("c1", "output-available")]
    await ended(harness, agent, "is sunny.")
    assert triggers(agent) == ["recovery-continue"]


@pytest.mark.behaviour("AC-004")
async def test_what_the_turn_that_goes_on_is_told_itself_is_answered_once_behind_it(
    harness: Harness,
) -> None:
    client, _ = await streaming(harness)
    await client.send(result())
    client, agent = await crashed(harness)
    agent.give({"type": "start-step"}, *called("c9"))
    await harness.settle()
    await client.send(result("c9"))
    await ended(harness, agent, FINISH_STEP)
    assert triggers(agent) == ["recovery-continue", "auto-continuation"]
    assert seen(agent.turns[0]) == [("c1", "output-available")]
    assert seen(agent.turns[1])[1:] == [("c9", "output-available")]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["recovery-continue", "auto-continuation"]


async def test_what_the_turn_that_goes_on_was_told_before_it_was_lost_too_is_answered_once(
    harness: Harness,
) -> None:
    client, _ = await streaming(harness)
    await client.send(result())
    client, agent = await crashed(harness)
    agent.give({"type": "start-step"}, *called("c9"))
    await harness.settle()
    await client.send(result("c9"))
    _, agent = await crashed(harness)
    assert seen(agent.turns[0]) == [("c1", "output-available"), ("c9", "output-available")]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["recovery-continue"]


async def test_what_a_lost_continuation_was_told_is_seen_and_answered_once(
    harness: Harness,
) -> None:
    client, agent = await streaming(harness)
    await ended(harness, agent, FINISH_STEP)
    await client.send(result())
    await harness.advance(0.05)
    agent.give({"type": "start-step"}, "One more:", *called("c2"), *called("c3", "ours"))
    await harness.settle()
    await client.send(result("c2"))
    _, agent = await crashed(harness)
    assert seen(agent.turns[0]) == [
        ("c1", "output-available"),
        ("c2", "output-available"),
        ("c3", "output-error"),
    ]
    assert text_of(agent.turns[0].messages[-1]) == "One more:"
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["recovery-continue"]
    types = [part["type"] for part in parts_of(agent.messages[-1])]
    assert types.count("tool-getWeather") == 2


async def test_an_answer_that_was_whole_when_it_was_lost_goes_on_for_what_it_was_told(
    harness: Harness,
) -> None:
    client, _ = await streaming(harness)
    await client.send(result())
    agent = await harness.agent(Recovering, "a")
    agent.give(FINISH_STEP, {"type": "finish"})
    await harness.settle()
    _, agent = await crashed(harness)
    await harness.advance(1)
    assert triggers(agent) == ["auto-continuation"]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["auto-continuation"]


async def test_an_answer_to_a_lost_call_while_the_next_turn_streams_stands_and_is_answered_once(
    harness: Harness,
) -> None:
    client, _ = await streaming(harness, *called(name="unheardOf"))
    client, agent = await crashed(harness)
    assert seen(agent.turns[0]) == [("c1", "output-error")]
    agent.give("Wait. ")
    await harness.settle()
    await client.send(result())
    await ended(harness, agent)
    assert triggers(agent) == ["recovery-continue", "auto-continuation"]
    assert [part["output"] for part in call_parts(agent.turns[1].messages[-1])] == ["sunny"]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["recovery-continue", "auto-continuation"]
    assert [part["output"] for part in call_parts(agent.messages[-1])] == ["sunny"]


@pytest.mark.behaviour("CR-026")
async def test_what_a_turn_that_stood_still_was_told_is_answered_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recovering, "chat_stream_stall_timeout", 20)
    client, agent = await streaming(harness)
    await client.send(result())
    agent.give({"type": "data-note", "data": 1})
    await harness.advance(21)
    assert seen(agent.turns[1]) == [("c1", "output-available")]
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["ws-chat", "recovery-continue"]


async def test_what_a_turn_that_ran_out_of_memory_was_told_is_answered_once(
    harness: Harness,
) -> None:
    client, agent = await streaming(harness)
    await client.send(result())
    agent.give(MemoryError())
    await harness.advance(1)
    await ended(harness, agent, "Sunny.")
    assert triggers(agent) == ["ws-chat", "recovery-continue"]
    assert seen(agent.turns[1]) == [("c1", "output-available")]


async def test_what_code_goes_on_with_meanwhile_is_answered_once(harness: Harness) -> None:
    client, agent = await streaming(harness)
    await ended(harness, agent, FINISH_STEP)
    await client.send(result())
    going_on = asyncio.create_task(agent.continue_last_turn())
    await harness.settle()
    await ended(harness, agent, "Sunny.")
    assert (await going_on).status == "completed"
    assert triggers(agent) == ["ws-chat", "programmatic"]


async def test_the_turn_that_goes_on_has_the_tools_that_the_page_named_with_its_answer(
    harness: Harness,
) -> None:
    client, _ = await streaming(harness)
    await client.send(result(clientTools=[{"name": "newest"}]))
    _, agent = await crashed(harness)
    assert [tool["name"] for tool in agent.turns[0].client_tools] == ["newest"]
