"""Replay plus live is every chunk exactly once, wherever the cut is (D21, AT-108 … AT-112)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.agent_tools.records import Milestone, StoredChunk
from ramet.chat.child_runs import ChildRunStore, StoredChildRun
from ramet.chat.child_tail import ChildTail
from ramet.chat.live_turn import log_key
from ramet.chat.replay import ChatReplay
from ramet.chat.signals import milestone_chunk
from ramet.chat.stream_log import StoredStream, StreamLog
from ramet.chat.stream_reader import StreamReader, read_stored_run
from ramet.connections.clients import ClientSet
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.http import Request
from ramet.core.json import JsonObject, dumps, loads_object
from ramet.core.tail import Tail
from ramet.protocol import frames
from ramet.testing.manual_clock import ManualClock
from tests.unit.chat.support import body, chat_database

STREAM = StoredStream(stream_id="s1", request_id="r1", turn_id="t1", message_id="m1")
ENVELOPE = frames.ChatChunkEnvelope("r1")

# A step of a story: the turn goes on (a chunk or a milestone), or the client takes what waits.
STEPS = st.lists(st.sampled_from(["chunk", "chunk", "milestone", "take"]), max_size=40)


class DirectExit:
    def release(self, deliver: object) -> None:
        assert callable(deliver)
        deliver()


class Story:
    """A run that streams, told to one client and one parent."""

    def __init__(self, *, page: int) -> None:
        self.database = chat_database()
        self.log = StreamLog(self.database, ManualClock(), held=0)
        self.runs = ChildRunStore(self.database)
        self.log.open(STREAM)
        self.runs.insert(
            StoredChildRun(
                run_id="run", request_id="r1", stream_id="s1", started_at=0, request_ids=["r1"]
            )
        )
        self.page = page
        self.next_index = 0
        self.told: list[JsonObject] = []
        self.clients = ClientSet(DirectExit())
        self.link = ClientLink(id="c", request=Request(), outbox=Outbox(limit_bytes=1_000_000))
        self.clients.add(self.link)
        self.received: list[JsonObject] = []
        self.tails: list[Tail[StoredChunk]] = []
        self.ended = False

    def reader(self, after: int = -1) -> StreamReader:
        return StreamReader(
            lambda index, _: self.log.page("s1", after=index, limit=self.page),
            lambda number: self.runs.milestones("run", after=number),
            after=after,
        )

    def follow(self) -> None:
        """The client accepts the stream."""
        self.link.behind.add(log_key("s1"))
        self.link.outbox.follow(
            ChatReplay(self.link, STREAM, self.reader(), caught_up=lambda: "{}")
        )

    def step(self, step: str) -> None:
        if step == "chunk":
            self._tell(body(self.next_index), self.next_index, "chunk")
            self.next_index += 1
        elif step == "milestone":
            milestone = Milestone(name="m", sequence=self.runs.next_milestone("run"), at=0)
            self.runs.add_milestone("run", milestone, position=self.next_index - 1)
            self._tell(dumps(milestone_chunk(milestone)), self.next_index - 1, "milestone")
        else:
            self.take()

    def take(self) -> bool:
        taken = self.link.outbox.take_now()
        self.received += [loads_object(str(frame)) or {} for frame in taken]
        return bool(taken)

    def bodies(self) -> list[JsonObject]:
        """The chunks that the client has, from the last beginning on."""
        return [loads_object(str(frame["body"])) or {} for frame in self.received if frame]

    def _tell(self, text: str, index: int, kind: str) -> None:
        chunk = loads_object(text)
        assert chunk is not None
        self.told.append(chunk)
        if kind == "chunk":
            self.log.append("s1", index, text)
            item = StoredChunk(sequence=index, body=text)
            self.clients.broadcast_log(ENVELOPE.frame(index, text), log_key("s1"))
        else:
            item = StoredChunk(sequence=index, body=text, kind="milestone")
            frame = frames.chat_response("r1", body=text, done=False)
            self.clients.broadcast_log(frame, log_key("s1"))
        for tail in self.tails:
            tail.push(item)


@pytest.mark.behaviour("D21", "D23", "CW-005")
@given(before=STEPS, during=STEPS, after=STEPS, page=st.integers(min_value=1, max_value=9))
def test_a_client_gets_everything_once_and_in_order_whenever_it_comes(
    before: list[str], during: list[str], after: list[str], page: int
) -> None:
    story = Story(page=page)
    story.link.behind.add(log_key("s1"))
    for step in before:
        story.step(step)
    assert story.received == [], "live chunks wait for the ACK"
    story.follow()
    for step in during:
        story.step(step)
    while story.take():
        pass
    assert log_key("s1") not in story.link.behind
    for step in after:
        story.step(step)
    while story.take():
        pass
    assert story.bodies() == story.told
    numbers = [frame["seq"] for frame in story.received if "seq" in frame]
    assert numbers == list(range(story.next_index))


@pytest.mark.behaviour("AT-108", "AT-109", "AT-112", "AT-227", "D2")
@given(
    before=STEPS,
    during=STEPS,
    page=st.integers(min_value=1, max_value=9),
    seen=st.integers(min_value=-1, max_value=10),
)
def test_a_parent_gets_everything_once_and_in_order_whenever_it_attaches(
    before: list[str], during: list[str], page: int, seen: int
) -> None:
    story = Story(page=page)
    for step in before:
        story.step(step)
    after = min(seen, story.next_index - 1)
    tail = ChildTail(
        story.reader(after), attach=lambda tail: _attach(story, tail), on_detach=lambda _: None
    )
    items = asyncio.run(_followed(story, tail, during))
    expected = read_stored_run(story.database, "run", after)
    assert items == expected
    chunks = [item.sequence for item in items if item.kind == "chunk"]
    assert chunks == list(range(after + 1, story.next_index))


async def _followed(story: Story, tail: ChildTail, steps: list[str]) -> list[StoredChunk]:
    """Take an item between any two steps, then the rest once the run has ended."""
    items: list[StoredChunk] = []
    for step in steps:
        story.step(step if step != "take" else "chunk")
        items.append(await anext(tail))
    story.ended = True
    tail.settle()
    return items + [item async for item in tail]


def _attach(story: Story, tail: ChildTail) -> bool:
    story.tails.append(tail)
    return not story.ended
