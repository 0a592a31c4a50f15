"""Lost turns beside what else a crash leaves: queued calls, schedules, submissions, clears."""

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import ClassVar, TypeAlias

import pytest

import ramet
from ramet.protocol.messages import text_of
from ramet.testing import Gate, Harness
from ramet.testing.scripted_model import Answer, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat
from tests.integration.think.test_page_tools import ask


class Busy(Assistant):
    """Has a tool that takes long and may run again, and says things by itself."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()

    works: ClassVar[Gate | None] = None
    """Where the tool waits."""
    thinks: ClassVar[Gate | None] = None
    """Where the decision about a lost turn waits."""
    says: ClassVar[str] = ""
    """What is said while it is decided."""

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        if self.says:
            await self.save_messages(self.says)
        if self.thinks is not None:
            await self.thinks.wait()

    async def say(self, text: str) -> None:
        await self.save_messages(text)

    async def go_on(self, _: str) -> None:
        await self.continue_last_turn()

    def get_tools(self) -> list[object]:
        async def slow() -> str:
            """Take your time."""
            if self.works is not None:
                await self.works.wait()
            return "done"

        return [ramet.idempotent(slow), *self.more_tools]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    Busy.works, Busy.thinks, Busy.says = Gate(), None, ""
    Busy.more_tools = ()
    async with Harness(agents=[Busy], data_dir=tmp_path) as running:
        yield running


def scripted(*answers: Answer) -> ScriptedModel:
    Busy.script = ScriptedModel([ToolCall("slow", {}, "c1"), *answers])
    return Busy.script


async def asked(host: Harness) -> Chat:
    chat = Chat(await host.connect(Busy, "a"))
    await ask(chat, "Go")
    await host.settle()
    return chat


async def crashed(host: Harness, *, thinks: bool = False) -> None:
    """Kill the process, and start the next one; what was due is due then."""
    await host.crash()
    Busy.works, Busy.thinks = None, Gate() if thinks else None
    host.clock._start_ms += 20_000
    await host.restart()
    await host.settle()


async def decided(host: Harness) -> None:
    if Busy.thinks is not None:
        Busy.thinks.open()
    await host.advance(60)


async def said(host: Harness) -> list[tuple[object, str]]:
    """Who said what."""
    return [(each["role"], text_of(each)) for each in (await host.agent(Busy, "a")).messages]


Begins: TypeAlias = Callable[[Busy], Coroutine[object, object, object]]


async def queued(agent: Busy) -> object:
    return await agent.queue(agent.say, "more")


async def scheduled(agent: Busy) -> object:
    return await agent.schedule(5, agent.say, "more")


async def submitted(agent: Busy) -> object:
    return await agent.submit_messages("more")


@pytest.mark.behaviour("CR-017", "TQ-001")
@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.parametrize("begins", [queued, scheduled, submitted])
async def test_a_lost_answer_goes_on_before_what_code_asks(
    host: Harness, begins: Begins, *, thinks: bool
) -> None:
    scripted("The answer.", "More.", "And more.")
    await asked(host)
    await begins(await host.agent(Busy, "a"))
    await crashed(host, thinks=thinks)
    await decided(host)
    found = await said(host)
    assert found[:2] == [("user", "Go"), ("assistant", "The answer.")]
    assert set(found[2:]) >= {("user", "more"), ("assistant", "More.")}


async def test_code_goes_on_with_an_answer_once_that_was_taken_up(host: Harness) -> None:
    scripted("The answer.", " And so on.")
    await asked(host)
    agent = await host.agent(Busy, "a")
    await agent.schedule(5, agent.go_on, "")
    await crashed(host, thinks=True)
    await decided(host)
    assert await said(host) == [("user", "Go"), ("assistant", "The answer.\n And so on.")]


async def test_a_hook_that_decides_about_a_lost_turn_does_not_wait_for_it(host: Harness) -> None:
    scripted("Something else.")
    await asked(host)
    Busy.says = "Never mind"
    await crashed(host)
    await decided(host)
    assert (await said(host))[-1] == ("assistant", "Something else.")


@pytest.mark.behaviour("TQ-014")
@pytest.mark.parametrize("gone_on", [False, True])
async def test_a_chat_that_is_cleared_while_a_turn_is_taken_up_forgets_it_and_takes_the_next(
    host: Harness, *, gone_on: bool
) -> None:
    model = scripted("Anew.")
    await asked(host)
    agent = await host.agent(Busy, "a")
    await agent.queue(agent.say, "more")
    await crashed(host, thinks=True)
    if gone_on:
        Busy.works = Gate()
        await decided(host)
    agent = await host.agent(Busy, "a")
    await agent.clear_messages()
    for gate in (Busy.works, Busy.thinks):
        if gate is not None:
            gate.open()
    await host.advance(60)
    later = [("user", "more"), ("assistant", "Anew.")]  # it waited while nothing was decided
    assert await said(host) == ([] if gone_on else later)
    assert len(model.requests) == (1 if gone_on else 2)


async def test_what_on_start_asks_does_not_wait_for_a_lost_turn_which_waits_for_it(
    host: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asks(agent: Busy) -> None:
        await agent.save_messages("good morning")

    scripted("Good morning.")
    await asked(host)
    monkeypatch.setattr(Busy, "on_start", asks)
    await crashed(host)
    await decided(host)
    assert (await said(host))[-2:] == [("user", "good morning"), ("assistant", "Good morning.")]
