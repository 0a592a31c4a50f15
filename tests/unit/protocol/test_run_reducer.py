"""What a client knows of runs after their events."""

from collections.abc import Iterable
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.protocol import chunks, run_events
from ramet.protocol.run_events import RunEvent, encode_event
from ramet.protocol.run_reducer import apply_agent_tool_event, frame_identity
from ramet.protocol.run_state import AgentToolState, RunState
from tests.unit.protocol.chunk_strategies import any_chunk

NOW = 1_000


def frame(event: RunEvent, sequence: int = 0, call: str | None = "c") -> str:
    return encode_event(event, sequence=sequence, parent_tool_call_id=call, replay=False)


def started(run_id: str = "r", order: int = 0) -> run_events.Started:
    return run_events.Started(run_id=run_id, agent_type="Researcher", order=order)


def chunk(content: JsonObject, run_id: str = "r") -> run_events.Chunk:
    return run_events.Chunk(run_id=run_id, body=chunks.chunk_body(content))


def after(events: Iterable[RunEvent], state: AgentToolState | None = None) -> AgentToolState:
    state = state or AgentToolState()
    for event in events:
        state = apply_agent_tool_event(state, frame(event), now_ms=NOW)
    return state


def run_after(*events: RunEvent) -> RunState:
    return after([started(), *events]).runs_by_id["r"]


def milestone(name: str, sequence: int, at: int, **fields: JsonValue) -> run_events.Chunk:
    return chunk(chunks.milestone({"name": name, "sequence": sequence, "at": at, **fields}))


FINISHED = run_events.Finished(run_id="r", summary="done")
FAILED = run_events.Failed(run_id="r", error="kaput")
ABORTED = run_events.Aborted(run_id="r", reason="asked")
INTERRUPTED = run_events.Interrupted(
    run_id="r", error="lost", reason="no-progress", child_still_running=True
)


@pytest.mark.behaviour("AT-141", "AT-142")
def test_a_started_run_has_its_header_and_where_to_drill_in() -> None:
    event = run_events.Started(
        run_id="r", agent_type="Researcher", order=2, input_preview=None, display={"name": "R"}
    )

    assert after([event]).runs_by_id["r"].to_json() == {
        "runId": "r",
        "agentType": "Researcher",
        "parentToolCallId": "c",
        "inputPreview": None,
        "order": 2,
        "display": {"name": "R"},
        "status": "running",
        "parts": [],
        "subAgent": {"agent": "Researcher", "name": "r"},
    }


def test_an_absent_preview_stays_absent() -> None:
    assert "inputPreview" not in run_after().to_json()


@pytest.mark.behaviour("AT-143")
@given(st.lists(any_chunk(), max_size=8), any_chunk())
def test_applying_a_frame_never_changes_the_state_before(
    before: list[JsonObject], next_chunk: JsonObject
) -> None:
    state = after([started(), *map(chunk, before)])
    copy = deepcopy(state)

    once = after([chunk(next_chunk)], state)
    twice = after([chunk(next_chunk)], state)

    assert state == copy
    assert once == twice


@pytest.mark.behaviour("AT-144", "AT-163")
@pytest.mark.parametrize(
    "message",
    [
        None,
        7,
        b"{}",
        "",
        "not json",
        "[1]",
        {},
        {"type": "cf_agent_state", "state": 1},
        '{"type":"rpc"}',
        {"type": "agent-tool-event"},
        {"type": "agent-tool-event", "event": "started"},
        {"type": "agent-tool-event", "event": {"kind": "started"}},
        {"type": "agent-tool-event", "event": {"kind": "started", "runId": 1}},
        {"type": "agent-tool-event", "event": {"kind": "started", "runId": "new"}},
        {"type": "agent-tool-event", "event": {"kind": "paused", "runId": "r"}},
        {"type": "agent-tool-event", "event": {"kind": 3, "runId": "r"}},
    ],
)
def test_a_foreign_frame_gives_the_same_state_object(message: object) -> None:
    state = after([started()])

    assert apply_agent_tool_event(state, message, now_ms=NOW) is state


def test_a_frame_may_come_decoded_or_as_text() -> None:
    decoded: JsonObject = {
        "type": "agent-tool-event",
        "sequence": 0,
        "event": {"kind": "started", "runId": "r", "agentType": "A", "order": 0},
    }
    empty = AgentToolState()

    assert apply_agent_tool_event(empty, decoded, now_ms=NOW) == apply_agent_tool_event(
        empty, dumps(decoded), now_ms=NOW
    )


@pytest.mark.behaviour("AT-145")
@pytest.mark.parametrize(
    "event", [chunk(chunks.text_delta("t", "x")), FINISHED, FAILED, ABORTED, INTERRUPTED]
)
def test_an_event_before_started_is_ignored(event: RunEvent) -> None:
    state = AgentToolState()

    assert after([event], state) is state


@pytest.mark.behaviour("AT-146")
def test_started_again_refreshes_the_header_and_keeps_the_parts() -> None:
    refreshed = run_after(
        chunk(chunks.text_delta("t", "x")),
        run_events.Started(run_id="r", agent_type="Planner", order=3, input_preview="p"),
    )

    assert (refreshed.agent_type, refreshed.order, refreshed.input_preview) == ("Planner", 3, "p")
    assert refreshed.parts[0]["text"] == "x"


@pytest.mark.behaviour("AT-147")
@pytest.mark.parametrize("end", [FINISHED, FAILED, ABORTED, INTERRUPTED])
def test_started_does_not_revive_a_run_that_ended(end: RunEvent) -> None:
    state = after([started(), end])

    assert after([started(order=5)], state) is state


@pytest.mark.behaviour("AT-148")
@pytest.mark.parametrize("body", ["", "{", "[]", "null", "1"])
def test_a_body_that_is_no_chunk_changes_nothing(body: str) -> None:
    state = after([started()])

    assert after([run_events.Chunk(run_id="r", body=body)], state) is state


@pytest.mark.behaviour("AT-149")
def test_a_chunk_after_the_end_still_adds_text_and_keeps_the_status() -> None:
    run = run_after(FINISHED, chunk(chunks.text_delta("t", "late")))

    assert run.status == "completed"
    assert run.parts[0]["text"] == "late"


@pytest.mark.behaviour("AT-150")
def test_finished_completes_with_the_summary_and_no_error() -> None:
    run = run_after(FAILED, FINISHED)

    assert (run.status, run.summary, run.error) == ("completed", "done", None)


@pytest.mark.behaviour("AT-151")
@pytest.mark.parametrize(
    ("event", "status", "error"), [(FAILED, "error", "kaput"), (ABORTED, "aborted", "asked")]
)
def test_a_failure_carries_its_text_and_keeps_a_summary(
    event: RunEvent, status: str, error: str
) -> None:
    run = run_after(FINISHED, event)

    assert (run.status, run.error, run.summary) == (status, error, "done")


@pytest.mark.behaviour("AT-152")
def test_interrupted_says_why_and_whether_the_child_goes_on() -> None:
    run = run_after(INTERRUPTED)

    assert (run.status, run.error) == ("interrupted", "lost")
    assert (run.reason, run.child_still_running) == ("no-progress", True)


@pytest.mark.behaviour("AT-153", "QK-007", "D27")
@pytest.mark.parametrize(
    ("repair", "status"), [(FINISHED, "completed"), (FAILED, "error"), (ABORTED, "aborted")]
)
def test_a_repair_forgets_why_the_run_was_interrupted(repair: RunEvent, status: str) -> None:
    run = run_after(INTERRUPTED, repair)

    assert run.status == status
    assert (run.reason, run.child_still_running) == (None, None)


@pytest.mark.behaviour("AT-154")
def test_runs_are_grouped_by_tool_call_and_sorted_by_order_then_id() -> None:
    state = AgentToolState()
    for run_id, order, call in [
        ("z", 0, "c"),
        ("b", 1, "c"),
        ("a", 1, "c"),
        ("y", 0, "d"),
        ("u2", 1, None),
        ("u1", 1, None),
    ]:
        state = apply_agent_tool_event(state, frame(started(run_id, order), call=call), now_ms=NOW)
    for run_id, call in [("a", "c"), ("u1", None)]:
        finished = frame(run_events.Finished(run_id=run_id), call=call)
        state = apply_agent_tool_event(state, finished, now_ms=NOW)

    groups = {
        call: [run.run_id for run in runs] for call, runs in state.runs_by_tool_call_id.items()
    }
    assert groups == {"c": ["z", "a", "b"], "d": ["y"]}
    assert [run.run_id for run in state.unbound_runs] == ["u1", "u2"]
    assert state.runs_by_tool_call_id["c"][1] is state.runs_by_id["a"]
    assert state.unbound_runs[0].status == "completed"


@pytest.mark.behaviour("AT-154")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["r1", "r2", "r3"]),
            st.sampled_from(["c", "d", None]),
            st.integers(0, 2),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_the_groups_always_hold_the_runs_there_are(
    steps: list[tuple[str, str | None, int, bool]],
) -> None:
    state = AgentToolState()
    for run_id, call, order, is_start in steps:
        event = started(run_id, order) if is_start else chunk(chunks.text_delta("t", "x"), run_id)
        state = apply_agent_tool_event(state, frame(event, call=call), now_ms=NOW)

    grouped = [*state.unbound_runs, *(r for g in state.runs_by_tool_call_id.values() for r in g)]
    assert sorted(grouped, key=lambda run: run.run_id) == [
        state.runs_by_id[run_id] for run_id in sorted(state.runs_by_id)
    ]
    for call_id, group in state.runs_by_tool_call_id.items():
        assert {run.parent_tool_call_id for run in group} == {call_id}
        assert [*group] == sorted(group, key=lambda run: (run.order, run.run_id))


@pytest.mark.behaviour("AT-155")
def test_progress_replaces_progress_and_adds_no_part() -> None:
    run = run_after(
        chunk(chunks.progress("p1", {"fraction": 0.1, "phase": "read", "data": {"any": 1}})),
        chunk(chunks.progress("p2", {"fraction": 0.2, "message": "2/10"})),
    )

    assert run.to_json()["progress"] == {"fraction": 0.2, "message": "2/10", "at": NOW}
    assert run.parts == ()


@pytest.mark.behaviour("AT-155")
def test_progress_keeps_only_fields_of_the_right_type() -> None:
    signal: JsonObject = {"fraction": True, "message": 1, "phase": None, "data": None}

    assert run_after(chunk(chunks.progress("p", signal))).to_json()["progress"] == {
        "data": None,
        "at": NOW,
    }


@pytest.mark.behaviour("AT-156")
def test_milestones_are_sorted_and_kept_once_by_sequence_and_land_in_the_parts() -> None:
    run = run_after(
        milestone("second", 1, 20, data={"seen": 4}),
        milestone("first", 0, 10),
        milestone("again", 1, 30),
    )

    assert run.to_json()["milestones"] == [
        {"name": "first", "sequence": 0, "at": 10},
        {"name": "second", "sequence": 1, "at": 20, "data": {"seen": 4}},
    ]
    assert [part["type"] for part in run.parts] == ["data-agent-milestone"] * 3


@pytest.mark.behaviour("AT-157")
def test_a_new_milestone_becomes_the_progress_unless_it_is_older() -> None:
    newer = run_after(
        chunk(chunks.progress("p", {"fraction": 0.1})),
        milestone("ready", 0, NOW, fraction=0.5, message="m", phase="p", data=1),
    )
    older = run_after(
        chunk(chunks.progress("p", {"fraction": 0.1})), milestone("ready", 0, NOW - 1)
    )
    repeated = run_after(
        milestone("ready", 0, 10),
        chunk(chunks.progress("p", {"fraction": 0.9})),
        milestone("ready", 0, NOW + 5),
    )

    assert newer.to_json()["progress"] == {
        "fraction": 0.5,
        "message": "m",
        "phase": "p",
        "milestone": "ready",
        "at": NOW,
    }
    assert older.to_json()["progress"] == {"fraction": 0.1, "at": NOW}
    assert len(older.milestones) == 1
    assert repeated.to_json()["progress"] == {"fraction": 0.9, "at": NOW}


@pytest.mark.behaviour("AT-158")
def test_a_milestone_needs_a_name_and_has_defaults_for_the_rest() -> None:
    nameless = run_after(chunk(chunks.milestone({"sequence": 3})))
    bare = run_after(chunk(chunks.milestone({"name": "ready"})))

    assert nameless.milestones == ()
    assert nameless.progress is None
    assert bare.to_json()["milestones"] == [{"name": "ready", "sequence": 0, "at": NOW}]


@pytest.mark.behaviour("AT-159", "D27")
@pytest.mark.parametrize(
    ("event", "identity"),
    [
        (chunk(chunks.text_delta("t", "x")), "seq:7"),
        (chunk(chunks.text_delta("t", '"data-agent-progress"')), "seq:7"),
        (run_events.Chunk(run_id="r", body="{", unstored_id="u"), "unstored:u"),
        (chunk(chunks.progress("p1", {})), "progress:p1"),
        (
            run_events.Chunk(run_id="r", body='{"type":"data-agent-progress","data":{}}'),
            'progress:7:{"type":"data-agent-progress","data":{}}',
        ),
        (milestone("ready", 2, 5), "milestone:2"),
        (chunk({"type": "data-agent-milestone"}), "seq:7"),
        (FINISHED, 'event:{"kind":"finished","runId":"r","summary":"done"}'),
    ],
)
def test_a_frame_is_told_apart_by_what_it_is(event: RunEvent, identity: str) -> None:
    assert frame_identity(frame(event, sequence=7)) == ("c", "r", identity)


@pytest.mark.behaviour("AT-159")
def test_a_run_without_a_tool_call_and_a_replayed_frame_have_an_identity_too() -> None:
    live = frame(FINISHED, call=None)
    replayed = encode_event(FINISHED, sequence=9, parent_tool_call_id=None, replay=True)

    assert frame_identity(live) == frame_identity(replayed)
    assert frame_identity(live) == (
        "",
        "r",
        'event:{"kind":"finished","runId":"r","summary":"done"}',
    )


@pytest.mark.parametrize("message", [None, "x", {"type": "rpc"}, {"type": "agent-tool-event"}])
def test_a_foreign_frame_has_no_identity(message: object) -> None:
    assert frame_identity(message) is None


@pytest.mark.behaviour("AT-160", "AT-161")
def test_a_live_run_and_its_replay_give_one_copy_of_the_text() -> None:
    events: list[RunEvent] = [
        started(),
        *(chunk(chunks.text_delta("t", word)) for word in ("one ", "one ", "two")),
        milestone("ready", 0, 5),
        FINISHED,
    ]
    live = [frame(event, sequence=number) for number, event in enumerate(events)]
    replay = [
        encode_event(event, sequence=number, parent_tool_call_id="c", replay=True)
        for number, event in enumerate(events)
    ]

    state, seen = AgentToolState(), set()
    for message in [*live[:4], *replay, *live]:
        identity = frame_identity(message)
        if identity not in seen:
            seen.add(identity)
            state = apply_agent_tool_event(state, message, now_ms=NOW)

    run = state.runs_by_id["r"]
    assert run.parts[0]["text"] == "one one two"
    assert len(run.milestones) == 1
    assert run.status == "completed"
