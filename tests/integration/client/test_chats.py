"""Chats and runs over real WebSockets that are cut."""

import asyncio
from collections.abc import Callable

import pytest

from ramet.client import AgentClient, AgentToolEvents, ChatReply, ClientOptions
from ramet.core.json import JsonObject
from ramet.errors import RemoteCallFailed
from ramet.protocol import RunState
from ramet.protocol.messages import text_of
from ramet.protocol.ui_message import UIMessage
from tests.integration.client.proxy import Proxy, proxied

QUICK = ClientOptions(first_delay=0.02, max_delay=0.1)
WORDS = "alpha beta gamma delta epsilon zeta eta theta"
FAMILIES = ["ChatAgent", "ThinkAgent"]

each_family = pytest.mark.parametrize("agent", FAMILIES)


def chat(address: str, agent: str, *sub: tuple[str, str], name: str = "ada") -> AgentClient:
    return AgentClient(f"http://{address}", agent=agent, name=name, sub=sub, options=QUICK)


def said(words: int) -> str:
    return " ".join(f"w{number}" for number in range(1, words + 1))


def set_on(event: asyncio.Event, **wanted: object) -> Callable[[JsonObject], None]:
    """Sets the event when a frame comes that has these fields."""

    def look(frame: JsonObject) -> None:
        if wanted.items() <= frame.items():
            event.set()

    return look


def types(chunks: list[JsonObject]) -> list[object]:
    return [chunk["type"] for chunk in chunks]


@each_family
async def test_a_question_is_answered_chunk_by_chunk(address: str, agent: str) -> None:
    async with chat(address, agent) as client:
        reply = await client.chat("say 5")
        chunks = [chunk async for chunk in reply]
        outcome = await reply.result()

        assert types(chunks)[:3] == ["start", "start-step", "text-start"]
        assert types(chunks)[-1] == "finish"
        assert (outcome.status, outcome.text) == ("completed", said(5))
        assert client.messages[-1] == outcome.message
        assert [message["id"] for message in client.messages[:1]] == list(outcome.message_ids)


@each_family
async def test_a_conversation_keeps_what_was_said(address: str, agent: str) -> None:
    async with chat(address, agent) as client:
        for words in (1, 2):
            await (await client.chat(f"say {words}")).result()
    async with chat(address, agent) as later:
        await (await later.chat("say 3")).result()
        texts = [text_of(message) for message in later.messages]

    assert texts == ["say 1", said(1), "say 2", said(2), "say 3", said(3)]


@each_family
async def test_a_failed_answer_says_so(address: str, agent: str) -> None:
    async with chat(address, agent) as client:
        outcome = await (await client.chat("fail")).result()

    assert (outcome.status, outcome.error) == ("error", "scripted failure")


@each_family
async def test_an_answer_is_cancelled_and_keeps_what_was_said(address: str, agent: str) -> None:
    async with chat(address, agent) as client:
        reply = await client.chat("say 500 20")
        async for text in reply.texts():
            if "w3" in text:
                await reply.cancel()
        outcome = await reply.result()

    assert outcome.status == "aborted"
    assert outcome.text.startswith("w1 w2 w3")


@each_family
async def test_a_chat_is_cleared_for_everybody(address: str, agent: str) -> None:
    async with chat(address, agent) as one, chat(address, agent) as other:
        await (await one.chat("say 1")).result()
        cleared = asyncio.Event()
        other.on_frame(set_on(cleared, type="cf_agent_chat_clear"))
        await one.clear_chat()
        await cleared.wait()
        assert (one.messages, other.messages) == ((), ())


async def test_an_agent_without_a_chat_says_so(address: str) -> None:
    async with AgentClient(f"http://{address}", agent="CounterAgent", name="c") as client:
        reply = await client.chat("hi")
        with pytest.raises(RemoteCallFailed, match="The agent does not chat"):
            await reply.result()
        with pytest.raises(RemoteCallFailed, match="The agent does not chat"):
            await client.resume()
        assert await client.call("increment") == 1


@each_family
@pytest.mark.behaviour("CW-005", "CW-020")
async def test_an_answer_survives_cuts_without_a_chunk_twice_or_missing(
    address: str, agent: str
) -> None:
    async with proxied(address) as proxy, chat(proxy.address, agent) as client:
        reply = await client.chat("say 60 10")
        chunks = await cut_at(proxy, reply, {5, 20, 21, 50})
        outcome = await reply.result()

    texts = [str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta"]
    assert "".join(texts) == outcome.text == said(60)
    assert types(chunks).count("start") == 1
    assert outcome.status == "completed"
    assert proxy.connections >= 4


async def cut_at(proxy: Proxy, reply: ChatReply, places: set[int]) -> list[JsonObject]:
    """Read an answer, and cut the connection after so many chunks."""
    chunks: list[JsonObject] = []
    async for chunk in reply:
        chunks.append(chunk)
        if len(chunks) in places:
            proxy.cut()
    return chunks


@each_family
@pytest.mark.behaviour("CW-009")
async def test_an_answer_that_ends_while_the_client_is_away_is_fetched(
    address: str, agent: str
) -> None:
    async with (
        proxied(address) as proxy,
        chat(proxy.address, agent) as client,
        chat(address, agent) as near,
    ):
        reply = await client.chat("say 30 10")
        await anext(reply)
        ended = asyncio.Event()
        near.on_frame(set_on(ended, done=True))
        proxy.admits = False
        proxy.cut()
        await ended.wait()
        proxy.admits = True
        rest = [chunk async for chunk in reply]
        outcome = await reply.result()

    texts = [str(chunk["delta"]) for chunk in rest if chunk["type"] == "text-delta"]
    assert "".join(texts) == outcome.text == said(30)


@each_family
async def test_a_client_that_comes_into_an_answer_knows_the_chat_before_it_asks(
    address: str, agent: str
) -> None:
    async with chat(address, agent) as first:
        await (await first.chat("say 1")).result()
        reply = await first.chat("say 20 10")
        await anext(reply)
        async with chat(address, agent) as second:
            outcome = await (await second.chat("say 2")).result()
            texts = [text_of(message) for message in second.messages]

    assert outcome.text == said(2)
    assert texts == ["say 1", said(1), "say 20 10", said(20), "say 2", said(2)]


@each_family
async def test_two_questions_at_once_survive_a_cut(address: str, agent: str) -> None:
    async with proxied(address) as proxy, chat(proxy.address, agent) as client:
        first, second = await client.chat("say 20 10"), await client.chat("say 5 10")
        await cut_at(proxy, first, {6})
        outcomes = [await first.result(), await second.result()]

    assert [outcome.text for outcome in outcomes] == [said(20), said(5)]


@each_family
@pytest.mark.behaviour("CW-014")
async def test_another_program_takes_up_the_answer(address: str, agent: str) -> None:
    async with chat(address, agent) as asks, chat(address, agent) as idle:
        assert await idle.resume() is None
        reply = await asks.chat("say 30 10")
        await anext(reply)
        async with chat(address, agent) as takes:
            taken = await takes.resume()
            assert taken is not None
            chunks = [chunk async for chunk in taken]
            outcome = await taken.result()

    assert types(chunks)[0] == "start"
    assert outcome.text == said(30)
    assert outcome.request_id == reply.request_id


async def test_the_body_reaches_the_turn_and_a_message_may_have_any_parts(address: str) -> None:
    message: UIMessage = {
        "id": "mine",
        "role": "user",
        "parts": [{"type": "text", "text": "say 2"}],
    }
    async with chat(address, "ChatAgent") as client:
        outcome = await (await client.chat([message], body={"model": "fast"})).result()

    assert outcome.message_ids == ("mine",)
    assert outcome.text == said(2)


@each_family
@pytest.mark.behaviour("AT-161", "D27")
async def test_runs_survive_cuts_and_their_children_can_be_visited(
    address: str, agent: str
) -> None:
    async with proxied(address) as proxy, chat(proxy.address, agent) as client:
        runs = AgentToolEvents(client)
        reply = await client.chat("compare bees ants")
        cuts = 0

        def cut(_: object) -> None:
            nonlocal cuts
            if cuts < 3 and sum(len(run.milestones) for run in runs.runs_by_id.values()) == cuts:
                cuts += 1
                proxy.cut()

        runs.on_change(cut)
        outcome = await reply.result()
        await until(runs, lambda: all(run.status == "completed" for run in calls(runs)))
        both = calls(runs)

        assert outcome.text == "bees: bees summary | ants: ants summary"
        assert cuts >= 2
        for run in both:
            assert [part["text"] for part in run.parts if part["type"] == "text"] == [WORDS]
            assert [one.name for one in run.milestones] == ["halfway"]
            async with chat(address, agent, (run.agent_type, run.run_id)) as child:
                assert child.identity is not None
                assert child.identity.name == run.run_id
                assert text_of(child.messages[-1]) == WORDS


def calls(runs: AgentToolEvents) -> list[RunState]:
    return [run for group in runs.runs_by_tool_call_id.values() for run in group]


async def until(runs: AgentToolEvents, wanted: Callable[[], bool]) -> None:
    """Wait for the runs to be as wanted."""
    news = asyncio.Event()
    stop = runs.on_change(lambda _: news.set())
    while not wanted():
        news.clear()
        await news.wait()
    stop()


async def test_a_run_without_a_tool_call_is_unbound(address: str) -> None:
    async with AgentClient(f"http://{address}", agent="CounterAgent", name="c") as client:
        runs = AgentToolEvents(client)
        assert await client.call("start_report", "bees") == "bees summary"
        (run,) = runs.unbound_runs
        assert (run.status, run.summary) == ("completed", "bees summary")
        async with AgentClient(f"http://{address}", agent="CounterAgent", name="c") as later:
            replayed = AgentToolEvents(later)
            await until(
                replayed, lambda: any(r.status == "completed" for r in replayed.unbound_runs)
            )
            assert replayed.unbound_runs[0].parts == run.parts
