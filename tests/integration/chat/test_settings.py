"""What is kept of a chat, what it waits for, and what it reports of failures."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet.core.json import JsonObject
from ramet.errors import InvalidOptions
from ramet.observability.channels import Event, subscribe
from ramet.testing.harness import Harness
from tests.integration.chat.support import END, Fed, ask, assistant, transcripts, user


class Brief(Fed):
    max_persisted_messages: int | None = 3


class Wrong(Fed):
    max_persisted_messages: int | None = 0


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Fed, Brief, Wrong], data_dir=tmp_path) as harness:
        yield harness


async def test_only_the_newest_messages_are_kept(harness: Harness) -> None:
    client = await harness.connect(Brief, "a")
    agent = await harness.agent(Brief, "a")
    for number in range(3):
        agent.give("ok", END)
        await agent.save_messages([user(f"u{number}", "hi")])
    await harness.settle()
    kept = [message["id"] for message in agent.messages]
    assert (len(kept), kept[1]) == (3, "u2")
    assert transcripts(client)[-1] == agent.messages
    await harness.evict(Brief, "a")
    assert [message["id"] for message in (await harness.agent(Brief, "a")).messages] == kept


async def test_a_question_that_waits_is_kept_however_few_are(harness: Harness) -> None:
    agent = await harness.agent(Brief, "a")
    background = agent._ramet_chat.ports.context.background
    for number in range(5):
        saving = agent.save_messages([user(f"u{number}", "hi")])
        background.start(saving, name=f"saving {number}")
    await harness.settle()
    for _ in range(5):
        agent.give("ok", END)
        await harness.settle()
    assert [turn.messages[-1]["id"] for turn in agent.turns] == ["u0", "u1", "u2", "u3", "u4"]
    assert len(agent.messages) == 3


async def test_a_limit_that_is_none_fails_the_opening(harness: Harness) -> None:
    with pytest.raises(InvalidOptions, match="max_persisted_messages is 1 or more, or None, not 0"):
        await harness.agent(Wrong, "a")


CALL = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "where", "input": {}}


@pytest.mark.behaviour("TQ-004")
async def test_an_answer_that_waits_for_the_browser_is_not_stable(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    assert not agent.has_pending_interaction()
    agent.give(CALL)
    await ask(client)
    assert not agent.has_pending_interaction()
    agent.give(END)
    await harness.settle()
    assert agent.has_pending_interaction()
    waiting = asyncio.ensure_future(agent.wait_until_stable(timeout=5))
    await harness.advance(6)
    assert await waiting is False
    waiting = asyncio.ensure_future(agent.wait_until_stable())
    await harness.settle()
    assert not waiting.done()
    agent.give("never mind", END)
    await agent.save_messages([user("u2", "leave it")])
    assert await waiting is True
    assert not agent.has_pending_interaction()


@pytest.mark.behaviour("TQ-004")
@pytest.mark.parametrize(
    ("state", "pending"),
    [
        ("input-streaming", False),
        ("input-available", True),
        ("approval-requested", True),
        ("approval-responded", False),
        ("output-available", False),
        ("output-error", False),
    ],
)
async def test_only_open_calls_of_the_last_answer_are_pending(
    harness: Harness, state: str, *, pending: bool
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    part: JsonObject = {"type": "tool-where", "toolCallId": "c1", "state": state, "input": {}}
    messages = [user("u1", "hi"), assistant("asst_1", part)]
    await client.send({"type": "cf_agent_chat_messages", "messages": messages})
    assert agent.has_pending_interaction() is pending
    await client.send({"type": "cf_agent_chat_messages", "messages": [*messages, user("u2", "x")]})
    assert not agent.has_pending_interaction()


@pytest.mark.behaviour("OB-007")
async def test_a_request_that_fails_reports_where(harness: Harness) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    agent = await harness.agent(Fed, "a")
    agent.give("partial", RuntimeError("no"))
    result = await agent.save_messages([user("u1", "hi")])
    unsubscribe()
    failed = [event.payload for event in events if event.type == "chat:request:failed"]
    assert failed == [{"requestId": result.request_id, "stage": "stream"}]
