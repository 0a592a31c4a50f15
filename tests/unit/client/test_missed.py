"""What is made of a stored message in place of the chunks that never came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.client.missed import missed_chunks
from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.parts import MessageFold
from ramet.protocol.ui_message import UIMessage

ANSWER: list[JsonObject] = [
    chunks.start("m"),
    chunks.start_step(),
    chunks.reasoning_start("r"),
    chunks.reasoning_delta("r", "let me"),
    chunks.reasoning_delta("r", " see"),
    chunks.reasoning_end("r"),
    chunks.text_start("t"),
    chunks.text_delta("t", "I "),
    chunks.text_delta("t", "look"),
    chunks.text_end("t"),
    chunks.tool_input_start("c1", "look"),
    chunks.tool_input_delta("c1", "{}"),
    chunks.tool_input_available("c1", "look", {}),
    {**chunks.tool_input_available("c2", "danger", {"at": 1}), "dynamic": True},
    chunks.tool_approval_request("a2", "c2"),
    chunks.tool_approval_response("a2", approved=True),
    chunks.tool_output_available("c1", "half", preliminary=True),
    chunks.tool_output_available("c1", "all"),
    chunks.tool_output_error("c2", "no"),
    chunks.tool_input_available("c3", "danger", {}),
    chunks.tool_approval_request("a3", "c3"),
    chunks.tool_output_denied("c3"),
    chunks.data("note", {"n": 1}),
    {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
    {"type": "file", "url": "data:,", "mediaType": "text/plain"},
    chunks.start_step(),
    chunks.text_start("t2"),
    chunks.text_delta("t2", "Done."),
    chunks.text_end("t2"),
]


def folded(*given: JsonObject) -> UIMessage:
    fold = MessageFold("")
    for chunk in given:
        if chunk["type"] == "start":
            fold = MessageFold("")
        fold.apply(chunk)
    return fold.message()


@given(st.integers(0, len(ANSWER)), st.integers(0, len(ANSWER)))
def test_what_came_and_what_is_made_are_the_whole_message(one: int, other: int) -> None:
    cut, end = sorted((one, other))
    whole = folded(*ANSWER[:end])
    made = missed_chunks(folded(*ANSWER[:cut]), whole, part_ids={"text": "t", "reasoning": "r"})
    assert folded(*ANSWER[:cut], *made) == whole
    if cut:
        assert all(chunk["type"] != "start" for chunk in made)
    if cut == end:
        assert made == [] or not cut


def test_a_text_goes_on_under_its_id_in_one_piece() -> None:
    made = missed_chunks(folded(*ANSWER[:8]), folded(*ANSWER[:10]), part_ids={"text": "t"})
    assert made == [chunks.text_delta("t", "look"), chunks.text_end("t")]


@pytest.mark.parametrize(
    "other",
    [
        [chunks.start("n"), *ANSWER[1:]],
        [*ANSWER[:6], chunks.text_start("t"), chunks.text_delta("t", "You look")],
        [*ANSWER[:6], chunks.tool_input_available("c9", "look", {})],
        [*ANSWER[:3]],
    ],
)
def test_another_message_comes_whole_behind_a_start(other: list[JsonObject]) -> None:
    came, whole = folded(*ANSWER[:8]), folded(*other)
    made = missed_chunks(came, whole, part_ids={"text": "t"})
    assert made[0] == chunks.start(str(whole["id"]))
    assert folded(*ANSWER[:8], *made) == whole
