"""The checker finds each kind of fault: a comparison that cannot fail would prove nothing."""

from collections.abc import Sequence

import pytest

from ramet.core.json import JsonObject, dumps
from tests.crash.checker import (
    chat_findings,
    registration_findings,
    rest_findings,
    run_findings,
    true_end,
    truth_findings,
)
from tests.crash.disk import AgentKey, Disk, StoredAgent, StoredChild
from tests.crash.ledger import Orders, ledger_findings, submission_findings
from tests.crash.seen import Seen, seen_in
from tests.crash.transcript import transcript_findings

RUN = "agent-tool:c"
KEY: AgentKey = (("Parent", "a"),)
CHILD: AgentKey = (*KEY, ("Child", RUN))


def chunk(seq: int, text: str) -> JsonObject:
    body = dumps({"type": "text-delta", "id": "t", "delta": text})
    return {"type": "cf_agent_use_chat_response", "id": "r", "body": body, "seq": seq}


def done(outcome: str) -> JsonObject:
    return {
        "type": "cf_agent_use_chat_response",
        "id": "r",
        "body": "",
        "done": True,
        "outcome": outcome,
    }


def event(number: int, kind: str, **fields: str) -> JsonObject:
    return {
        "type": "agent-tool-event",
        "sequence": number,
        "event": {"kind": kind, "runId": RUN, **fields},
    }


def at_work(*, outcome: str | None) -> StoredAgent:
    run = StoredChild(status="running", sealed=False, request_id="q")
    return StoredAgent(child_runs={RUN: run}, outcomes={"q": outcome})


def ended(status: str, *, outcome: str) -> StoredAgent:
    run = StoredChild(status=status, sealed=True, request_id="q")
    return StoredAgent(child_runs={RUN: run}, outcomes={"q": outcome})


ANSWER = [chunk(0, "a"), chunk(1, "b"), done("aborted")]
RUN_FRAMES = [
    event(0, "started", agentType="Child"),
    event(1, "chunk", body="{1}"),
    event(2, "chunk", body="{2}"),
    event(3, "interrupted", error="gone"),
]


def chat(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[str]:
    return list(chat_findings([seen_in(before)], seen_in(after)))


def runs(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[str]:
    return list(run_findings([seen_in(before)], seen_in(after)))


def test_an_answer_that_is_all_there_again_passes() -> None:
    assert not chat(ANSWER[:2], ANSWER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ANSWER[:2], [ANSWER[0], ANSWER[2]]),
        (ANSWER[:2], [ANSWER[0], chunk(1, "other"), ANSWER[2]]),
        (ANSWER[:2], [ANSWER[1], ANSWER[0], ANSWER[2]]),
        (ANSWER[:2], [ANSWER[0], ANSWER[1], ANSWER[1], ANSWER[2]]),
        (ANSWER[:2], ANSWER[:2]),
        (ANSWER[:2], [*ANSWER, ANSWER[2]]),
        ([*ANSWER[:2], done("completed")], ANSWER),
        ([ANSWER[0], ANSWER[0]], ANSWER),
    ],
    ids="lost changed swapped twice endless ends-twice other-end twice-before".split(),
)
def test_an_answer_that_is_not_the_same_is_found(
    before: Sequence[JsonObject], after: Sequence[JsonObject]
) -> None:
    assert chat(before, after)


def test_a_run_that_is_all_there_again_passes() -> None:
    progress = dumps({"type": "data-agent-progress", "transient": True, "data": {}})
    before = [*RUN_FRAMES[:2], event(5, "chunk", body=progress)]
    assert not runs(before, RUN_FRAMES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RUN_FRAMES[:3], [RUN_FRAMES[0], RUN_FRAMES[1], RUN_FRAMES[3]]),
        ([*RUN_FRAMES[:2], event(3, "chunk", body="{2}")], RUN_FRAMES),
        (RUN_FRAMES[:2], [RUN_FRAMES[0], RUN_FRAMES[1], RUN_FRAMES[1], RUN_FRAMES[3]]),
        (RUN_FRAMES[:2], RUN_FRAMES[:3]),
        (RUN_FRAMES[:2], [*RUN_FRAMES, event(4, "interrupted", error="gone")]),
        (RUN_FRAMES[:2], [*RUN_FRAMES, event(4, "chunk", body="{4}")]),
        ([event(0, "chunk", body="{0}")], RUN_FRAMES[1:]),
    ],
    ids="lost renumbered twice endless ends-twice goes-on headless".split(),
)
def test_a_run_that_is_not_the_same_is_found(
    before: Sequence[JsonObject], after: Sequence[JsonObject]
) -> None:
    assert runs(before, after)


@pytest.mark.parametrize(
    ("status", "child", "end"),
    [
        ("completed", StoredAgent(), "completed"),
        ("interrupted", StoredAgent(), "interrupted"),
        ("running", StoredAgent(), "interrupted"),
        ("running", at_work(outcome=None), "interrupted"),
        ("running", at_work(outcome="completed"), "completed"),
        ("starting", ended("completed", outcome="completed"), "completed"),
        ("running", ended("error", outcome="error"), "error"),
        ("running", ended("error", outcome="aborted"), "interrupted"),
    ],
)
def test_a_run_has_only_the_end_that_was_recorded(
    status: str, child: StoredAgent, end: str
) -> None:
    assert true_end(status, child, RUN) == end


@pytest.mark.behaviour("D10")
@pytest.mark.parametrize("recorded", ["completed", None])
def test_a_run_told_as_completed_without_a_recorded_outcome_is_found(recorded: str | None) -> None:
    parent = StoredAgent(runs={RUN: ("Child", "running")})
    disk = Disk(agents={KEY: parent, CHILD: at_work(outcome=recorded)})
    told = seen_in([event(0, "started"), event(1, "finished")])
    assert bool(list(truth_findings(KEY, disk, told))) is (recorded is None)


def test_a_request_told_as_completed_without_a_recorded_outcome_is_found() -> None:
    disk = Disk(agents={KEY: StoredAgent(outcomes={"r": None})})
    assert list(truth_findings(KEY, disk, seen_in([done("completed")])))
    assert not list(truth_findings(KEY, disk, seen_in([done("aborted")])))


def test_chunks_that_are_stored_and_not_given_are_found() -> None:
    disk = Disk(agents={KEY: StoredAgent(outcomes={"r": None}, chunks={"r": ["x", "y"]})})
    assert list(truth_findings(KEY, disk, seen_in([done("aborted")])))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-x", "toolCallId": "c", "state": "input-available", "input": {}},
        {"type": "text", "text": "ab", "state": "streaming"},
    ],
)
def test_a_part_that_is_left_open_is_found(part: JsonObject) -> None:
    assert list(transcript_findings([{"id": "m", "role": "assistant", "parts": [part]}], Seen()))


def test_an_answer_that_is_not_in_the_transcript_is_found() -> None:
    other: JsonObject = {"type": "text", "text": "other", "state": "done"}
    message: JsonObject = {"id": "m", "role": "assistant", "parts": [other]}
    assert list(transcript_findings([message], seen_in(ANSWER)))


def test_a_run_that_ended_twice_before_the_crash_is_found() -> None:
    twice = [*RUN_FRAMES[:3], event(3, "finished"), event(4, "finished")]
    assert runs(twice, [*RUN_FRAMES[:3], event(3, "finished")])
    repaired = [*RUN_FRAMES, event(4, "finished")]
    assert not [each for each in runs(repaired, repaired) if "before the crash" in each]


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("status", ["starting", "running", "error"])
def test_a_run_under_way_without_a_registered_child_is_found(
    status: str, *, registered: bool
) -> None:
    children = frozenset({("Child", RUN)} if registered else ())
    disk = Disk(agents={KEY: StoredAgent(runs={RUN: ("Child", status)}, children=children)})
    missed = status != "error" and not registered
    assert bool(list(registration_findings(disk))) is missed


@pytest.mark.parametrize(
    "left",
    [
        StoredAgent(outcomes={"r": None}),
        StoredAgent(runs={RUN: ("Child", "running")}),
        at_work(outcome="completed"),
        StoredAgent(waiting={"cf_agents_queues": 1}),
    ],
    ids="turn run work row".split(),
)
def test_what_is_left_open_on_disk_is_found(left: StoredAgent) -> None:
    assert list(rest_findings(Disk(agents={KEY: left})))
    over = StoredAgent(outcomes={"r": "completed"}, runs={RUN: ("Child", "error")})
    assert not list(rest_findings(Disk(agents={KEY: over})))


def ordered(kind: str, *, kills: int = 1) -> Orders:
    return Orders(KEY, stored={"x": kind}, sent={"x": kind, "y": kind}, kills=kills)


@pytest.mark.parametrize("kind", ["queue", "schedule", "fiber"])
def test_a_ledger_that_has_what_was_ordered_passes(kind: str) -> None:
    lines = ["x", "y recovered"] if kind == "fiber" else ["x", "x", "y"]
    assert not list(ledger_findings(ordered(kind), lines))


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("queue", []),
        ("schedule", ["y"]),
        ("fiber", ["y"]),
        ("queue", ["x", "x", "x"]),
        ("fiber", ["x", "x"]),
        ("fiber", ["x recovered", "x recovered"]),
        ("schedule", ["x", "z"]),
    ],
)
def test_a_ledger_that_lacks_something_or_has_too_much_is_found(
    kind: str, lines: Sequence[str]
) -> None:
    assert list(ledger_findings(ordered(kind), lines))


def said_by(role: str, text: str) -> JsonObject:
    return {"id": text, "role": role, "parts": [{"type": "text", "text": text}]}


def test_a_submission_that_is_not_asked_and_answered_once_is_found() -> None:
    stored = {"x": "submission"}
    asked, answer = said_by("user", "x"), said_by("assistant", "0 1 2")
    assert not list(submission_findings(stored, [asked, answer]))
    assert list(submission_findings(stored, []))
    assert list(submission_findings(stored, [asked]))
    assert list(submission_findings(stored, [asked, answer, asked, answer]))
