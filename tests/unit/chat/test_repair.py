"""Whatever a producer gives, clients can follow it (PROTOCOL 4.10)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.chat.repair import ChunkRepair
from ramet.chat.turn import Chunk
from ramet.core.json import JsonObject
from ramet.errors import UnknownModelResult
from tests.unit.chat.support import delta

START: JsonObject = {"type": "start", "messageId": "asst_1"}
CALL: JsonObject = {"toolCallId": "c1", "toolName": "look"}


def repaired(*given_chunks: Chunk) -> list[JsonObject]:
    repair = ChunkRepair("asst_1")
    taken = [chunk for given_chunk in given_chunks for chunk in repair.take(given_chunk)]
    return [*taken, *repair.end()]


def test_a_stream_that_is_right_passes_with_the_servers_message_id() -> None:
    rest: list[JsonObject] = [
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "r1"},
        {"type": "reasoning-delta", "id": "r1", "delta": "hm"},
        {"type": "reasoning-end", "id": "r1"},
        {"type": "text-start", "id": "t1"},
        delta("hello"),
        {"type": "text-end", "id": "t1"},
        {"type": "tool-input-start", **CALL},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{}"},
        {"type": "tool-input-available", **CALL, "input": {}},
        {"type": "tool-output-available", "toolCallId": "c1", "output": None},
        {"type": "data-note", "data": [1]},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    assert repaired({"type": "start", "messageMetadata": {"a": 1}}, *rest) == [
        {**START, "messageMetadata": {"a": 1}},
        *rest,
    ]


def test_a_missing_start_is_added_and_a_second_one_only_brings_its_metadata() -> None:
    assert repaired({"type": "start-step"}) == [START, {"type": "start-step"}]
    assert repaired({"type": "start"}, {"type": "start", "messageMetadata": {"a": 1}}) == [
        START,
        {"type": "message-metadata", "messageMetadata": {"a": 1}},
    ]


def test_a_continuation_starts_without_a_message_id() -> None:
    assert list(ChunkRepair(None).take({"type": "start", "messageId": "x"})) == [{"type": "start"}]


def test_plain_text_becomes_a_part_that_anything_else_ends() -> None:
    assert repaired("Hel", "", "lo", {"type": "start-step"}, "again") == [
        START,
        {"type": "text-start", "id": "plain-1"},
        {"type": "text-delta", "id": "plain-1", "delta": "Hel"},
        {"type": "text-delta", "id": "plain-1", "delta": "lo"},
        {"type": "text-end", "id": "plain-1"},
        {"type": "start-step"},
        {"type": "text-start", "id": "plain-2"},
        {"type": "text-delta", "id": "plain-2", "delta": "again"},
        {"type": "text-end", "id": "plain-2"},
    ]


def test_a_delta_of_a_part_that_nobody_opened_opens_it() -> None:
    assert repaired(delta("x")) == [
        START,
        {"type": "text-start", "id": "t1"},
        delta("x"),
        {"type": "text-end", "id": "t1"},
    ]
    without_id: JsonObject = {"type": "text-delta", "delta": "x"}
    assert repaired(without_id)[1:3] == [
        {"type": "text-start", "id": "text"},
        {"type": "text-delta", "delta": "x", "id": "text"},
    ]


def test_the_end_of_a_part_that_is_not_open_is_left_out() -> None:
    assert repaired({"type": "text-end", "id": "t1"}) == [START]


def test_the_end_of_a_step_ends_the_parts_that_are_open() -> None:
    assert repaired(delta("x"), {"type": "finish-step"}, delta("y"))[3:] == [
        {"type": "text-end", "id": "t1"},
        {"type": "finish-step"},
        {"type": "text-start", "id": "t1"},
        delta("y"),
        {"type": "text-end", "id": "t1"},
    ]


@pytest.mark.behaviour("MB-003")
def test_a_tool_call_never_goes_back() -> None:
    available: JsonObject = {"type": "tool-input-available", **CALL, "input": {"a": 1}}
    assert repaired(
        {"type": "tool-input-start", **CALL},
        {"type": "tool-input-start", **CALL},
        available,
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{"},
        {"type": "tool-input-available", **CALL, "input": {}},
    ) == [START, {"type": "tool-input-start", **CALL}, available]


def test_a_result_of_an_unknown_tool_call_is_left_out() -> None:
    assert repaired({"type": "tool-output-available", "toolCallId": "c9", "output": 1}) == [START]
    known = ChunkRepair(None, known_calls=["c9"])
    output: JsonObject = {"type": "tool-output-available", "toolCallId": "c9", "output": 1}
    assert list(known.take(output))[1:] == [output]


def test_what_has_no_type_is_refused() -> None:
    with pytest.raises(UnknownModelResult, match="A chunk needs a type"):
        repaired({"delta": "x"})


def test_a_chunk_is_a_copy_that_its_producer_cannot_change_any_more() -> None:
    output: dict[str, object] = {"n": 1}
    chunk: dict[str, object] = {"type": "data-note", "data": output}
    repair = ChunkRepair("asst_1")
    *_, taken = repair.take(chunk)
    output["n"] = 2
    assert taken == {"type": "data-note", "data": {"n": 1}}


_IDS = st.sampled_from(["a", "b"])
_CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    st.text(max_size=3),
    st.builds(
        lambda kind, part_id: {"type": kind, "id": part_id, "delta": "x"},
        st.sampled_from(
            [
                f"{kind}-{step}"
                for kind in ("text", "reasoning")
                for step in ("start", "delta", "end")
            ]
        ),
        _IDS,
    ),
    st.builds(
        lambda kind, call_id: {"type": kind, "toolCallId": call_id, "toolName": "t", "input": {}},
        st.sampled_from(
            [
                "tool-input-start",
                "tool-input-delta",
                "tool-input-available",
                "tool-output-available",
                "tool-output-error",
            ]
        ),
        _IDS,
    ),
    st.sampled_from([{"type": kind} for kind in ("start", "start-step", "finish-step", "finish")]),
)


@given(st.lists(_CHUNKS, max_size=30))
def test_no_chunk_ever_refers_to_something_that_is_not_open(given_chunks: list[Chunk]) -> None:
    open_parts: set[tuple[str, str]] = set()
    calls: set[str] = set()
    chunks = repaired(*given_chunks)
    assert not chunks or chunks[0] == START
    assert [chunk["type"] for chunk in chunks].count("start") <= 1
    for chunk in chunks:
        kind, _, step = str(chunk["type"]).rpartition("-")
        if kind in {"text", "reasoning"}:
            part = (kind, str(chunk["id"]))
            assert step == "start" or part in open_parts
            (open_parts.discard if step == "end" else open_parts.add)(part)
        elif chunk["type"] in {"finish-step", "finish"}:
            assert not open_parts
        elif "toolCallId" in chunk:
            opens = chunk["type"] in {"tool-input-start", "tool-input-available"}
            assert opens or chunk["toolCallId"] in calls
            calls.add(str(chunk["toolCallId"]))
    assert not open_parts


def texts(chunks: Iterable[JsonObject]) -> str:
    return "".join(str(chunk.get("delta", "")) for chunk in chunks)


@given(st.lists(st.text(), max_size=20))
def test_no_text_is_lost(pieces: list[str]) -> None:
    assert texts(repaired(*pieces)) == "".join(pieces)
