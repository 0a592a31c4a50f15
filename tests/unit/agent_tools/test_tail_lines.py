"""Tails that come as bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.agent_tools.records import StoredChunk
from ramet.agent_tools.tail_lines import TailLines
from ramet.core.json import dumps

MILESTONE = '{"type":"data-agent-milestone","data":{"name":"m"}}'


def read(data: bytes, cuts: list[int]) -> list[StoredChunk]:
    lines = TailLines()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]
    chunks = [chunk for piece in pieces for chunk in lines.feed(piece)]
    return [*chunks, *lines.end()]


@pytest.mark.behaviour("AT-102", "AT-104")
@given(
    st.lists(st.text(), max_size=6), st.lists(st.integers(0, 10_000)), st.sampled_from([b"", b"\n"])
)
def test_lines_are_put_together_wherever_they_are_cut(
    bodies: list[str], cuts: list[int], last: bytes
) -> None:
    data = b"\n".join(
        dumps({"sequence": number, "body": body}).encode() for number, body in enumerate(bodies)
    )

    assert [(chunk.sequence, chunk.body) for chunk in read(data + last, cuts)] == list(
        enumerate(bodies)
    )


@pytest.mark.behaviour("AT-103")
def test_a_line_that_is_no_chunk_is_left_out() -> None:
    data = b"\n".join(
        [
            b'{"sequence":0,"body":"good"}',
            b"not json",
            b'{"sequence":1,"body":7}',
            b'{"sequence":"2","body":"x"}',
            b'{"sequence":true,"body":"x"}',
            b"",
            b"[1]",
            b'{"sequence":3,"body":"good too"}',
        ]
    )

    assert read(data, []) == [
        StoredChunk(sequence=0, body="good"),
        StoredChunk(sequence=3, body="good too"),
    ]


def test_what_an_item_is_is_told_by_its_kind_or_else_by_its_body() -> None:
    lines = [
        {"sequence": 0, "body": MILESTONE},
        {"sequence": 0, "body": MILESTONE, "kind": "chunk"},
        {"sequence": 0, "body": "{}", "kind": "progress"},
    ]

    chunks = read("\n".join(map(dumps, lines)).encode(), [])

    assert [chunk.kind for chunk in chunks] == ["milestone", "chunk", "progress"]
