"""A client's transcript meets the stored one."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.messages import user_message
from ramet.protocol.reconcile import Reconciled, reconcile
from ramet.protocol.ui_message import UIMessage

USER = user_message("hi", id="u1")


def assistant(message_id: str, *parts: JsonObject) -> UIMessage:
    return {"id": message_id, "role": "assistant", "parts": [*parts]}


def text(words: str, **fields: JsonValue) -> JsonObject:
    return {"type": "text", "text": words, **fields}


def call(state: str, call_id: str = "c", **fields: JsonValue) -> JsonObject:
    return {
        "type": "tool-search",
        "toolCallId": call_id,
        "state": state,
        "input": {"a": 1, "b": 2},
        **fields,
    }


def messages(incoming: list[UIMessage], stored: list[UIMessage]) -> list[UIMessage]:
    return reconcile(incoming, stored).messages


def test_a_transcript_with_one_new_message_changes_just_that() -> None:
    stored = [USER, assistant("a1", text("hello"))]
    new = user_message("more", id="u2")

    assert reconcile([*stored, new], stored) == Reconciled(
        messages=[*stored, new], changed=[new], absent_ids=[]
    )


def test_stored_messages_that_the_client_lacks_are_named() -> None:
    stored = [USER, assistant("a1", text("hello"))]

    assert reconcile([USER], stored).absent_ids == ["a1"]


def test_submitting_again_stores_nothing_twice() -> None:
    stored = [USER, assistant("a1", text("hello"))]

    assert reconcile([USER, USER, *stored], stored) == Reconciled(
        messages=stored, changed=[], absent_ids=[]
    )


def test_of_two_incoming_messages_with_one_id_the_later_counts() -> None:
    edited = user_message("changed", id="u1")

    assert messages([USER, edited], []) == [edited]


def test_a_message_that_the_client_edited_under_its_id_is_taken() -> None:
    edited = assistant("a1", text("edited"))

    assert reconcile([edited], [assistant("a1", text("hello"))]).changed == [edited]


def test_an_answer_with_a_foreign_id_is_matched_by_its_tool_call() -> None:
    stored = [assistant("asst_1", call("output-available", output=1), text("so"))]
    local = assistant("local", call("input-available", input={"b": 2, "a": 1}), text("edited"))

    assert messages([local], stored) == [
        assistant("asst_1", call("output-available", output=1), text("edited")),
    ]


@pytest.mark.parametrize(
    "cut",
    [
        [text("on", state="done"), text("tw", state="streaming")],
        [text("on", state="done"), call("input-streaming", input={})],
        [text("on", state="done"), call("input-available")],
    ],
)
def test_a_copy_that_was_cut_while_it_streamed_does_not_shorten_the_answer(
    cut: list[JsonObject],
) -> None:
    stored = assistant(
        "a1", text("on", state="done"), call("output-available", output=1), text("two")
    )

    incoming = [USER, assistant("a1", *cut), user_message("more", id="u2")]

    assert messages(incoming, [USER, stored])[1] == stored


@pytest.mark.parametrize(
    "part",
    [
        call("input-available", call_id="other"),
        call("input-available", input={"a": 2}),
        {**call("input-available"), "type": "tool-plan"},
    ],
)
def test_a_tool_call_matches_only_with_its_id_tool_and_input(part: JsonObject) -> None:
    stored = [assistant("asst_1", call("output-available", output=1))]

    assert messages([assistant("local", part)], stored) == [assistant("local", part)]


def test_an_answer_with_a_foreign_id_is_matched_by_its_content() -> None:
    stored = [assistant("asst_1", {"type": "step-start"}, text("hello", state="done"))]

    (matched,) = messages([assistant("local", text("hello"))], stored)

    assert matched["id"] == "asst_1"


def test_equal_ids_are_paired_before_equal_content() -> None:
    stored = [assistant("a1", text("same")), assistant("a2", text("same"))]
    incoming = [assistant("local", text("same")), assistant("a1", text("same"))]

    assert [one["id"] for one in messages(incoming, stored)] == ["a2", "a1"]


def test_a_stored_message_is_matched_only_once() -> None:
    stored = [assistant("a1", text("same"))]
    incoming = [assistant("x", text("same")), assistant("y", text("same"))]

    assert [one["id"] for one in messages(incoming, stored)] == ["a1", "y"]


def test_user_messages_and_empty_answers_are_matched_by_id_only() -> None:
    stored = [USER, assistant("a1")]
    incoming = [user_message("hi", id="u2"), assistant("local")]

    assert [one["id"] for one in messages(incoming, stored)] == ["u2", "local"]


SETTLED = [
    call("output-available", output="stored"),
    call("output-error", errorText="stored"),
    call("output-denied", approval={"id": "ap", "approved": False}),
]


@pytest.mark.parametrize("stored", SETTLED)
@pytest.mark.parametrize(
    "copy",
    [
        call("input-streaming"),
        call("input-available"),
        call("approval-requested", approval={"id": "ap"}),
        call("approval-responded", approval={"id": "ap", "approved": True}),
        call("output-available", output="forged"),
        call("output-error", errorText="forged"),
    ],
)
def test_the_client_never_overwrites_a_settled_call(stored: JsonObject, copy: JsonObject) -> None:
    assert messages([assistant("a1", copy)], [assistant("a1", stored)]) == [assistant("a1", stored)]


def test_a_stored_call_that_has_come_further_stands() -> None:
    answered = call("approval-responded", approval={"id": "ap", "approved": True})
    asked = call("approval-requested", approval={"id": "ap"})

    assert messages([assistant("a1", asked)], [assistant("a1", answered)]) == [
        assistant("a1", answered)
    ]


@pytest.mark.parametrize(
    "stored", [call("input-available"), call("output-available", output=1, preliminary=True)]
)
def test_a_result_that_the_client_brings_for_an_open_call_is_taken(stored: JsonObject) -> None:
    brought = assistant("a1", call("output-available", output="sunny"))

    assert messages([brought], [assistant("a1", stored)]) == [brought]


def test_an_answer_that_only_repeats_calls_settled_elsewhere_is_dropped() -> None:
    done = assistant("a1", call("output-available", output=1))
    echo = assistant("local", {"type": "step-start"}, call("input-available", input={}))

    assert messages([done, echo, USER], [done]) == [done, USER]


def test_what_repeats_calls_stays_when_it_is_last_or_says_more_or_was_never_settled() -> None:
    done = assistant("a1", call("output-available", output=1))
    last = assistant("x", call("input-available", input={}))
    says_more = assistant("y", call("input-available", input={}), text("and"))
    unsettled = assistant("z", call("input-available", call_id="d"))
    only_step = assistant("s", {"type": "step-start"})

    kept = [done, says_more, unsettled, only_step, last]
    assert messages(kept, [done]) == kept


@pytest.mark.behaviour("MB-005")
def test_tool_inputs_become_objects() -> None:
    raw = assistant("a1", call("output-available", input='{"q":1}', output=1))

    assert messages([raw], []) == [
        assistant("a1", call("output-available", input={"q": 1}, output=1))
    ]


ids = st.sampled_from(["a", "b", "c"])
parts = st.one_of(
    st.builds(text, st.sampled_from(["", "x", "y"])),
    st.builds(lambda words: text(words, state="streaming"), st.sampled_from(["", "x", "y"])),
    st.just({"type": "step-start"}),
    st.builds(
        lambda state, call_id, content, tool: {
            "type": tool,
            "toolCallId": call_id,
            "state": state,
            "input": content,
        },
        st.sampled_from(
            [
                "input-streaming",
                "input-available",
                "approval-requested",
                "approval-responded",
                "output-available",
                "output-error",
                "output-denied",
                "odd",
            ]
        ),
        ids,
        st.sampled_from([{}, {"q": 1}, '{"q":1}', None]),
        st.sampled_from(["tool-search", "dynamic-tool"]),
    ),
)
some_messages: st.SearchStrategy[UIMessage] = st.builds(
    lambda message_id, role, held: {"id": message_id, "role": role, "parts": held},
    st.sampled_from(["m1", "m2", "m3", "m4"]),
    st.sampled_from(["user", "assistant", "assistant", "assistant"]),
    st.lists(parts, max_size=3, unique_by=lambda part: str(part.get("toolCallId", part))),
)
transcripts = st.lists(some_messages, max_size=5)
stored_transcripts = st.lists(some_messages, max_size=4, unique_by=lambda one: str(one["id"]))


@given(transcripts, stored_transcripts)
def test_reconciling_again_changes_nothing(
    incoming: list[UIMessage], stored: list[UIMessage]
) -> None:
    before = deepcopy((incoming, stored))

    once = reconcile(incoming, stored)

    assert reconcile(once.messages, stored) == once
    assert (incoming, stored) == before


@given(transcripts, stored_transcripts)
def test_no_id_is_there_twice_and_what_is_stored_reconciles_to_itself(
    incoming: list[UIMessage], stored: list[UIMessage]
) -> None:
    result = reconcile(incoming, stored)
    result_ids = [one["id"] for one in result.messages]

    assert len(set(map(str, result_ids))) == len(result_ids)
    assert set(result.absent_ids) == {one["id"] for one in stored} - set(result_ids)
    assert reconcile(result.messages, result.messages) == Reconciled(
        messages=result.messages, changed=[], absent_ids=[]
    )


@given(transcripts)
def test_an_incoming_user_message_is_never_lost(incoming: list[UIMessage]) -> None:
    latest = {str(one["id"]): one for one in incoming}
    users = [one for one in latest.values() if one["role"] == "user"]

    assert {one["id"] for one in users} <= {one["id"] for one in messages(incoming, [])}
