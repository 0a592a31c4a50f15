"""A lost answer and what its second producer gives make one answer, without a word twice (D5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.chat.overlap import Overlap
from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.messages import parts_of
from ramet.protocol.parts import MessageFold

TEXTS = st.lists(st.sampled_from(["one ", "two ", "three "]), min_size=1, max_size=3)
PIECES = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning", "call", "ask"]), TEXTS), max_size=3
)
ANSWERS = st.lists(PIECES, min_size=1, max_size=3)


def answer(steps: list[list[tuple[str, list[str]]]], *, salt: str = "") -> list[JsonObject]:
    """The chunks of a whole answer."""
    given: list[JsonObject] = [chunks.start("m")]
    for step, pieces in enumerate(steps):
        given.append(chunks.start_step())
        for place, (kind, words) in enumerate(pieces):
            name = f"s{step}p{place}"
            if kind in {"call", "ask"}:
                given.append(chunks.tool_input_start(f"{salt}{name}", "look"))
                given.append(
                    chunks.tool_input_available(f"{salt}{name}", "look", {"at": "".join(words)})
                )
                if kind == "ask":
                    given.append(chunks.tool_approval_request(f"a{name}", f"{salt}{name}"))
                else:
                    given.append(chunks.tool_output_available(f"{salt}{name}", "".join(words)))
            elif kind == "text":
                given += [chunks.text_start(name), *(chunks.text_delta(name, w) for w in words)]
                given.append(chunks.text_end(name))
            else:
                given.append(chunks.reasoning_start(name))
                given += [chunks.reasoning_delta(name, word) for word in words]
                given.append(chunks.reasoning_end(name))
        given.append(chunks.finish_step())
    return [*given, chunks.finish("stop")]


def folded(given: list[JsonObject]) -> list[JsonObject]:
    """The parts that clients see."""
    fold = MessageFold("m")
    for chunk in given:
        fold.apply(chunk)
    return parts_of(fold.message())


def joined(stored: list[JsonObject], again: list[JsonObject], *, whole: bool) -> list[JsonObject]:
    """What clients have got in the end."""
    overlap = Overlap(stored, whole=whole)
    new = [chunk for each in again for chunk in overlap.take(each)]
    return [*stored, *new, *overlap.end()]


@pytest.mark.behaviour("D5")
@given(ANSWERS, st.integers(min_value=0, max_value=100))
def test_an_answer_given_again_from_the_start_is_shown_once(
    steps: list[list[tuple[str, list[str]]]], cut: int
) -> None:
    whole = answer(steps)
    at = cut % len(whole)
    assert folded(joined(whole[:at], whole, whole=True)) == folded(whole)


@pytest.mark.behaviour("D5")
@given(ANSWERS, st.integers(min_value=0, max_value=100))
def test_an_answer_taken_up_at_the_step_that_was_cut_is_shown_once(
    steps: list[list[tuple[str, list[str]]]], cut: int
) -> None:
    whole = answer(steps)
    at = 1 + cut % (len(whole) - 1)
    stored = whole[:at]
    first = Overlap(stored).first_step
    starts = [place for place, chunk in enumerate(whole) if chunk["type"] == chunks.START_STEP]
    again = whole[starts[first] :] if first < len(starts) else whole[-1:]
    assert folded(joined(stored, again, whole=False)) == folded(whole)


@pytest.mark.behaviour("D5")
@given(ANSWERS, ANSWERS, st.integers(min_value=0, max_value=100))
def test_whatever_comes_then_what_was_shown_stays(
    steps: list[list[tuple[str, list[str]]]],
    others: list[list[tuple[str, list[str]]]],
    cut: int,
) -> None:
    whole = answer(steps)
    stored = whole[: cut % len(whole)]
    before, after = folded(stored), folded(joined(stored, answer(others, salt="x"), whole=True))
    assert [part["type"] for part in after[: len(before)]] == [part["type"] for part in before]
    for was, now in zip(before, after, strict=False):
        assert str(now.get("text", "")).startswith(str(was.get("text", "")))
    assert all(part.get("state") != "streaming" for part in after)
    assert all(part.get("state") != "input-available" for part in after)


def test_text_that_goes_on_is_a_part_of_its_own() -> None:
    stored = [chunks.start("m"), chunks.text_start("t"), chunks.text_delta("t", "par")]
    again = [chunks.text_start("t"), chunks.text_delta("t", "tial"), chunks.text_end("t")]
    texts = [part["text"] for part in folded(joined(stored, again, whole=True))]
    assert texts == ["par", "tial"]


def test_with_nothing_stored_everything_passes() -> None:
    whole = answer([[("text", ["one"])]])
    assert joined([], whole, whole=True) == whole
