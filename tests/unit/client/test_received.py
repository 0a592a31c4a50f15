"""Which chunks of an answer a client gives on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.client.received import Received
from ramet.core.json import dumps

START = '{"type":"start","messageId":"a"}'
MILESTONE = dumps({"type": "data-agent-milestone", "data": {"name": "half", "sequence": 0}})
PROGRESS = '{"type":"data-agent-progress","id":"p","transient":true,"data":{}}'


def given_on(received: Received, bodies: list[str], *, replay: bool) -> list[str]:
    return [
        new for seq, body in enumerate(bodies) for new in received.new(body, seq=seq, replay=replay)
    ]


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=12), st.data())
def test_however_often_it_is_sent_again_each_chunk_comes_once(
    bodies: list[str], data: st.DataObject
) -> None:
    received, seen = Received(), list[str]()
    for _ in range(data.draw(st.integers(0, 3))):
        cut = data.draw(st.integers(0, len(bodies)))
        received.replay_begins()
        seen += given_on(received, bodies[:cut], replay=True)
    received.replay_begins()
    seen += given_on(received, bodies, replay=True)

    assert seen == bodies


@given(st.lists(st.sampled_from(["a", "b"]), max_size=8), st.data())
def test_a_server_that_numbers_no_chunks_is_counted_along(
    bodies: list[str], data: st.DataObject
) -> None:
    received, seen = Received(), list[str]()
    live = data.draw(st.integers(0, len(bodies)))
    for body in bodies[:live]:
        seen += received.new(body, seq=None, replay=False)
    for _ in range(2):
        received.replay_begins()
        for body in bodies:
            seen += received.new(body, seq=None, replay=True)

    assert seen == bodies


def test_a_turn_that_goes_on_begins_with_what_is_known() -> None:
    received = Received()
    given_on(received, [START, "1", "2"], replay=False)
    received.another_stream_begins()

    assert given_on(received, [START, "1", "2", "3", "4"], replay=True) == ["3", "4"]


@pytest.mark.parametrize(
    "anew", [['{"type":"start","messageId":"b"}', "1", "2"], [START, "x"], [START, "1", "x", "y"]]
)
def test_a_turn_that_answers_anew_gives_all_of_its_chunks(anew: list[str]) -> None:
    received = Received()
    given_on(received, [START, "1", "2"], replay=False)
    received.another_stream_begins()

    assert given_on(received, anew, replay=True) == anew
    received.replay_begins()
    assert given_on(received, [*anew, "more"], replay=True) == ["more"]


def test_a_connection_that_breaks_while_a_turn_takes_over_changes_nothing() -> None:
    received = Received()
    given_on(received, [START, "1", "2"], replay=False)
    received.another_stream_begins()

    assert given_on(received, [START, "1"], replay=True) == []
    received.replay_begins()
    assert given_on(received, [START, "x", "y"], replay=True) == [START, "x", "y"]


def test_milestones_come_once_and_progress_each_time() -> None:
    received = Received()
    given_on(received, [START], replay=False)

    for replay in (False, True, True):
        assert received.new(PROGRESS, seq=None, replay=False) == [PROGRESS]
        seen = received.new(MILESTONE, seq=None, replay=replay)
        assert seen == ([] if replay else [MILESTONE])


def test_what_is_only_in_the_replay_comes_once() -> None:
    received = Received()
    given_on(received, [START], replay=False)

    assert received.new("result", seq=None, replay=True) == ["result"]
    assert received.new("result", seq=None, replay=True) == []
