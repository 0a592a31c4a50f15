"""How chunks become parts, purely and incrementally."""

from collections.abc import Iterable
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks
from ramet.protocol.parts import MessageFold, apply_chunk_to_parts, settle_parts
from tests.unit.protocol.chunk_strategies import chunk_lists

INPUT: JsonObject = {"q": 1}


def folded(applied: Iterable[JsonObject], parts: Iterable[JsonObject] = ()) -> list[JsonObject]:
    result = list(parts)
    for chunk in applied:
        result = apply_chunk_to_parts(result, chunk)
    return result


def call(state: str, **fields: JsonValue) -> JsonObject:
    return {
        "type": "tool-search",
        "toolCallId": "c",
        "toolName": "search",
        "state": state,
        **fields,
    }


@pytest.mark.behaviour("MB-001")
@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_text_opens_grows_and_ends(kind: str) -> None:
    started = folded([{"type": f"{kind}-start", "id": "t"}])
    grown = folded(
        [{"type": f"{kind}-delta", "id": "t", "delta": word} for word in ("Hel", "lo")], started
    )
    ended = folded([{"type": f"{kind}-end", "id": "t"}], grown)

    assert started == [{"type": kind, "text": "", "state": "streaming"}]
    assert grown == [{"type": kind, "text": "Hello", "state": "streaming"}]
    assert ended == [{"type": kind, "text": "Hello", "state": "done"}]


@pytest.mark.behaviour("MB-001")
def test_a_delta_without_a_start_opens_a_part_and_ids_do_not_matter() -> None:
    parts = folded([chunks.text_delta("t1", "a"), chunks.text_delta("t2", "b")])

    assert parts == [{"type": "text", "text": "ab", "state": "streaming"}]


@pytest.mark.behaviour("MB-001")
def test_a_delta_goes_to_the_last_part_of_its_type() -> None:
    parts = folded(
        [
            chunks.text_delta("t", "1"),
            chunks.text_start("u"),
            chunks.reasoning_delta("r", "think"),
            chunks.text_delta("t", "2"),
        ]
    )

    assert [part["text"] for part in parts] == ["1", "2", "think"]


@pytest.mark.behaviour("MB-001")
def test_provider_metadata_of_a_text_is_merged() -> None:
    parts = folded(
        [
            {"type": "reasoning-start", "id": "r", "providerMetadata": {"a": 1, "b": 1}},
            {"type": "reasoning-delta", "id": "r", "delta": "x", "providerMetadata": {"b": 2}},
            {"type": "reasoning-end", "id": "r", "providerMetadata": {"c": 3}},
        ]
    )

    assert parts == [
        {
            "type": "reasoning",
            "text": "x",
            "state": "done",
            "providerMetadata": {"a": 1, "b": 2, "c": 3},
        }
    ]


@pytest.mark.behaviour("MB-001")
@pytest.mark.parametrize(
    "chunk",
    [chunks.text_end("t"), {"type": "text-delta", "id": "t"}, {"type": "text-delta", "delta": 1}],
)
def test_an_end_without_a_part_and_a_delta_without_text_change_nothing(chunk: JsonObject) -> None:
    assert apply_chunk_to_parts([], chunk) == []


@pytest.mark.behaviour("MB-002")
def test_a_tool_call_goes_through_its_states() -> None:
    steps = [
        chunks.tool_input_start("c", "search"),
        chunks.tool_input_delta("c", '{"q":1}'),
        chunks.tool_input_available("c", "search", INPUT),
        chunks.tool_output_available("c", 1, preliminary=True),
        chunks.tool_output_available("c", 2),
    ]

    assert [folded(steps[:count]) for count in range(1, len(steps) + 1)] == [
        [call("input-streaming")],
        [call("input-streaming")],
        [call("input-available", input=INPUT)],
        [call("output-available", input=INPUT, output=1, preliminary=True)],
        [call("output-available", input=INPUT, output=2)],
    ]


@pytest.mark.behaviour("MB-002")
@pytest.mark.parametrize(
    ("chunk", "part"),
    [
        (
            chunks.tool_output_error("c", "no"),
            call("output-error", input=INPUT, errorText="no"),
        ),
        (chunks.tool_output_denied("c"), call("output-denied", input=INPUT)),
        (
            chunks.tool_input_error("c", "search", tool_input="{", error_text="bad"),
            call("output-error", input={}, errorText="bad"),
        ),
        (
            chunks.tool_approval_request("ap", "c"),
            call("approval-requested", input=INPUT, approval={"id": "ap"}),
        ),
    ],
)
def test_a_call_with_input_can_fail_be_denied_or_wait_for_a_person(
    chunk: JsonObject, part: JsonObject
) -> None:
    assert folded([chunks.tool_input_available("c", "search", INPUT), chunk]) == [part]


@pytest.mark.behaviour("MB-002")
def test_an_input_error_alone_makes_a_failed_call() -> None:
    chunk = chunks.tool_input_error("c", "search", tool_input=INPUT, error_text="bad")

    assert folded([chunk]) == [call("output-error", input=INPUT, errorText="bad")]


@pytest.mark.behaviour("MB-002")
def test_an_approval_is_answered_by_its_id_and_then_the_tool_runs() -> None:
    asked = [
        chunks.tool_input_available("c", "search", INPUT),
        chunks.tool_approval_request("ap", "c"),
    ]
    yes: JsonObject = {"type": "tool-approval-response", "approvalId": "ap", "approved": True}
    no: JsonObject = {**yes, "approved": False, "reason": "risky"}
    approved: JsonObject = {"id": "ap", "approved": True}
    denied: JsonObject = {"id": "ap", "approved": False, "reason": "risky"}

    assert folded([*asked, yes]) == [call("approval-responded", input=INPUT, approval=approved)]
    assert folded([*asked, yes, chunks.tool_output_available("c", 1)]) == [
        call("output-available", input=INPUT, approval=approved, output=1)
    ]
    assert folded([*asked, no, chunks.tool_output_denied("c")]) == [
        call("output-denied", input=INPUT, approval=denied)
    ]
    assert folded([*asked, chunks.tool_output_denied("c")]) == [
        call("output-denied", input=INPUT, approval={"id": "ap", "approved": False})
    ]


@pytest.mark.behaviour("MB-002")
@pytest.mark.parametrize(
    "chunk",
    [
        chunks.tool_output_available("other", 1),
        chunks.tool_output_error("other", "no"),
        chunks.tool_output_denied("other"),
        chunks.tool_approval_request("ap", "other"),
        {"type": "tool-approval-response", "approvalId": "ap", "approved": True},
        {"type": "tool-input-start", "toolName": "search"},
        {"type": "tool-input-start", "toolCallId": "d"},
    ],
)
def test_a_chunk_for_an_unknown_call_changes_nothing(chunk: JsonObject) -> None:
    parts = [call("input-available", input=INPUT)]

    assert apply_chunk_to_parts(parts, chunk) == parts


@pytest.mark.behaviour("MB-002")
def test_a_dynamic_call_keeps_its_tools_name_and_options_are_kept() -> None:
    started: JsonObject = {
        "type": "tool-input-start",
        "toolCallId": "c",
        "toolName": "search",
        "dynamic": True,
        "title": "Search",
        "providerExecuted": True,
        "providerMetadata": {"p": 1},
    }
    output: JsonObject = {
        "type": "tool-output-available",
        "toolCallId": "c",
        "output": 1,
        "providerMetadata": {"p": 2},
    }

    assert folded([started, output]) == [
        {
            "type": "dynamic-tool",
            "toolName": "search",
            "toolCallId": "c",
            "title": "Search",
            "providerExecuted": True,
            "callProviderMetadata": {"p": 1},
            "resultProviderMetadata": {"p": 2},
            "state": "output-available",
            "input": {},
            "output": 1,
        }
    ]


@pytest.mark.behaviour("MB-003")
@pytest.mark.parametrize(
    "state",
    [
        "input-available",
        "approval-requested",
        "approval-responded",
        "output-available",
        "output-error",
        "output-denied",
    ],
)
def test_late_input_chunks_do_not_move_a_call_back(state: str) -> None:
    parts = [call(state, input=INPUT)]

    assert parts == folded(
        [
            chunks.tool_input_start("c", "search"),
            chunks.tool_input_delta("c", "{"),
            chunks.tool_input_available("c", "search", {"q": 2}),
        ],
        parts,
    )


@pytest.mark.behaviour("MB-003")
def test_a_second_input_start_changes_nothing() -> None:
    starts = [chunks.tool_input_start("c", "search"), chunks.tool_input_start("c", "plan")]

    assert folded(starts) == [call("input-streaming")]


DECIDED = [
    call("output-available", input=INPUT, output=1),
    call("output-error", input=INPUT, errorText="no"),
    call("output-denied", input=INPUT),
    call("approval-responded", input=INPUT, approval={"id": "ap", "approved": True}),
]


@pytest.mark.behaviour("MB-004")
@pytest.mark.parametrize("part", DECIDED)
@pytest.mark.parametrize(
    "chunk",
    [
        chunks.tool_output_denied("c"),
        chunks.tool_approval_request("ap2", "c"),
        chunks.tool_input_error("c", "search", tool_input={}, error_text="bad"),
    ],
)
def test_denial_approval_and_input_errors_never_overwrite_what_is_decided(
    part: JsonObject, chunk: JsonObject
) -> None:
    assert apply_chunk_to_parts([part], chunk) == [part]


@pytest.mark.behaviour("MB-004")
@pytest.mark.parametrize("part", DECIDED)
def test_an_output_overwrites_what_is_decided(part: JsonObject) -> None:
    (done,) = apply_chunk_to_parts([part], chunks.tool_output_available("c", 9))
    (failed,) = apply_chunk_to_parts([part], chunks.tool_output_error("c", "late"))

    assert (done["state"], done["output"], done.get("errorText")) == ("output-available", 9, None)
    assert (failed["state"], failed["errorText"]) == ("output-error", "late")
    assert "output" not in failed


@pytest.mark.behaviour("MB-005")
@pytest.mark.parametrize(
    ("given_input", "stored"),
    [({"q": 1}, {"q": 1}), ('{"q":1}', {"q": 1}), ("{", {}), ("[1]", {}), ([1], {}), (None, {})],
)
def test_a_tool_input_is_stored_as_an_object(given_input: JsonValue, stored: JsonObject) -> None:
    (part,) = folded([chunks.tool_input_available("c", "search", given_input)])

    assert part["input"] == stored


@pytest.mark.behaviour("MB-006", "D23")
def test_data_is_appended_updated_in_place_by_type_and_id_and_dropped_when_transient() -> None:
    parts = folded(
        [
            chunks.data("chart", 1, data_id="d"),
            chunks.data("table", 1, data_id="d"),
            chunks.data("chart", 2),
            chunks.data("chart", 3, data_id="d"),
            chunks.data("chart", 4, data_id="d", transient=True),
            chunks.progress("p", {"fraction": 0.5}),
            chunks.milestone({"name": "m"}),
        ]
    )

    assert parts == [
        {"type": "data-chart", "id": "d", "data": 3},
        {"type": "data-table", "id": "d", "data": 1},
        {"type": "data-chart", "data": 2},
        {"type": "data-agent-milestone", "data": {"name": "m"}},
    ]


@pytest.mark.behaviour("MB-007")
def test_steps_files_and_sources_are_appended_and_unknown_chunks_ignored() -> None:
    file: JsonObject = {"type": "file", "url": "data:,x", "mediaType": "text/plain"}
    url: JsonObject = {"type": "source-url", "sourceId": "s", "url": "http://x", "title": "X"}
    document: JsonObject = {
        "type": "source-document",
        "sourceId": "s",
        "mediaType": "text/plain",
        "title": "X",
        "filename": "x.txt",
        "providerMetadata": {"p": 1},
    }

    parts = folded(
        [
            chunks.start("m"),
            chunks.start_step(),
            {"type": "step-start"},
            file,
            url,
            document,
            {"type": "file", "url": "data:,x"},
            {"type": "reset-step"},
            {"type": "never-heard-of"},
            {"type": 7},
            {},
            chunks.finish_step(),
            chunks.finish("stop"),
        ]
    )

    assert parts == [{"type": "step-start"}, {"type": "step-start"}, file, url, document]


@pytest.mark.behaviour("AT-143")
@given(chunk_lists)
def test_applying_a_chunk_never_changes_what_it_is_given(applied: list[JsonObject]) -> None:
    parts: list[JsonObject] = []
    for chunk in applied:
        parts_before, chunk_before = deepcopy(parts), deepcopy(chunk)

        once = apply_chunk_to_parts(parts, chunk)
        twice = apply_chunk_to_parts(parts, chunk)

        assert (parts, chunk) == (parts_before, chunk_before)
        assert once == twice
        parts = once


@given(chunk_lists, chunk_lists)
def test_the_fold_gives_what_chunk_by_chunk_application_gives(
    stored: list[JsonObject], applied: list[JsonObject]
) -> None:
    parts = folded(stored)
    fold = MessageFold("m", parts=parts)
    unwatched = MessageFold("m", parts=parts)

    for chunk in applied:
        fold.apply(chunk)
        unwatched.apply(chunk)
        parts = apply_chunk_to_parts(parts, chunk)
        assert fold.parts() == parts

    assert unwatched.message() == fold.message()


@pytest.mark.behaviour("MB-008")
def test_start_names_the_message_and_metadata_is_merged() -> None:
    fold = MessageFold("mine")

    fold.apply(chunks.start("asst_1", metadata={"usage": {"input": 1}, "model": "a"}))
    fold.apply(chunks.text_delta("t", "hi"))
    fold.apply(chunks.message_metadata({"usage": {"output": 2}}))
    fold.apply(chunks.finish("stop", metadata={"model": "b"}))

    assert fold.message() == {
        "id": "asst_1",
        "role": "assistant",
        "parts": [{"type": "text", "text": "hi", "state": "streaming"}],
        "metadata": {"usage": {"input": 1, "output": 2}, "model": "b"},
    }


@pytest.mark.behaviour("MB-008")
def test_a_continuation_keeps_the_id_and_adds_to_the_stored_parts() -> None:
    stored: JsonObject = {"type": "text", "text": "before", "state": "done"}
    fold = MessageFold("asst_1", parts=[stored], metadata={"a": 1}, continuation=True)

    fold.apply(chunks.start("other"))
    fold.apply(chunks.text_start("t"))
    fold.apply(chunks.text_delta("t", "after"))

    assert fold.message() == {
        "id": "asst_1",
        "role": "assistant",
        "parts": [stored, {"type": "text", "text": "after", "state": "streaming"}],
        "metadata": {"a": 1},
    }


@pytest.mark.behaviour("MB-008")
def test_an_error_chunk_is_the_turns_error_and_no_part() -> None:
    fold = MessageFold("m")

    fold.apply(chunks.error("kaput"))

    assert fold.error == "kaput"
    assert fold.parts() == []


def test_a_message_that_was_given_out_does_not_change_any_more() -> None:
    fold = MessageFold("m")
    fold.apply(chunks.start("m", metadata={"a": 1}))
    fold.apply(chunks.text_delta("t", "one"))
    message = fold.message()
    before = deepcopy(message)

    fold.apply(chunks.text_delta("t", "two"))
    fold.apply(chunks.finish(metadata={"a": 2}))

    assert message == before
    assert fold.parts()[0]["text"] == "onetwo"


@pytest.mark.behaviour("CW-007")
def test_step_markers_and_empty_text_are_no_content() -> None:
    fold = MessageFold("m")
    for chunk in (chunks.start("m"), chunks.start_step(), chunks.text_start("t")):
        fold.apply(chunk)
    assert not fold.has_content

    fold.apply(chunks.text_delta("t", "x"))
    assert fold.has_content


@pytest.mark.behaviour("D4")
def test_settling_closes_what_a_dead_producer_left_open() -> None:
    waiting = call("approval-requested", input=INPUT, approval={"id": "ap"})
    done = call("output-available", input=INPUT, output=1)
    parts: list[JsonObject] = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "r", "state": "streaming"},
        {"type": "text", "text": "t", "state": "streaming"},
        {"type": "text", "text": "t"},
        call("input-streaming"),
        call("input-available", input=INPUT),
        call("output-available", input=INPUT, output=1, preliminary=True),
        waiting,
        done,
    ]
    before = deepcopy(parts)

    assert settle_parts(parts, reason="interrupted") == [
        {"type": "step-start"},
        {"type": "reasoning", "text": "r", "state": "done"},
        {"type": "text", "text": "t", "state": "done"},
        {"type": "text", "text": "t"},
        call("output-error", input={}, errorText="interrupted"),
        call("output-error", input=INPUT, errorText="interrupted"),
        call("output-error", input=INPUT, errorText="interrupted"),
        waiting,
        done,
    ]
    assert parts == before


@given(chunk_lists, st.text(max_size=5))
def test_settling_twice_changes_nothing_more(applied: list[JsonObject], reason: str) -> None:
    settled = settle_parts(folded(applied), reason=reason)

    assert settle_parts(settled, reason="again") == settled
