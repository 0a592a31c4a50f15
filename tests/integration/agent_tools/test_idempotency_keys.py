"""Runs that stand for one thing, such as a refund: the same key is the same run in every turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ramet
from ramet.core.json import JsonObject
from ramet.errors import InvalidArguments, RunBelongsToAnother
from ramet.testing import Harness


class Refunder(ramet.AIChatAgent[None]):
    """Pays, and counts how often it did."""

    paid = 0

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        Refunder.paid += 1
        yield f"payment {Refunder.paid}"


class Other(ramet.AIChatAgent[None]):
    """Another class of child."""


class Desk(ramet.AIChatAgent[None]):
    """Refunds whatever ticket it is told of, in the amount that it is told."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        ticket, amount = ramet.text_of(turn.messages[-1]).split()
        yield await self.refund(ticket, {"amount": int(amount), "ticket": ticket})

    async def refund(self, ticket: str, order: JsonObject) -> str:
        try:
            result = await self.run_agent_tool(Refunder, input=order, idempotency_key=ticket)
        except RunBelongsToAnother as error:
            return str(error)
        return str(result.summary)

    async def mistake(self) -> None:
        await self.run_agent_tool(Refunder, input=1, run_id="a", idempotency_key="b")

    async def other(self, ticket: str) -> None:
        await self.run_agent_tool(Other, input=1, idempotency_key=ticket)

    async def let_go(self, ticket: str) -> ramet.DetachedRun:
        return await self.run_agent_tool(
            Refunder, input="all of it", idempotency_key=ticket, detached=True
        )


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Refunder.paid = 0
    async with Harness(agents=[Desk], sub_agents=[Refunder, Other], data_dir=tmp_path) as started:
        yield started


async def said(harness: Harness, question: str) -> str:
    desk = await harness.agent(Desk, "d")
    result = await desk.save_messages(question)
    assert result.message is not None
    return ramet.text_of(result.message)


@pytest.mark.behaviour("AT-050", "D8")
async def test_a_later_turn_gets_the_run_that_has_the_key(harness: Harness) -> None:
    assert await said(harness, "T1 5") == "payment 1"
    assert await said(harness, "T1 5") == "payment 1"
    assert await said(harness, "T2 5") == "payment 2"
    await harness.crash()
    await harness.restart()
    assert await said(harness, "T1 5") == "payment 1"
    assert Refunder.paid == 2
    rows = harness.rows(Desk, "d", "SELECT run_id FROM cf_agent_tool_runs ORDER BY rowid")
    assert [row["run_id"] for row in rows] == ["T1", "T2"]


@pytest.mark.behaviour("AT-050")
async def test_a_key_with_another_input_is_refused_and_nothing_is_done(harness: Harness) -> None:
    assert await said(harness, "T1 5") == "payment 1"
    assert await said(harness, "T1 50") == (
        "The idempotency key 'T1' was used with another input: what it stands for has been asked "
        "already; inspect_agent_tool tells what came of it"
    )
    desk = await harness.agent(Desk, "d")
    assert await desk.refund("T1", {"ticket": "T1", "amount": 50}) != "payment 1"
    assert await desk.refund("T1", {"ticket": "T1", "amount": 5}) == "payment 1"
    assert Refunder.paid == 1


async def test_a_key_of_another_class_is_refused(harness: Harness) -> None:
    await said(harness, "T1 5")
    desk = await harness.agent(Desk, "d")
    with pytest.raises(RunBelongsToAnother, match="'T1' is a run of Refunder, not of Other"):
        await desk.other("T1")


async def test_a_key_and_a_run_id_are_not_given_together(harness: Harness) -> None:
    desk = await harness.agent(Desk, "d")
    with pytest.raises(InvalidArguments, match="leave out run_id"):
        await desk.mistake()
    assert desk.list_agent_tool_runs() == []


async def test_a_detached_run_is_started_once_for_its_key(harness: Harness) -> None:
    desk = await harness.agent(Desk, "d")
    first = await desk.let_go("T9")
    await harness.settle()
    again = await desk.let_go("T9")
    await harness.settle()
    assert (first.run_id, again.run_id) == ("T9", "T9")
    assert Refunder.paid == 1


@pytest.mark.behaviour("D8")
async def test_a_run_id_that_an_earlier_turn_used_points_to_keys(tmp_path: Path) -> None:
    class Plain(Desk):
        async def refund(self, ticket: str, order: JsonObject) -> str:
            try:
                await self.run_agent_tool(Refunder, input=order, run_id=ticket)
            except RunBelongsToAnother as error:
                return str(error)
            return "paid"

    async with Harness(agents=[Plain], sub_agents=[Refunder], data_dir=tmp_path) as plain:
        desk = await plain.agent(Plain, "p")
        await desk.save_messages("T1 5")
        result = await desk.save_messages("T1 5")
    assert result.message is not None
    assert ramet.text_of(result.message) == (
        "The run id 'T1' was used in an earlier turn: give this run an id of its own, or an "
        "idempotency_key if it is to be the same run in every turn"
    )
