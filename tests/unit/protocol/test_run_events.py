"""Agent-tool events as clients get them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, loads
from ramet.protocol import run_events
from ramet.protocol.run_events import RunEvent, chunk_envelope, encode_event


def encoded(event: RunEvent, sequence: int = 0) -> JsonObject:
    frame = loads(encode_event(event, sequence=sequence, parent_tool_call_id="c", replay=False))
    assert isinstance(frame, dict)
    return frame


@pytest.mark.behaviour("AT-122", "AT-124")
def test_a_live_frame_has_the_envelope_and_no_replay_key() -> None:
    event = run_events.Started(
        run_id="r", agent_type="Researcher", input_preview={"q": 1}, display={"name": "R"}
    )

    assert encoded(event) == {
        "type": "agent-tool-event",
        "parentToolCallId": "c",
        "sequence": 0,
        "event": {
            "kind": "started",
            "runId": "r",
            "agentType": "Researcher",
            "inputPreview": {"q": 1},
            "order": 0,
            "display": {"name": "R"},
        },
    }


@pytest.mark.behaviour("AT-122")
def test_a_replayed_frame_says_so_and_a_run_without_a_tool_call_names_none() -> None:
    frame = encode_event(
        run_events.Aborted(run_id="r"), sequence=9, parent_tool_call_id=None, replay=True
    )

    assert loads(frame) == {
        "type": "agent-tool-event",
        "sequence": 9,
        "event": {"kind": "aborted", "runId": "r"},
        "replay": True,
    }


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            run_events.Started(run_id="r", agent_type="A", order=2),
            {"kind": "started", "runId": "r", "agentType": "A", "order": 2},
        ),
        (
            run_events.Chunk(run_id="r", body='{"type":"start"}'),
            {"kind": "chunk", "runId": "r", "body": '{"type":"start"}'},
        ),
        (
            run_events.Chunk(run_id="r", body="{}", unstored_id="u"),
            {"kind": "chunk", "runId": "r", "body": "{}", "unstoredId": "u"},
        ),
        (
            run_events.Finished(run_id="r", summary="done"),
            {"kind": "finished", "runId": "r", "summary": "done"},
        ),
        (run_events.Finished(run_id="r"), {"kind": "finished", "runId": "r", "summary": ""}),
        (
            run_events.Failed(run_id="r", error="kaput"),
            {"kind": "error", "runId": "r", "error": "kaput"},
        ),
        (
            run_events.Failed(run_id="r"),
            {"kind": "error", "runId": "r", "error": "The agent tool run failed."},
        ),
        (
            run_events.Aborted(run_id="r", reason="asked"),
            {"kind": "aborted", "runId": "r", "reason": "asked"},
        ),
        (
            run_events.Interrupted(
                run_id="r", error="lost", reason="no-progress", child_still_running=False
            ),
            {
                "kind": "interrupted",
                "runId": "r",
                "error": "lost",
                "reason": "no-progress",
                "childStillRunning": False,
            },
        ),
        (
            run_events.Interrupted(run_id="r"),
            {
                "kind": "interrupted",
                "runId": "r",
                "error": "The agent tool run was interrupted before it could finish.",
            },
        ),
    ],
)
@pytest.mark.behaviour("AT-123", "AT-124", "AT-125", "AT-126", "AT-127", "AT-128", "AT-129")
def test_an_event_has_exactly_its_keys(event: RunEvent, expected: JsonObject) -> None:
    assert encoded(event)["event"] == expected


@pytest.mark.behaviour("AT-068")
def test_a_null_input_is_previewed_as_null_and_an_absent_one_is_left_out() -> None:
    null = run_events.event_json(run_events.Started(run_id="r", agent_type="A", input_preview=None))
    absent = run_events.event_json(run_events.Started(run_id="r", agent_type="A"))

    assert null["inputPreview"] is None
    assert "inputPreview" not in absent


texts = st.text(st.characters(codec="utf-8"))


@given(texts, st.none() | texts, texts, st.integers(0, 10**9))
def test_the_envelope_of_a_run_frames_chunks_like_any_event(
    run_id: str, tool_call_id: str | None, body: str, sequence: int
) -> None:
    for replay in (False, True):
        envelope = chunk_envelope(run_id, tool_call_id, replay=replay)

        assert envelope.frame(sequence, body) == encode_event(
            run_events.Chunk(run_id=run_id, body=body),
            sequence=sequence,
            parent_tool_call_id=tool_call_id,
            replay=replay,
        )


@pytest.mark.behaviour("AT-058", "AT-059")
def test_interrupted_is_the_only_terminal_that_is_not_hard() -> None:
    assert frozenset({"completed", "error", "aborted"}) == run_events.HARD_TERMINAL
