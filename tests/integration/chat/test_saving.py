"""Turns that code starts: `save_messages`, and what is around it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.chat.chat_agent import AIChatAgent
from ramet.chat.turn import Chunk, Turn, TurnResult
from ramet.core.signals import AbortController
from ramet.errors import TurnInsideTurn, UnknownModelResult
from ramet.observability.channels import Event, subscribe
from ramet.testing.harness import Harness
from tests.integration.chat.support import END, Fed, ask, assistant, said, transcripts, user


class Nested(AIChatAgent[object]):
    """Waits for a turn from inside one, and starts one after each answer."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.followed: list[TurnResult] = []

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[Chunk]:
        try:
            await self.save_messages([user("inner", "again")])
        except TurnInsideTurn as error:
            self.refused.append(str(error))
        yield "done"

    async def on_chat_response(self, result: object) -> None:
        if not self.followed and len(self.messages) == 2:
            self.followed.append(await self.save_messages([user("next", "go on")]))


async def test_saved_messages_are_answered_and_the_result_is_returned(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    agent.give("Hello", END)
    result = await agent.save_messages([user("u1", "hi")])
    assert (result.status, result.error, result.continuation) == ("completed", None, False)
    assert result.message == agent.messages[-1]
    assert agent.turns[0].trigger == "programmatic"
    await harness.settle()
    assert transcripts(client)[0] == [user("u1", "hi")]


async def test_a_text_is_saved_as_one_message_of_the_user(harness: Harness) -> None:
    agent = await harness.agent(Fed, "a")
    agent.give("Hello", END)
    result = await agent.save_messages("hi")
    await agent.persist_messages("bye")
    assert result.status == "completed"
    asked, answer, stored = agent.messages
    assert asked == user(str(asked["id"]), "hi")
    assert answer == result.message
    assert stored == user(str(stored["id"]), "bye")


@pytest.mark.behaviour("TQ-007")
async def test_saving_nothing_runs_a_turn_on_what_is_there(harness: Harness) -> None:
    agent = await harness.agent(Fed, "a")
    agent.give("Hello", END, "again", END)
    await agent.save_messages([user("u1", "hi")])
    result = await agent.save_messages([])
    assert result.status == "completed"
    assert len(agent.messages) == 3


@pytest.mark.behaviour("TQ-010")
async def test_a_failed_turn_is_a_result_not_an_exception(harness: Harness) -> None:
    agent = await harness.agent(Fed, "a")
    agent.give("partial", RuntimeError("no"))
    result = await agent.save_messages([user("u1", "hi")])
    assert (result.status, result.error) == ("error", "no")


@pytest.mark.behaviour("TQ-005")
async def test_waiting_for_a_turn_inside_a_turn_is_refused_and_after_it_allowed(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Nested], data_dir=tmp_path) as harness:
        agent = await harness.agent(Nested, "a")
        result = await agent.save_messages([user("u1", "hi")])
        assert result.status == "completed"
        await harness.settle()
        assert "would never begin" in agent.refused[0]
        assert [follower.status for follower in agent.followed] == ["completed"]


@pytest.mark.behaviour("TQ-011")
async def test_a_signal_aborted_before_means_no_work_and_later_ends_the_turn(
    harness: Harness,
) -> None:
    agent = await harness.agent(Fed, "a")
    early = AbortController()
    early.abort("never mind")
    result = await agent.save_messages([user("u1", "hi")], signal=early.signal)
    assert (result.status, agent.turns) == ("aborted", [])
    late = AbortController()
    saving = asyncio.ensure_future(agent.save_messages([user("u2", "hi")], signal=late.signal))
    agent.give("partial")
    await harness.settle()
    late.abort("enough")
    result = await saving
    assert result.status == "aborted"
    assert agent.messages[-1]["parts"] == [said("partial")]
    assert late.signal.listener_count == 0


async def test_cancelling_the_caller_cancels_the_turn(harness: Harness) -> None:
    agent = await harness.agent(Fed, "a")
    saving = asyncio.ensure_future(agent.save_messages([user("u1", "hi")]))
    agent.give("partial")
    await harness.settle()
    saving.cancel()
    await harness.settle()
    assert saving.cancelled()
    assert [result.status for result in agent.results] == ["aborted"]


@pytest.mark.behaviour("TQ-003", "TQ-004")
async def test_stable_means_that_no_turn_runs_or_waits(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    assert await agent.wait_until_stable()
    await ask(client)
    waiting = asyncio.ensure_future(agent.wait_until_stable(timeout=5))
    await harness.advance(6)
    assert await waiting is False
    waiting = asyncio.ensure_future(agent.wait_until_stable())
    agent.give(END)
    assert await waiting is True


@pytest.mark.behaviour("TQ-012")
async def test_a_turn_reports_its_start_and_finish(harness: Harness) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    agent = await harness.agent(Fed, "a")
    agent.give("Hello", END)
    result = await agent.save_messages([user("u1", "hi")])
    unsubscribe()
    common = {"requestId": result.request_id, "trigger": "programmatic", "admission": "queue"}
    assert [(event.type, event.payload) for event in events] == [
        ("chat:turn:start", common),
        ("chat:turn:finish", {**common, "status": "completed", "durationMs": 0}),
    ]


@pytest.mark.behaviour("AT-024")
async def test_messages_can_be_stored_without_a_turn(harness: Harness) -> None:
    agent = await harness.agent(Fed, "a")
    client = await harness.connect(Fed, "a")
    await agent.persist_messages([user("u1", "one"), assistant("a1", said("two"))])
    await agent.persist_messages([user("u1", "ONE"), user("u2", "three")])
    await harness.settle()

    kept = [user("u1", "ONE"), assistant("a1", said("two")), user("u2", "three")]
    assert agent.messages == transcripts(client)[-1] == kept
    assert agent.turns == []
    incomplete: Any = {"id": "u3", "role": "user"}
    with pytest.raises(UnknownModelResult, match="A message needs an id, a role and parts"):
        await agent.persist_messages([user("u4", "fine"), incomplete])
    assert agent.messages == kept


@pytest.mark.behaviour("AT-024")
@pytest.mark.parametrize(
    ("family", "verbs"),
    [
        (ramet.AIChatAgent, ["persist_messages", "on_chat_message"]),
        (ramet.Think, ["run_turn", "submit_messages", "chat", "add_messages"]),
    ],
)
def test_each_family_has_its_ways_to_run_turns(family: type, verbs: list[str]) -> None:
    shared = ["save_messages", "continue_last_turn", "cancel_chat", "cancel_all_chats"]
    for verb in [*shared, "on_chat_response", *verbs]:
        assert callable(getattr(family, verb))
