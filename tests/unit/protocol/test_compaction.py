"""Messages that are too large to be stored whole."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue, dump_bytes
from ramet.protocol.compaction import compact_message
from ramet.protocol.ui_message import UIMessage, UIRole, as_message


def message(role: UIRole, *parts: JsonObject, **fields: JsonValue) -> UIMessage:
    return as_message({"id": "m", "role": role, "parts": [*parts], **fields})


def text(size: int) -> JsonObject:
    return {"type": "text", "text": "x" * size}


def call(call_id: str, output: JsonValue) -> JsonObject:
    return {
        "type": "tool-search",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {},
        "output": output,
    }


def part_of(compacted: UIMessage, place: int) -> JsonObject:
    parts = compacted["parts"]
    assert isinstance(parts, list)
    part = parts[place]
    assert isinstance(part, dict)
    return part


@pytest.mark.behaviour("RS-016")
def test_a_message_that_fits_is_given_back_as_it_is() -> None:
    fits = message("assistant", call("c", "y" * 1_790_000))

    assert compact_message(fits) is fits


@pytest.mark.behaviour("RS-016")
def test_long_tool_outputs_are_shortened_first_and_named() -> None:
    small = call("small", "y" * 900)
    large = message(
        "assistant",
        text(5_000),
        call("long", "y" * 1_900_000),
        small,
        call("list", list(range(1_000))),
        metadata={"model": "m"},
    )
    before = deepcopy(large)

    compacted = compact_message(large)

    assert compacted["metadata"] == {"model": "m", "compactedToolOutputs": ["long", "list"]}
    assert part_of(compacted, 0) == text(5_000)
    assert part_of(compacted, 1)["output"] == "y" * 500 + "… [shortened: it had 1900002 bytes]"
    assert part_of(compacted, 2) == small
    assert str(part_of(compacted, 3)["output"]).startswith("[0,1,2,")
    assert large == before


@pytest.mark.behaviour("RS-016")
def test_texts_are_cut_from_the_oldest_on_until_the_message_fits() -> None:
    large = message("assistant", text(1_000), text(4_000), text(4_000), text(4_000))

    compacted = compact_message(large, limit_bytes=7_000)

    assert compacted["metadata"] == {"compactedTextParts": [1, 2]}
    assert part_of(compacted, 1)["text"] == "x" * 500 + "… [shortened: it had 4000 characters]"
    assert [part_of(compacted, place) for place in (0, 3)] == [text(1_000), text(4_000)]
    assert len(dump_bytes(compacted)) <= 7_000


@pytest.mark.behaviour("RS-017")
def test_other_messages_only_get_their_texts_cut() -> None:
    large = message("user", call("c", "y" * 4_000), text(4_000))

    compacted = compact_message(large, limit_bytes=5_000)

    assert compacted["metadata"] == {"compactedTextParts": [1]}
    assert part_of(compacted, 0) == call("c", "y" * 4_000)


@pytest.mark.behaviour("RS-016")
def test_what_cannot_be_shortened_stays_as_it_is() -> None:
    large = message("user", {"type": "file", "url": "data:," + "x" * 4_000})

    assert compact_message(large, limit_bytes=1_000) == large


@pytest.mark.behaviour("RS-016")
def test_a_message_shortened_again_remembers_both_times() -> None:
    once = compact_message(message("assistant", call("a", "y" * 9_000)), limit_bytes=1_000)
    parts = [part_of(once, 0), call("b", "y" * 9_000)]

    twice = compact_message({**once, "parts": [*parts]}, limit_bytes=1_000)

    assert twice["metadata"] == {"compactedToolOutputs": ["a", "b"]}


@pytest.mark.behaviour("RS-016")
@given(
    st.lists(
        st.one_of(
            st.integers(0, 3_000).map(text),
            st.integers(0, 3_000).map(lambda size: call("c", "é" * size)),
        ),
        max_size=12,
    ),
    st.integers(1_000, 9_000),
)
def test_a_message_of_texts_and_outputs_fits_or_has_nothing_long_left(
    parts: list[JsonObject], limit: int
) -> None:
    compacted = compact_message(message("assistant", *parts), limit_bytes=limit)

    left = [part_of(compacted, place) for place in range(len(parts))]
    all_short = all(len(str(part.get("text", ""))) <= 1_000 for part in left)
    assert len(dump_bytes(compacted)) <= limit or all_short
