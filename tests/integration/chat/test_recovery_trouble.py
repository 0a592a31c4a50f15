"""Lost turns that meet trouble: other turns, full disks, errors, odd records, old records."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.chat.recovery_policy import INCIDENT_PREFIX, KEPT_MS
from ramet.chat.recovery_store import DELETED_AT_ONCE
from ramet.observability.channels import Event, subscribe
from ramet.protocol.messages import text_of
from ramet.storage import Database
from ramet.testing import Harness
from tests.integration.chat.support import END, Fed, ask, endings, probe, request, said, user

INCIDENTS = "SELECT key, value FROM cf_chat_recovery WHERE key LIKE 'cf:chat-recovery:incident:%'"


class Troubled(Fed):
    """Does in `on_chat_recovery` what a test wants."""

    chat_recovery: ramet.ChatRecovery | bool = ramet.ChatRecovery()
    trouble: ClassVar[Callable[["Troubled"], object] | None] = None
    sets_in_start: ClassVar[ramet.ChatRecovery | None] = None

    def on_start(self) -> None:
        if self.sets_in_start is not None:
            self.chat_recovery = self.sets_in_start

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> object:
        made = None if Troubled.trouble is None else Troubled.trouble(self)
        if isinstance(made, asyncio.Event):
            await made.wait()
            return None
        return made

    def on_error(self, error: BaseException, connection: object = None) -> None:
        ERRORS.append(error)


ERRORS: list[BaseException] = []


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Troubled.chat_recovery, Troubled.trouble = ramet.ChatRecovery(), None
    Troubled.sets_in_start = None
    ERRORS.clear()
    async with Harness(agents=[Troubled], data_dir=tmp_path) as harness:
        yield harness


@pytest.fixture
def told() -> Iterator[list[Event]]:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    yield events
    unsubscribe()


def steps(told: list[Event]) -> list[tuple[str, object]]:
    """What was told of recovery, with its reason."""
    return [
        (event.type.rpartition(":")[2], event.payload["reason"])
        for event in told
        if event.type.startswith("chat:recovery:")
    ]


async def lost(harness: Harness, *given: object) -> Troubled:
    """An agent that has just been opened and has lost the turn that gave this."""
    client = await harness.connect(Troubled, "a")
    agent = await harness.agent(Troubled, "a")
    await ask(client)
    agent.give(*given)
    await harness.settle()
    await harness.crash()
    await harness.restart()
    agent = await harness.agent(Troubled, "a")
    await harness.settle()
    return agent


def turns(harness: Harness) -> list[tuple[object, object]]:
    rows = harness.rows(Troubled, "a", "SELECT status, outcome FROM cf_chat_turns ORDER BY rowid")
    return [(row["status"], row["outcome"]) for row in rows]


def database_of(agent: Fed) -> Database:
    return agent._ramet_chat.ports.context.database


def refuse_writes(agent: Fed) -> None:
    """Let the file take nothing more, as on a full disk."""
    database_of(agent).run("PRAGMA query_only = 1")


@pytest.mark.behaviour("CR-016", "CR-009")
async def test_other_turns_put_an_attempt_off_until_there_were_too_many(
    harness: Harness, told: list[Event]
) -> None:
    Troubled.chat_recovery = ramet.ChatRecovery(max_attempts=3)
    hold = asyncio.Event()
    Troubled.trouble = lambda _: hold
    agent = await lost(harness, "par")
    client = await harness.connect(Troubled, "a")
    await client.send(request("r2", [*agent.messages, user("u2", "more")]))
    hold.set()
    await harness.advance(10 + 3 + 10 + 3)
    assert turns(harness) == [("recovering", "recovering"), ("running", None)]
    assert steps(told)[-1] == ("scheduled", None)
    await harness.advance(10)
    assert turns(harness) == [("ended", "error"), ("running", None)]
    assert steps(told)[-1] == ("exhausted", "stable_timeout")
    agent.give("second", END)
    await harness.settle()
    assert turns(harness)[-1] == ("ended", "completed")


@pytest.mark.behaviour("CR-020", "CR-022")
async def test_a_lost_turn_whose_record_is_gone_still_ends(
    harness: Harness, told: list[Event]
) -> None:
    hold = asyncio.Event()
    Troubled.trouble = lambda _: hold
    agent = await lost(harness, "par")
    client = await harness.connect(Troubled, "a")
    await client.send(request("r2", [*agent.messages, user("u2", "more")]))
    hold.set()
    await harness.advance(11)
    agent.sql("DELETE FROM cf_chat_recovery")
    await harness.advance(3)
    assert turns(harness)[0] == ("ended", "error")
    assert steps(told)[-1] == ("exhausted", "recovery_error")
    assert endings(client)[-1]["error"] is True


@pytest.mark.behaviour("CR-022", "CR-019", "OB-007")
async def test_an_error_in_an_attempt_gives_the_turn_up(
    harness: Harness, told: list[Event]
) -> None:
    def breaks_turns(agent: Troubled) -> None:
        agent.sql(
            "CREATE TRIGGER broken BEFORE INSERT ON cf_chat_turns "
            "BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )

    Troubled.trouble = breaks_turns
    agent = await lost(harness, "par")
    assert turns(harness) == [("ended", "error")]
    assert steps(told)[-1] == ("exhausted", "recovery_error")
    assert agent.messages[-1]["parts"] == [said("par")]
    assert [str(error) for error in ERRORS] == ["broken"]
    failed = [event.payload for event in told if event.type == "chat:request:failed"]
    assert failed == [{"requestId": "r1", "stage": "recovery"}]


@pytest.mark.behaviour("CR-022")
async def test_a_disk_that_takes_nothing_puts_recovery_off(
    harness: Harness,
) -> None:
    Troubled.trouble = refuse_writes
    agent = await lost(harness, "par")
    assert turns(harness) == [("recovering", "recovering")]
    Troubled.trouble = None
    await harness.advance(60)
    assert turns(harness) == [("recovering", "recovering")]
    assert {type(error) for error in ERRORS} == {ramet.errors.DatabaseUnusable}
    database_of(agent).run("PRAGMA query_only = 0")
    await harness.advance(3)
    agent.give("tial", END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said("par"), said("tial")]
    assert turns(harness)[-1] == ("ended", "completed")


@pytest.mark.behaviour("CR-003")
async def test_recovery_that_on_start_sets_is_not_looked_at_and_said_once(
    harness: Harness, told: list[Event]
) -> None:
    Troubled.sets_in_start = ramet.ChatRecovery(max_attempts=1, no_progress_timeout=0)
    await lost(harness, "par")
    assert turns(harness)[-1] == ("running", None)
    warnings = [str(error) for error in ERRORS if isinstance(error, RuntimeWarning)]
    assert (
        warnings
        == [
            "chat_recovery was changed in on_start: set it in the class body",
        ]
        * 2
    ), "once for each time the agent was opened"


@pytest.mark.behaviour("CR-003", "CR-009")
async def test_budgets_are_looked_at_before_on_start(
    harness: Harness, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    monkeypatch.setattr(Troubled, "on_start", lambda _: started.append(len(steps(told))))
    await lost(harness, "par")
    assert started == [0, 2], "detected and the attempt were told before"


@pytest.mark.behaviour("CR-025")
async def test_old_incidents_are_swept_before_the_next_is_looked_at(harness: Harness) -> None:
    agent = await harness.agent(Troubled, "a")
    now = harness.clock.now_ms()
    old, young = now - KEPT_MS - 1, now - KEPT_MS + 30_000
    for number in range(2 * DELETED_AT_ONCE + 1):
        _put_incident(agent, f"old{number}", old)
    _put_incident(agent, "young", young)
    await lost(harness, "par")
    keys = [str(row["key"]) for row in harness.rows(Troubled, "a", INCIDENTS)]
    assert [key for key in keys if "old" in key] == []
    assert f"{INCIDENT_PREFIX}young" in keys
    assert len(keys) == 2


@pytest.mark.behaviour("CR-021", "CR-019")
async def test_clients_are_told_of_the_end_before_the_incident_is_sealed(
    harness: Harness,
) -> None:
    seen: list[object] = []

    def on_exhausted(given_up: ramet.ChatRecoveryExhausted) -> None:
        rows = harness.rows(Troubled, "a", INCIDENTS)
        seen.append((turns(harness), ['"exhausting"' in str(row["value"]) for row in rows]))

    Troubled.chat_recovery = ramet.ChatRecovery(no_progress_timeout=0, on_exhausted=on_exhausted)
    await lost(harness, "par")
    await harness.advance(1)
    agent = await lost_again(harness)
    assert seen == [([("ended", "recovering"), ("ended", "error")], [True])]
    client = await harness.connect(Troubled, "a")
    offered = await probe(client, "p")
    assert offered["type"] == "cf_agent_stream_resuming"
    assert text_of(agent.messages[-1]) == "par"


async def lost_again(harness: Harness) -> Troubled:
    await harness.crash()
    await harness.restart()
    agent = await harness.agent(Troubled, "a")
    await harness.settle()
    return agent


def _put_incident(agent: Troubled, name: str, updated_at: int) -> None:
    agent.sql(
        "INSERT INTO cf_chat_recovery (key, value, updated_at) VALUES (?, '{}', ?)",
        INCIDENT_PREFIX + name,
        updated_at,
    )


@pytest.mark.parametrize("given", [False, True, "yes", 5])
async def test_a_recovery_hook_that_gives_no_decision_ends_the_turn_with_an_error_that_says_so(
    harness: Harness,
    told: list[Event],
    given: object,
) -> None:
    Troubled.trouble = lambda _: given
    await lost(harness, "par")
    assert turns(harness) == [("ended", "error")]
    assert steps(told)[-1] == ("failed", "hook_error")
    assert "ChatRecoveryDecision(proceed=False) to stop" in str(ERRORS[-1])


async def test_a_recovery_hook_that_hangs_ends_the_turn_when_its_time_is_up(
    harness: Harness, told: list[Event]
) -> None:
    Troubled.trouble = lambda _: asyncio.Event()
    agent = await lost(harness, "par")
    client = await harness.connect(Troubled, "a")
    await harness.advance(29)
    assert turns(harness) == [("recovering", "recovering")]
    await harness.advance(1)
    assert turns(harness) == [("ended", "error")]
    assert steps(told)[-1] == ("failed", "hook_error")
    assert "on_chat_recovery timed out: it may take 30 s" in str(ERRORS[-1])
    assert client.of_type("cf_agent_chat_recovering")[-1]["recovering"] is False
    assert text_of(agent.messages[-1]) == "par"


@pytest.mark.parametrize(
    ("timeout", "then"), [(2, "error"), (float("inf"), "recovering"), (float("nan"), "error")]
)
async def test_how_long_a_recovery_hook_may_take_can_be_said(
    harness: Harness,
    timeout: float,  # noqa: ASYNC109 - an option
    then: str,
) -> None:
    Troubled.chat_recovery = ramet.ChatRecovery(hook_timeout=timeout)
    Troubled.trouble = lambda _: asyncio.Event()
    await lost(harness, "par")
    await harness.advance(3600)
    assert turns(harness)[0][1] == then
