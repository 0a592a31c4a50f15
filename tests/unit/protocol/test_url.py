"""Agent URLs and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.protocol.names import kebab
from ramet.protocol.url import (
    SubAddress,
    SubMatch,
    check_agent_name,
    decode_segment,
    encode_segment,
    find_sub,
    split_raw_path,
)

CLASSES = {"researcher": "Researcher", "plan-maker": "PlanMaker"}

legal_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(
    lambda name: check_agent_name(name) is None
)


def test_a_path_is_split_before_it_is_decoded() -> None:
    segments = split_raw_path(b"/agents//chat/agent-tool%3Acall%2F1/")

    assert segments == ["agents", "chat", "agent-tool%3Acall%2F1"]
    assert decode_segment(segments[2]) == "agent-tool:call/1"


def test_a_path_may_come_as_text_and_with_its_query() -> None:
    assert split_raw_path("/agents/chat/a%20b?x=/sub/") == ["agents", "chat", "a%20b"]


def test_a_raw_percent_sign_stands_for_itself() -> None:
    assert decode_segment("100%") == "100%"
    assert decode_segment("%zz%20") == "%zz "


def test_unescaped_utf8_bytes_are_read_as_text() -> None:
    assert split_raw_path("/agents/chat/é🐝".encode()) == ["agents", "chat", "é🐝"]


@pytest.mark.parametrize("raw_path", [b"/%FF", b"/\xff", b"/%ED%A0%80"])
def test_a_name_that_is_not_utf8_is_refused(raw_path: bytes) -> None:
    (segment,) = split_raw_path(raw_path)

    assert check_agent_name(decode_segment(segment)) == "An agent name must be valid UTF-8."


@given(legal_names)
def test_a_name_survives_its_way_through_a_url(name: str) -> None:
    raw_path = f"/agents/chat/{encode_segment(name)}".encode()

    assert [decode_segment(segment) for segment in split_raw_path(raw_path)][2] == name


@given(st.lists(st.tuples(st.sampled_from(sorted(CLASSES)), legal_names), min_size=1, max_size=4))
def test_any_depth_of_sub_agents_is_found_step_by_step(steps: list[tuple[str, str]]) -> None:
    path = "/".join(SubAddress(cls_segment=segment, name=name).path for segment, name in steps)
    tail: list[str] | tuple[str, ...] = split_raw_path(f"{path}/get-messages")

    found = []
    while (match := find_sub(tail, CLASSES.get)) is not None:
        found.append((kebab(match.class_name), match.name))
        tail = match.tail

    assert found == steps
    assert list(tail) == ["get-messages"]


def test_the_first_boundary_gives_class_name_index_and_tail() -> None:
    match = find_sub(["x", "sub", "plan-maker", "a%2Fb", "sub", "researcher", "r"], CLASSES.get)

    assert match == SubMatch(
        class_name="PlanMaker", name="a/b", index=1, tail=("sub", "researcher", "r")
    )


@pytest.mark.parametrize(
    "segments",
    [
        [],
        ["sub"],
        ["sub", "researcher"],
        ["sub", "unknown", "r"],
        ["get-messages"],
        ["Sub", "researcher", "r"],
    ],
)
def test_a_sub_without_a_known_class_and_a_name_is_no_boundary(segments: list[str]) -> None:
    assert find_sub(segments, CLASSES.get) is None


def test_an_agent_may_be_named_sub() -> None:
    match = find_sub(["sub", "sub", "researcher", "r"], CLASSES.get)

    assert match == SubMatch(class_name="Researcher", name="r", index=1, tail=())


@given(st.lists(st.text(max_size=8)))
def test_any_list_of_segments_can_be_scanned(segments: list[str]) -> None:
    match = find_sub(segments, CLASSES.get)

    assert match is None or segments[match.index] == "sub"


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "An agent name must not be empty."),
        (".", "An agent cannot be named '.': a URL cannot carry it."),
        ("..", "An agent cannot be named '..': a URL cannot carry it."),
        ("a\0b", "An agent name must not contain NUL."),
        ("é" * 513, "An agent name has at most 1024 bytes in UTF-8; this one has 1026."),
    ],
)
def test_an_illegal_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    assert check_agent_name(name) == reason


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize("name", ["a/b", "50%", "two words", "🐝", "é" * 512, "...", "sub"])
def test_slashes_percent_signs_spaces_and_emoji_are_legal_names(name: str) -> None:
    assert check_agent_name(name) is None
