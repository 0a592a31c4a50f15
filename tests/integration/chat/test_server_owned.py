"""The family whose server owns the transcript, as `Think` does (PROTOCOL 2.1, 4.6, 4.8)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from ramet.agent.runtime import AgentRuntime
from ramet.chat.family import THINK, ChatFamily
from ramet.chat.runtime import ChatRuntime
from ramet.protocol import types
from ramet.protocol.ui_message import UIMessage
from ramet.testing.harness import Harness
from tests.integration.chat.support import END, Fed, ask, kinds, request, said, user


class ServerOwnedRuntime(ChatRuntime):
    family: ClassVar[ChatFamily] = THINK


class ServerOwned(Fed):
    """Fed by hand, with the rules of `Think`."""

    _runtime_type: ClassVar[type[AgentRuntime]] = ServerOwnedRuntime


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[ServerOwned], data_dir=tmp_path) as harness:
        yield harness


@pytest.mark.behaviour("CW-003", "CW-019")
async def test_a_new_client_of_an_idle_agent_is_sent_the_transcript_first(
    harness: Harness,
) -> None:
    agent = await harness.agent(ServerOwned, "a")
    agent.give("Hello", END)
    await agent.save_messages([user("u1", "hi")])
    client = await harness.connect(ServerOwned, "a")
    assert kinds(client)[:2] == [types.CHAT_MESSAGES, types.IDENTITY]
    assert client.frames[0]["connect"] is True
    assert client.frames[0]["messages"] == agent.messages


@pytest.mark.behaviour("CW-019")
async def test_during_a_stream_the_offer_comes_instead(harness: Harness) -> None:
    asking = await harness.connect(ServerOwned, "a")
    await ask(asking)
    client = await harness.connect(ServerOwned, "a")
    assert kinds(client)[:2] == [types.STREAM_RESUMING, types.IDENTITY]
    assert client.of_type(types.CHAT_MESSAGES) == []


async def test_a_submit_deletes_nothing_and_changes_no_answer(harness: Harness) -> None:
    client = await harness.connect(ServerOwned, "a")
    agent = await harness.agent(ServerOwned, "a")
    await ask(client)
    agent.give("first", END)
    await harness.settle()
    forged: UIMessage = {**agent.messages[-1], "parts": [said("forged")]}
    await client.send(request("r2", [forged, user("u2", "more")]))
    agent.give("second", END)
    await harness.settle()
    assert [message["parts"] for message in agent.messages] == [
        user("u-r1", "hi")["parts"],
        [said("first")],
        user("u2", "more")["parts"],
        [said("second")],
    ]


async def test_regenerating_takes_the_old_answer_away(harness: Harness) -> None:
    client = await harness.connect(ServerOwned, "a")
    agent = await harness.agent(ServerOwned, "a")
    await ask(client)
    agent.give("first", END)
    await harness.settle()
    await client.send(request("r2", [user("u-r1", "hi")], trigger="regenerate-message"))
    assert agent.messages == [user("u-r1", "hi")]


async def test_a_transcript_pushed_by_a_client_is_ignored(harness: Harness) -> None:
    client = await harness.connect(ServerOwned, "a")
    agent = await harness.agent(ServerOwned, "a")
    await client.send({"type": types.CHAT_MESSAGES, "messages": [user("u1", "forged")]})
    assert agent.messages == []


@pytest.mark.behaviour("AT-182")
async def test_a_cancelled_run_tells_its_reason(harness: Harness) -> None:
    child = await harness.agent(ServerOwned, "run-1")
    await child.start_agent_tool_run("bees", run_id="run-1")
    await child.cancel_agent_tool_run("run-1", "changed my mind")
    run = await child.inspect_agent_tool_run("run-1")
    assert run is not None
    assert (run.status, run.error) == ("aborted", "changed my mind")
