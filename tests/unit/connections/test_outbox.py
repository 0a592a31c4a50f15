"""The outbox: bounded, refilled by replays, closed when the client does not read."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.connections.outbox import TRY_AGAIN_LATER, Close, Frame, Outbox
from ramet.testing.quiet import quiet


class Pages:
    """A replay that gives listed pages."""

    def __init__(self, *pages: Sequence[Frame]) -> None:
        self.pages = list(pages)
        self.asked = 0

    def next_page(self) -> Sequence[Frame]:
        self.asked += 1
        return self.pages.pop(0) if self.pages else ()


def taken(outbox: Outbox) -> list[object]:
    items: list[object] = []
    while batch := outbox.take_now():
        items.extend(batch)
        if isinstance(batch[-1], Close):
            break
    return items


@pytest.mark.behaviour("D21")
def test_one_frame_of_any_size_fits_an_empty_outbox() -> None:
    outbox = Outbox(limit_bytes=10)
    outbox.push("x" * 1000)
    assert taken(outbox) == ["x" * 1000]


@pytest.mark.behaviour("D21")
def test_a_client_that_does_not_read_is_closed_with_1013_and_nothing_waits_any_more() -> None:
    outbox = Outbox(limit_bytes=100)
    for _ in range(50):
        outbox.push("x" * 10)
    assert outbox.waiting_bytes == 0
    assert taken(outbox) == [Close(TRY_AGAIN_LATER, "Too slow: reconnect to catch up")]


@pytest.mark.behaviour("D21")
def test_a_replay_is_pulled_only_when_everything_else_was_sent() -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.push("greeting")
    replay = Pages(["r1", "r2"], ["r3"])
    outbox.follow(replay)
    assert outbox.take_now() == ["greeting"]
    assert replay.asked == 0
    assert outbox.take_now() == ["r1", "r2"]
    outbox.push("reply")
    assert outbox.take_now() == ["reply"]
    assert taken(outbox) == ["r3"]


@pytest.mark.behaviour("D21")
def test_frames_of_the_connect_hook_wait_for_the_replay_and_live_replies_do_not() -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.follow(Pages(["r1"], ["r2"]))
    outbox.push_after("hello from on_connect")
    outbox.push("rpc reply")
    assert taken(outbox) == ["rpc reply", "r1", "r2", "hello from on_connect"]


class Fetched:
    """A replay whose frames have to be fetched first."""

    def __init__(self) -> None:
        self.page: Sequence[Frame] | None = None

    def next_page(self) -> Sequence[Frame] | None:
        page = self.page
        if page:
            self.page = ()
        return page


@pytest.mark.behaviour("D21")
async def test_a_replay_that_has_nothing_yet_holds_its_place_and_no_live_frame() -> None:
    outbox = Outbox(limit_bytes=100)
    replay = Fetched()
    outbox.follow(replay)
    outbox.follow(Pages(["second replay"]))
    outbox.push_after("after")
    assert outbox.take_now() == ()
    outbox.push("live")
    assert taken(outbox) == ["live"]
    writer = asyncio.get_running_loop().create_task(outbox.take())
    await quiet()
    assert not writer.done()

    replay.page = ["fetched"]
    outbox.resume()

    assert await writer == ["fetched"]
    assert taken(outbox) == ["second replay", "after"]


def test_held_frames_count_against_the_limit() -> None:
    outbox = Outbox(limit_bytes=10)
    outbox.follow(Pages(["r1"]))
    outbox.push_after("x" * 8)
    outbox.push_after("y" * 8)
    assert taken(outbox)[-1] == Close(TRY_AGAIN_LATER, "Too slow: reconnect to catch up")


def test_a_close_comes_after_what_waits_and_ends_replays() -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.push("last words")
    outbox.follow(Pages(["never sent"]))
    outbox.close(4403, "no")
    outbox.push("too late")
    assert taken(outbox) == ["last words", Close(4403, "no")]


def test_sizes_are_those_of_utf8() -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.push("é" * 3)
    outbox.push(b"abc")
    assert outbox.waiting_bytes == 9


async def test_the_writer_wakes_up_for_a_frame() -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.push("a")
    assert list(await outbox.take()) == ["a"]
    outbox.push("b")
    assert list(await outbox.take()) == ["b"]


@given(st.lists(st.one_of(st.text(min_size=1, max_size=5), st.none()), max_size=30))
def test_whatever_is_pushed_and_taken_in_any_order_comes_out_once_and_in_order(
    steps: list[str | None],
) -> None:
    outbox = Outbox(limit_bytes=10**9)
    out: list[object] = []
    for step in steps:
        if step is None:
            out.extend(outbox.take_now())
        else:
            outbox.push(step)
    out.extend(taken(outbox))
    assert out == [step for step in steps if step is not None]
    assert outbox.waiting_bytes == 0


async def test_who_sends_much_can_wait_until_the_client_has_read_half() -> None:
    outbox = Outbox(limit_bytes=100)

    async def send_all() -> None:
        for _ in range(50):
            outbox.push("x" * 40)
            await outbox.drained()

    sending = asyncio.ensure_future(send_all())
    sent = 0
    while not sending.done():
        await quiet()
        sent += len(taken(outbox))
        assert not outbox.closed
    assert sent + len(taken(outbox)) == 50


@pytest.mark.parametrize("end", [Outbox.drop, lambda outbox: outbox.close(1000)])
async def test_who_waits_for_a_client_that_goes_goes_on(end: Callable[[Outbox], None]) -> None:
    outbox = Outbox(limit_bytes=100)
    outbox.push("x" * 90)
    waiting = asyncio.ensure_future(outbox.drained())
    await quiet()
    assert not waiting.done()
    end(outbox)
    await quiet()
    assert waiting.done()
