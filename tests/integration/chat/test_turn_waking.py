"""A turn that is lost with the process goes on although nobody opens its agent (section 34)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.chat.turn import Turn
from ramet.protocol.messages import text_of, user_message
from ramet.testing import Harness
from ramet.testing.harness import Below

NEEDED = 30
"""Seconds after a crash at which its turn has been taken up."""


class Speaker(ramet.AIChatAgent[object]):
    """Says two words; until it is let go it gets no further than the first."""

    held: ClassVar[bool] = True
    opened: ClassVar[list[str]] = []

    def on_start(self) -> None:
        self.opened.append(self.name)

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        yield "one "
        if self.held:
            await asyncio.get_running_loop().create_future()
        yield "two"


class Unsaved(Speaker):
    """Leaves turns that were lost as they are."""

    chat_recovery: ramet.ChatRecovery | bool = False


class Lead(ramet.AIChatAgent[object]):
    """Has a `Speaker` below it answer."""

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[object]:
        run = await self.run_agent_tool(Speaker, input="say", run_id="run")
        yield str(run.summary)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    Speaker.held, Speaker.opened = True, []
    classes = [Speaker, Unsaved, Lead]
    async with Harness(agents=classes, sub_agents=[Speaker], data_dir=tmp_path) as running:
        yield running


def wake_ups(host: Harness) -> list[object]:
    """When roots are woken next."""
    database = host.host._database
    assert database is not None
    return [row["due_ms"] for row in database.query("SELECT due_ms FROM ramet_wakeups")]


def turns(host: Harness, cls: type = Speaker, sub: Below = ()) -> list[tuple[object, object]]:
    """The status and the outcome of each turn, on disk."""
    query = "SELECT status, outcome FROM cf_chat_turns ORDER BY rowid"
    return [(row["status"], row["outcome"]) for row in host.rows(cls, "a", query, sub=sub)]


def said(agent: ramet.AIChatAgent[object]) -> list[str]:
    return [text_of(message) for message in agent.messages]


async def ask(host: Harness, cls: type[ramet.AIChatAgent[object]], sub: Below = ()) -> None:
    """Ask something, and let the answer go as far as it goes."""
    agent = await host.agent(cls, "a", sub)
    work = agent.save_messages([user_message("hi", id="u1")])
    agent._ramet_chat.ports.context.background.start(work, name="ask")
    await host.settle()


async def below(host: Harness) -> Below:
    """A `Speaker` below another."""
    await (await host.agent(Speaker, "a")).sub_agent(Speaker, "b")
    return ((Speaker, "b"),)


async def crashed(host: Harness) -> None:
    """Die, and come back with nobody there; what was held goes on next time."""
    await host.crash()
    Speaker.held, Speaker.opened = False, []
    await host.restart()
    assert len(host.host.instances) == 0


@pytest.mark.behaviour("CR-001", "D5", "D6")
async def test_a_lost_turn_wakes_its_agent(host: Harness) -> None:
    await ask(host, Speaker)
    await crashed(host)
    await host.advance(NEEDED)
    assert turns(host) == [("ended", "recovering"), ("ended", "completed")]
    assert said(await host.agent(Speaker, "a")) == ["hi", "one two"]
    assert wake_ups(host) == []


@pytest.mark.behaviour("CR-001", "D5", "D6", "SC-040")
async def test_a_lost_turn_of_a_sub_agent_wakes_it_too(host: Harness) -> None:
    sub = await below(host)
    await ask(host, Speaker, sub)
    await crashed(host)
    await host.advance(NEEDED)
    assert turns(host, sub=sub) == [("ended", "recovering"), ("ended", "completed")]
    assert Speaker.opened == ["a", "b"]
    assert wake_ups(host) == []


@pytest.mark.behaviour("CR-001", "AT-321", "D8", "D9")
async def test_a_parent_and_the_child_that_works_for_it_go_on_together(host: Harness) -> None:
    await ask(host, Lead)
    await crashed(host)
    await host.advance(NEEDED)
    assert turns(host, Lead)[-1] == ("ended", "completed")
    child = ((Speaker, "run"),)
    assert turns(host, Lead, child) == [("ended", "recovering"), ("ended", "completed")]
    assert said(await host.agent(Lead, "a")) == ["hi", "one two"]
    query = "SELECT status FROM cf_agent_tool_runs"
    assert host.rows(Lead, "a", query) == [{"status": "completed"}]
    assert wake_ups(host) == []


@pytest.mark.behaviour("CR-001", "CR-002", "D4")
async def test_without_recovery_the_wake_up_ends_the_lost_turn(host: Harness) -> None:
    await ask(host, Unsaved)
    await crashed(host)
    await host.advance(NEEDED)
    assert turns(host, Unsaved) == [("orphaned", "aborted")]
    assert said(await host.agent(Unsaved, "a")) == ["hi", "one "]
    assert wake_ups(host) == []


@pytest.mark.behaviour("CR-001")
async def test_a_turn_that_lives_long_is_woken_for_at_any_time(host: Harness) -> None:
    await ask(host, Speaker)
    for _ in range(5):
        await host.advance(NEEDED / 2 + 1)
        (due_ms,) = wake_ups(host)
        assert isinstance(due_ms, int)
        assert 0 < due_ms - host.clock.now_ms() <= NEEDED * 1000
    assert Speaker.opened == ["a"]
    await crashed(host)
    await host.advance(NEEDED)
    assert turns(host)[-1] == ("ended", "completed")


@pytest.mark.behaviour("RS-014", "RS-015", "D14")
async def test_old_streams_go_with_the_next_turn_and_wake_nobody(host: Harness) -> None:
    Speaker.held = False
    await ask(host, Speaker)
    await host.evict(Speaker, "a")
    await host.advance(3600)
    query = "SELECT count(*) AS streams FROM cf_ai_chat_stream_metadata"
    assert (Speaker.opened, host.rows(Speaker, "a", query)) == (["a"], [{"streams": 1}])
    await ask(host, Speaker)
    assert host.rows(Speaker, "a", query) == [{"streams": 1}], "the new one"


@pytest.mark.behaviour("CR-001", "D14")
async def test_an_agent_whose_turns_are_over_is_not_woken_for_them(host: Harness) -> None:
    Speaker.held = False
    sub = await below(host)
    for place in ((), sub):
        await ask(host, Speaker, place)
    assert wake_ups(host) == []
    await host.evict(Speaker, "a", sub=sub)
    await host.evict(Speaker, "a")
    await host.advance(10 * NEEDED)
    assert Speaker.opened == ["a", "b"]


@pytest.mark.behaviour("CR-001", "CR-014", "CR-019", "TQ-014", "TQ-015")
@pytest.mark.parametrize("how", ["cleared", "cancelled", "given up"])
async def test_a_turn_that_is_to_go_on_no_more_wakes_nobody(host: Harness, how: str) -> None:
    await ask(host, Speaker)
    agent = await host.agent(Speaker, "a")
    if how == "cleared":
        await agent.clear_messages()
    elif how == "cancelled":
        agent._ramet_chat.turns.cancel_all()
    else:
        await host.crash()
        host.rows(Speaker, "a", "DELETE FROM cf_ai_chat_agent_messages")
        await host.restart()
        await host.agent(Speaker, "a")
    await host.settle()
    assert wake_ups(host) == []


@pytest.mark.behaviour("CR-021")
async def test_a_give_up_that_was_cut_off_wakes_its_agent(
    host: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    hang = asyncio.Event()

    async def on_exhausted(given_up: ramet.ChatRecoveryExhausted) -> None:
        told.append(given_up.reason)
        await hang.wait()

    recovery = ramet.ChatRecovery(no_progress_timeout=0, on_exhausted=on_exhausted)
    monkeypatch.setattr(Speaker, "chat_recovery", recovery)
    await ask(host, Speaker)
    for _ in range(2):
        await crashed(host)
        Speaker.held = True
        await host.advance(NEEDED + 1)
    assert told == ["no_progress_timeout"]
    assert turns(host)[-1] == ("ended", "error")
    await crashed(host)
    hang.set()
    await host.advance(NEEDED)
    assert told == ["no_progress_timeout"] * 2
    assert wake_ups(host) == []
