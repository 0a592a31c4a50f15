"""Durable submissions of a `Think`, with its races and restarts (SB-001 … SB-017)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ramet
from ramet.core.json import NotJson
from ramet.errors import InvalidArguments
from ramet.observability.channels import Event, subscribe
from ramet.protocol.messages import text_of, user_message
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness
from ramet.testing.scripted_model import Gate, ScriptedError, ScriptedModel
from tests.integration.chat.support import request
from tests.integration.think.stage import Assistant


class Clerk(Assistant):
    """Notes every status that it is told of."""

    chat_recovery: ramet.ChatRecovery | bool = True
    hold: asyncio.Event | None = None
    hold_recovery: ClassVar[asyncio.Event | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> None:
        if self.hold_recovery is not None:
            await self.hold_recovery.wait()

    async def on_submission_status(self, submission: ramet.Submission) -> None:
        self.told.append(f"{submission.submission_id} {submission.status}")
        if self.hold is not None and submission.status == "pending":
            await self.hold.wait()


class Plain(Clerk):
    """Leaves turns that were lost as they are."""

    chat_recovery: ramet.ChatRecovery | bool = False


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Clerk, Plain], data_dir=tmp_path) as running:
        yield running


@pytest.fixture
async def agent(host: Harness) -> Clerk:
    return await host.agent(Clerk, "a")


def play(*answers: object) -> ScriptedModel:
    Clerk.script = ScriptedModel(answers)  # type: ignore[arg-type] # checked when it is played
    return Clerk.script


def texts(agent: Clerk) -> list[str]:
    return [text_of(message) for message in agent.messages]


def rows(host: Harness) -> list[tuple[object, object]]:
    """The ids of all submissions with their statuses."""
    query = "SELECT submission_id, status FROM cf_think_submissions ORDER BY rowid"
    return [(row["submission_id"], row["status"]) for row in host.rows(Clerk, "a", query)]


def found(agent: Clerk, submission_id: str) -> ramet.Submission:
    submission = agent.inspect_submission(submission_id)
    assert submission is not None
    return submission


async def reopened(host: Harness, cls: type[Clerk] = Clerk) -> Clerk:
    """The agent in a new process, after a crash of the old one."""
    await host.crash()
    await host.restart()
    return await host.agent(cls, "a")


@pytest.mark.behaviour("SB-001", "SB-002", "SB-017")
async def test_a_submission_is_stored_before_the_model_is_asked_and_answered_later(
    host: Harness, agent: Clerk
) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("message", events.append)
    model = play("done")
    result = await agent.submit_messages(
        "do it", submission_id="s1", idempotency_key="k1", metadata={"from": "cron"}
    )
    assert (result.accepted, result.status, result.request_id) == (True, "pending", "s1")
    assert model.requests == []
    assert agent.told == ["s1 pending"]
    await host.settle()
    unsubscribe()
    done = found(agent, "s1")
    assert (done.status, done.metadata, done.idempotency_key) == (
        "completed",
        {"from": "cron"},
        "k1",
    )
    assert done.started_at is not None
    assert done.messages_applied_at is not None
    assert done.stream_id
    assert texts(agent) == ["do it", "done"]
    assert agent.told == ["s1 pending", "s1 running", "s1 completed"]
    assert [(event.type, event.payload["status"]) for event in events] == [
        ("submission:create", "pending"),
        ("submission:status", "pending"),
        ("submission:status", "running"),
        ("submission:status", "completed"),
    ]
    (turn,) = host.rows(Clerk, "a", 'SELECT "trigger", outcome FROM cf_chat_turns')
    assert turn == {"trigger": "submission", "outcome": "completed"}


@pytest.mark.behaviour("SB-003")
@pytest.mark.parametrize(
    ("arguments", "error", "fault"),
    [
        ({"messages": []}, InvalidArguments, "at least one message"),
        ({"messages": ""}, InvalidArguments, "at least one message"),
        ({"messages": "x", "submission_id": " "}, InvalidArguments, "submission_id must be"),
        ({"messages": "x", "idempotency_key": ""}, InvalidArguments, "idempotency_key must be"),
        ({"messages": "x", "metadata": object()}, NotJson, "The metadata of a submission"),
        ({"messages": "x", "metadata": float("nan")}, NotJson, "nan"),
    ],
)
async def test_what_cannot_be_submitted_is_refused_and_nothing_is_written(
    host: Harness, agent: Clerk, arguments: dict[str, Any], error: type[Exception], fault: str
) -> None:
    with pytest.raises(error, match=fault):
        await agent.submit_messages(**arguments)
    assert rows(host) == []
    assert agent.told == []


@pytest.mark.behaviour("SB-004")
async def test_the_same_id_or_key_finds_the_first_whatever_its_messages(
    host: Harness, agent: Clerk
) -> None:
    play("done")
    await agent.submit_messages("one", submission_id="s1", idempotency_key="k1")
    by_id = await agent.submit_messages("two", submission_id="s1")
    by_key = await agent.submit_messages("three", idempotency_key="k1")
    both = await agent.submit_messages("four", submission_id="s1", idempotency_key="k1")
    for again in (by_id, by_key, both):
        assert (again.accepted, again.submission_id) == (False, "s1")
    await host.settle()
    assert texts(agent) == ["one", "done"]
    after = await agent.submit_messages("five", submission_id="s1")
    assert (after.accepted, after.status) == (False, "completed")


@pytest.mark.behaviour("SB-004")
async def test_of_two_first_calls_at_once_exactly_one_is_accepted(
    host: Harness, agent: Clerk
) -> None:
    play("done")
    results = await asyncio.gather(
        *(agent.submit_messages(f"m{number}", idempotency_key="k") for number in range(4))
    )
    assert [result.accepted for result in results] == [True, False, False, False]
    assert len({result.submission_id for result in results}) == 1
    await host.settle()
    assert texts(agent) == ["m0", "done"]


@pytest.mark.behaviour("SB-005")
async def test_an_id_and_a_key_of_different_submissions_are_refused(
    host: Harness, agent: Clerk
) -> None:
    play("one", "two", "three")
    await agent.submit_messages("x", submission_id="s1", idempotency_key="k1")
    await agent.submit_messages("x", submission_id="s2", idempotency_key="k2")
    await agent.submit_messages("x", submission_id="s3")
    before = rows(host)
    for submission_id, key in (("s1", "k2"), ("s1", "other"), ("new", "k1"), ("s3", "k3")):
        with pytest.raises(InvalidArguments, match="idempotency key"):
            await agent.submit_messages("x", submission_id=submission_id, idempotency_key=key)
    assert rows(host) == before
    await host.settle()


@pytest.mark.behaviour("SB-006", "TQ-001")
async def test_submissions_run_one_at_a_time_in_their_order_behind_turns_that_came_before(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    play(["first", gate], "a1", "a2")
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    await agent.submit_messages("one", submission_id="s1")
    await agent.submit_messages("two", submission_id="s2")
    await host.settle()
    assert rows(host) == [("s1", "running"), ("s2", "pending")]
    assert texts(agent) == ["hello"]
    gate.open()
    await talking
    await host.settle()
    assert texts(agent) == ["hello", "first", "one", "a1", "two", "a2"]
    assert agent.told[2:] == ["s1 running", "s1 completed", "s2 running", "s2 completed"]


@pytest.mark.behaviour("SB-007", "SB-009")
async def test_one_that_is_called_off_before_its_slot_adds_none_of_its_messages(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    play(["first", gate])
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    several = [user_message("one", id="u1"), user_message("two", id="u2")]
    await agent.submit_messages(several, submission_id="s1")
    await agent.submit_messages("later", submission_id="s2")
    await host.settle()
    assert rows(host) == [("s1", "running"), ("s2", "pending")]
    assert await agent.cancel_submission("s1", "changed my mind")
    assert await agent.cancel_submission("s2")
    assert not await agent.cancel_submission("s2")
    assert not await agent.cancel_submission("unknown")
    gate.open()
    await talking
    await host.settle()
    assert texts(agent) == ["hello", "first"]
    assert rows(host) == [("s1", "aborted"), ("s2", "aborted")]
    assert found(agent, "s1").error == "changed my mind"
    assert found(agent, "s1").messages_applied_at is None


@pytest.mark.behaviour("SB-007", "SB-009")
async def test_calling_off_in_the_step_in_which_the_slot_comes_adds_all_or_nothing(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    play(["first", gate], "answer")
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    several = [user_message("one", id="u1"), user_message("two", id="u2")]
    await agent.submit_messages(several, submission_id="s1")
    await host.settle()
    gate.open()
    await talking
    await agent.cancel_submission("s1")
    await host.settle()
    added = [message["id"] for message in agent.messages if message["id"] in {"u1", "u2"}]
    applied = found(agent, "s1").messages_applied_at is not None
    assert added == (["u1", "u2"] if applied else [])
    assert found(agent, "s1").status == "aborted"


@pytest.mark.behaviour("SB-008", "SB-009")
async def test_one_that_is_called_off_while_it_runs_keeps_the_partial_and_stays_aborted(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    play(["so far", gate])
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    assert await agent.cancel_submission("s1")
    await host.settle()
    assert gate.waiting == 0
    assert texts(agent) == ["go", "so far"]
    assert found(agent, "s1").status == "aborted"
    assert agent.told == ["s1 pending", "s1 running", "s1 aborted"]


@pytest.mark.behaviour("SB-008")
async def test_a_turn_that_is_cancelled_aborts_its_submission(host: Harness, agent: Clerk) -> None:
    play(["so far", Gate()])
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    agent.cancel_chat("s1")
    await host.settle()
    assert found(agent, "s1").status == "aborted"


@pytest.mark.behaviour("SB-008", "SB-017")
async def test_a_turn_that_fails_makes_its_submission_an_error_with_its_text(
    host: Harness, agent: Clerk
) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("message", events.append)
    play([ScriptedError("out of credit")], "fine")
    await agent.submit_messages("go", submission_id="s1")
    await agent.submit_messages("on", submission_id="s2")
    await host.settle()
    unsubscribe()
    assert (found(agent, "s1").status, found(agent, "s1").error) == ("error", "out of credit")
    failures = [event.payload for event in events if event.type == "submission:error"]
    assert failures == [
        {"submissionId": "s1", "requestId": "s1", "status": "error", "error": "out of credit"}
    ]
    assert found(agent, "s2").status == "completed"


@pytest.mark.behaviour("SB-010", "TQ-014")
async def test_clear_skips_what_waits_and_runs_before_it_returns(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    model = play(["so far", gate])
    for number in (1, 2, 3):
        await agent.submit_messages("go", submission_id=f"s{number}")
    await host.settle()
    assert rows(host)[0] == ("s1", "running")
    await agent.clear_messages()
    assert [status for _, status in rows(host)] == ["skipped"] * 3
    assert found(agent, "s2").error == "The chat was cleared before the submission was answered"
    gate.open()
    await host.settle()
    assert [status for _, status in rows(host)] == ["skipped"] * 3
    assert agent.messages == []
    assert len(model.requests) == 1
    assert sorted(agent.told[-3:]) == ["s1 skipped", "s2 skipped", "s3 skipped"]
    play("new")
    await agent.submit_messages("after", submission_id="s4")
    await host.settle()
    assert found(agent, "s4").status == "completed"
    assert texts(agent) == ["after", "new"]


@pytest.mark.behaviour("SB-010")
async def test_clear_while_the_hook_is_told_that_one_runs_lets_it_add_nothing(
    host: Harness, agent: Clerk
) -> None:
    model = play()

    class Clearing(asyncio.Event):
        async def wait(self) -> bool:  # type: ignore[override] # only True is ever given
            await agent.clear_messages()
            return True

    agent.hold = Clearing()
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    assert rows(host) == [("s1", "skipped")]
    assert (agent.messages, model.requests) == ([], [])


@pytest.mark.behaviour("SB-002")
async def test_nothing_runs_before_the_hook_knows_that_it_waits(
    host: Harness, agent: Clerk
) -> None:
    model = play("done")
    agent.hold = asyncio.Event()
    submitting = asyncio.ensure_future(agent.submit_messages("go", submission_id="s1"))
    await host.settle()
    assert (submitting.done(), model.requests) == (False, [])
    agent.hold.set()
    assert (await submitting).accepted
    await host.settle()
    assert agent.told == ["s1 pending", "s1 running", "s1 completed"]


async def test_a_caller_that_gives_up_leaves_its_submission_to_be_answered(
    host: Harness, agent: Clerk
) -> None:
    play("done")
    agent.hold = asyncio.Event()
    submitting = asyncio.ensure_future(agent.submit_messages("go", submission_id="s1"))
    await host.settle()
    submitting.cancel()
    await host.settle()
    assert found(agent, "s1").status == "completed"


@pytest.mark.behaviour("SB-017")
async def test_a_hook_that_raises_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    class Clumsy(Assistant):
        def __init__(self) -> None:
            super().__init__()
            self.faults: list[str] = []

        def on_submission_status(self, submission: ramet.Submission) -> None:
            raise OSError(f"cannot note {submission.status}")

        def on_error(self, error: BaseException, connection: object = None) -> None:
            self.faults.append(str(error))

    Clumsy.script = ScriptedModel(["done"])
    async with Harness(agents=[Clumsy], data_dir=tmp_path) as host:
        agent = await host.agent(Clumsy, "a")
        assert (await agent.submit_messages("go", submission_id="s1")).accepted
        await host.settle()
        submission = agent.inspect_submission("s1")
        assert submission is not None
        assert submission.status == "completed"
        assert agent.faults == [
            f"cannot note {each}" for each in ("pending", "running", "completed")
        ]


@pytest.mark.behaviour("SB-006")
async def test_what_waits_at_a_crash_is_answered_although_nobody_opens_the_agent(
    host: Harness, agent: Clerk
) -> None:
    agent.hold = asyncio.Event()
    submitting = asyncio.ensure_future(agent.submit_messages("go", submission_id="s1"))
    await host.settle()
    await host.crash()
    submitting.cancel()
    play("done")
    await host.restart()
    await host.advance(31)
    assert rows(host) == [("s1", "completed")]
    assert host.rows(Clerk, "a", "SELECT 1 FROM cf_agents_schedules") == []


@pytest.mark.behaviour("SB-006")
async def test_all_that_waits_at_a_crash_is_answered_in_order_after_it(
    host: Harness, agent: Clerk
) -> None:
    play([Gate()])
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    for number in (1, 2, 3):
        await agent.submit_messages(f"q{number}", submission_id=f"s{number}")
    await host.settle()
    assert [status for _, status in rows(host)] == ["running", "pending", "pending"]
    play("well", "a1", "a2", "a3")
    agent = await reopened(host)
    talking.cancel()
    await host.settle()
    assert [status for _, status in rows(host)] == ["completed"] * 3
    assert texts(agent) == ["hello", "well", "q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.behaviour("SB-011")
async def test_one_that_had_added_nothing_at_the_crash_is_run_again(
    host: Harness, agent: Clerk
) -> None:
    play([Gate()])
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    assert rows(host) == [("s1", "running")]
    play("well", "done")
    agent = await reopened(host)
    talking.cancel()
    await host.settle()
    assert agent.told == ["s1 pending", "s1 running", "s1 completed"]
    assert texts(agent) == ["hello", "well", "go", "done"]


@pytest.mark.behaviour("SB-012")
async def test_one_whose_messages_are_there_without_a_note_of_it_is_never_replayed(
    host: Harness,
) -> None:
    agent: Clerk = await host.agent(Plain, "a")
    play(["so far", Gate()])
    several = [user_message("one", id="u1"), user_message("two", id="u2")]
    await agent.submit_messages(several, submission_id="s1")
    await host.settle()
    agent.sql("UPDATE cf_think_submissions SET messages_applied_at = NULL")
    model = play()
    agent = await reopened(host, Plain)
    await host.settle()
    assert found(agent, "s1").status == "error"
    assert "being added" in str(found(agent, "s1").error)
    assert model.requests == []
    assert agent.told == ["s1 error"]


@pytest.mark.behaviour("SB-012")
@pytest.mark.parametrize("stored", ["{", "7", "[]", "[7]", '[{"id":"u1"}]'])
async def test_one_whose_stored_messages_cannot_be_read_fails_whether_it_ran_or_waited(
    host: Harness, agent: Clerk, stored: str
) -> None:
    play([Gate()])
    talking = asyncio.ensure_future(agent.run_turn("hello"))
    await host.settle()
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    await agent.submit_messages("go", submission_id="s2")
    agent.sql("UPDATE cf_think_submissions SET messages_json = ?", stored)
    play("well")
    agent = await reopened(host)
    talking.cancel()
    await host.settle()
    assert [status for _, status in rows(host)] == ["error", "error"]
    assert "cannot be read" in str(found(agent, "s2").error)
    assert texts(agent) == ["hello", "well"]


@pytest.mark.behaviour("SB-014")
async def test_without_recovery_one_that_was_being_answered_fails_and_is_not_run_again(
    host: Harness,
) -> None:
    agent: Clerk = await host.agent(Plain, "a")
    play(["so far", Gate()])
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    model = play()
    agent = await reopened(host, Plain)
    await host.settle()
    assert found(agent, "s1").status == "error"
    assert "not run again" in str(found(agent, "s1").error)
    assert texts(agent).count("go") == 1
    assert model.requests == []


async def lose_running(host: Harness, agent: Clerk) -> None:
    """Crash while one is being answered and another waits; it is not open after."""
    play(["so far", Gate()])
    await agent.submit_messages("go", submission_id="s1")
    await agent.submit_messages("next", submission_id="s2")
    await host.settle()
    assert rows(host) == [("s1", "running"), ("s2", "pending")]


@pytest.mark.behaviour("SB-013", "SB-015", "SB-006")
async def test_one_whose_turn_is_recovered_is_completed_by_it_and_the_next_one_follows(
    host: Harness, agent: Clerk
) -> None:
    await lose_running(host, agent)
    gate = Gate()
    play(["so far", gate, " and on"], "second")
    agent = await reopened(host)
    await host.settle()
    assert rows(host) == [("s1", "running"), ("s2", "pending")]
    gate.open()
    await host.settle()
    assert rows(host) == [("s1", "completed"), ("s2", "completed")]
    assert texts(agent) == ["go", "so far and on", "next", "second"]
    assert agent.told == ["s1 completed", "s2 running", "s2 completed"]


@pytest.mark.behaviour("SB-015")
async def test_one_whose_recovery_was_lost_again_is_completed_in_the_end(
    host: Harness, agent: Clerk
) -> None:
    await lose_running(host, agent)
    play(["so far", Gate()])
    await reopened(host)
    await host.settle()
    play("so far, so good", "second")
    agent = await reopened(host)
    await host.settle()
    assert rows(host) == [("s1", "completed"), ("s2", "completed")]
    assert texts(agent) == ["go", "so far, so good", "next", "second"]


@pytest.mark.behaviour("SB-009")
@pytest.mark.parametrize("twice", [False, True])
async def test_the_turn_of_one_that_was_called_off_right_before_a_crash_does_not_go_on(
    host: Harness, agent: Clerk, *, twice: bool
) -> None:
    await lose_running(host, agent)
    if twice:
        play([Gate()])
        agent = await reopened(host)
        await host.settle()
    model = play("second")
    await host.crash()
    file = host.host.files.open_existing(host.path(Clerk, "a"))
    assert file is not None
    file.run("UPDATE cf_think_submissions SET status = 'aborted' WHERE submission_id = 's1'")
    file.close()
    await host.restart()
    agent = await host.agent(Clerk, "a")
    await host.settle()
    assert rows(host) == [("s1", "aborted"), ("s2", "completed")]
    assert texts(agent) == ["go", "so far", "next", "second"]
    assert len(model.requests) == 1


@pytest.mark.behaviour("SB-009")
async def test_calling_off_reaches_the_turn_that_goes_on_for_a_lost_one(
    host: Harness, agent: Clerk
) -> None:
    await lose_running(host, agent)
    gate = Gate()
    play(["so far", gate], "second")
    agent = await reopened(host)
    await host.settle()
    assert gate.waiting == 1
    assert await agent.cancel_submission("s1")
    await host.settle()
    assert gate.waiting == 0
    assert rows(host) == [("s1", "aborted"), ("s2", "completed")]
    assert agent.told == ["s1 aborted", "s2 running", "s2 completed"]


@pytest.mark.behaviour("SB-015")
async def test_one_whose_recovery_is_given_up_fails_with_what_clients_are_told(
    host: Harness, agent: Clerk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Clerk, "chat_recovery", ramet.ChatRecovery(max_attempts=1, terminal_message="No luck.")
    )
    await lose_running(host, agent)
    for _ in range(3):
        play(["so far", Gate()], "second")
        agent = await reopened(host)
        await host.advance(40)
    await host.settle()
    assert (found(agent, "s1").status, found(agent, "s1").error) == ("error", "No luck.")


@pytest.mark.behaviour("SB-015")
async def test_one_that_a_newer_question_has_overtaken_is_skipped(
    host: Harness, agent: Clerk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lose_running(host, agent)
    decided = asyncio.Event()
    monkeypatch.setattr(Clerk, "hold_recovery", decided)
    play("newer", "second")
    agent = await reopened(host)
    client = await host.connect(Clerk, "a")
    await client.send(request("r1", [*agent.messages, user_message("newer?", id="u9")]))
    assert texts(agent)[-2:] == ["newer?", "newer"]
    assert rows(host) == [("s1", "running"), ("s2", "pending")]
    decided.set()
    await host.settle()
    assert rows(host) == [("s1", "skipped"), ("s2", "completed")]
    assert "went on" in str(found(agent, "s1").error)
    assert texts(agent)[-2:] == ["next", "second"]


@pytest.mark.behaviour("SB-010", "SB-015")
async def test_clear_skips_one_whose_turn_is_being_recovered(host: Harness, agent: Clerk) -> None:
    await lose_running(host, agent)
    gate = Gate()
    play(["so far", gate])
    agent = await reopened(host)
    await host.settle()
    await agent.clear_messages()
    assert [status for _, status in rows(host)] == ["skipped", "skipped"]
    await host.settle()
    assert [status for _, status in rows(host)] == ["skipped", "skipped"]
    assert agent.messages == []


@pytest.mark.behaviour("SB-016")
async def test_listing_gives_the_newest_first_within_its_limits(
    host: Harness, agent: Clerk
) -> None:
    play(*["ok"] * 60)
    for number in range(60):
        await agent.submit_messages("x", submission_id=f"s{number:02}")
    await host.settle()
    assert [each.submission_id for each in agent.list_submissions(limit=3)] == ["s59", "s58", "s57"]
    assert len(agent.list_submissions()) == 50
    with pytest.raises(InvalidArguments, match="limit is a whole number, 1 or more, not 0"):
        agent.list_submissions(limit=0)
    assert len(agent.list_submissions(limit=1000)) == 60
    assert agent.list_submissions("pending") == []
    assert len(agent.list_submissions(["pending", "completed"], limit=7)) == 7
    with pytest.raises(InvalidArguments, match="'done' is not one of"):
        agent.list_submissions("done")


@pytest.mark.behaviour("SB-016")
async def test_only_what_is_over_can_be_deleted_the_bound_is_strict(
    host: Harness, agent: Clerk
) -> None:
    play("ok", "ok", ["so far", Gate()])
    await agent.submit_messages("x", submission_id="s1")
    await host.advance(1)
    second = datetime.fromtimestamp(host.clock.now_ms() / 1000, UTC)
    for number in (2, 3, 4):
        await agent.submit_messages("x", submission_id=f"s{number}")
    await host.settle()
    assert [status for _, status in rows(host)] == ["completed", "completed", "running", "pending"]
    assert not agent.delete_submission("s3")
    assert not agent.delete_submission("unknown")
    assert agent.delete_submissions(["running", "pending"]) == 0
    assert agent.delete_submissions(completed_before=second - timedelta(seconds=1)) == 0
    assert agent.delete_submissions(completed_before=second) == 1
    assert [each for each, _ in rows(host)] == ["s2", "s3", "s4"]
    with pytest.raises(InvalidArguments, match="limit is a whole number, 1 or more, not 0"):
        agent.delete_submissions(limit=0)
    assert agent.delete_submissions(limit=1) == 1
    assert [each for each, _ in rows(host)] == ["s3", "s4"]
    await agent.cancel_submission("s4")
    assert agent.delete_submission("s4")
    naive: Any = second.replace(tzinfo=None)
    with pytest.raises(InvalidArguments, match="time zone"):
        agent.delete_submissions(completed_before=naive)


@pytest.mark.behaviour("TQ-012")
async def test_a_submitted_turn_reports_its_start_and_finish(host: Harness, agent: Clerk) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    play("done")
    await agent.submit_messages("go", submission_id="s1")
    await host.settle()
    unsubscribe()
    common = {"requestId": "s1", "trigger": "submission", "admission": "queue"}
    assert [(event.type, event.payload) for event in events] == [
        ("chat:turn:start", common),
        ("chat:turn:finish", {**common, "status": "completed", "durationMs": 0}),
    ]


async def test_an_agent_with_a_submission_at_work_is_not_evicted(
    host: Harness, agent: Clerk
) -> None:
    gate = Gate()
    play([gate, "done"])
    await agent.submit_messages("go", submission_id="s1")
    with pytest.raises(Exception, match="submission"):
        await host.evict(Clerk, "a")
    gate.open()
    await host.settle()
    await host.evict(Clerk, "a")
    again = await host.agent(Clerk, "a")
    assert found(again, "s1").status == "completed"


def question(text: str) -> UIMessage:
    return user_message(text, id="q")


async def test_clients_see_a_submission_when_its_slot_comes(host: Harness, agent: Clerk) -> None:
    client = await host.connect(Clerk, "a")
    play("done")
    await agent.submit_messages(question("go"), submission_id="s1")
    await host.settle()
    sent = [frame["messages"] for frame in client.of_type("cf_agent_chat_messages")]
    assert sent[1] == [question("go")]
    assert [
        frame["outcome"] for frame in client.of_type("cf_agent_use_chat_response") if frame["done"]
    ] == ["completed"]
