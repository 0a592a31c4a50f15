"""The numbers of frames: whatever happens, a client sees each frame once, under one number (D2)."""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramet.agent_tools.children import Child
from ramet.agent_tools.chunk_pages import ChunkPages
from ramet.agent_tools.feed import Feed
from ramet.agent_tools.finalize import Finalizer
from ramet.agent_tools.frame_store import FrameStore
from ramet.agent_tools.in_flight import RunsInFlight
from ramet.agent_tools.live_run import LiveRun
from ramet.agent_tools.policy import Ending, interruption
from ramet.agent_tools.records import StoredChunk
from ramet.agent_tools.run_cursor import RunCursor, RunRecords
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.connections.clients import ClientSet
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.http import Request
from ramet.core.json import dumps, loads_object
from ramet.protocol import chunks
from ramet.protocol.chunks import ChunkKind
from ramet.testing import ManualClock
from tests.unit.agent_tools.parents import DirectExit, StoredChunks, ports

RUN = StoredRun(run_id="r", agent_type="Child", status="running", parent_tool_call_id="call")
KEY = "run:r"


class ScriptedStream:
    """What the child has said so far."""

    def __init__(self) -> None:
        self.stored: list[StoredChunk] = []
        self._chunks = 0
        self._milestones = 0
        self._progresses = 0
        self.last_progress: StoredChunk | None = None

    def say(self, kind: ChunkKind) -> StoredChunk:
        """One more item; a chunk or a milestone is stored."""
        item = self._item(kind)
        if kind == "progress":
            self.last_progress = item
        else:
            self.stored.append(item)
        return item

    def after(self, sequence: int) -> list[StoredChunk]:
        """What a parent is given that has the chunks up to an index."""
        return [
            item
            for item in self.stored
            if item.sequence > sequence or (item.kind, item.sequence) == ("milestone", sequence)
        ]

    def _item(self, kind: ChunkKind) -> StoredChunk:
        if kind == "chunk":
            self._chunks += 1
            chunk = chunks.text_delta("t", f"{self._chunks}")
        elif kind == "milestone":
            chunk = chunks.milestone({"name": "m", "sequence": self._milestones, "at": 1})
            self._milestones += 1
        else:
            self._progresses += 1
            chunk = chunks.progress(f"p{self._progresses}", {"fraction": 0.1})
        return StoredChunk(sequence=self._chunks - 1, body=dumps(chunk), kind=kind)


class Viewer:
    """A connected client, that reads its replay in small pages."""

    def __init__(self, link: ClientLink, cursor: RunCursor, *, room: int) -> None:
        self._link = link
        self._cursor = cursor
        self._room = room
        self.said: list[str] = []
        self.numbers: dict[str, int] = {}

    @property
    def behind(self) -> bool:
        """Whether the replay goes on."""
        return KEY in self._link.behind

    def read(self, pages: int) -> None:
        """Take some pages of the replay, and what is live."""
        for _ in range(pages):
            page: list[str] = []
            if KEY in self._link.behind and self._cursor.advance(page, self._room) == "caught-up":
                self._link.behind.discard(KEY)
            page += [str(frame) for frame in self._link.outbox.take_now()]
            for text in page:
                self._note(text)

    def _note(self, text: str) -> None:
        frame = loads_object(text)
        assert frame is not None
        number = frame["sequence"]
        assert isinstance(number, int)
        self.said.append(dumps(frame["event"]))
        self.numbers[self.said[-1]] = number


class Story:
    """One run, its child and its clients, told step by step."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stream = ScriptedStream()
        self._clock = ManualClock()
        self._numbers: dict[str, int] = {}
        self.viewers: list[Viewer] = []
        self._open()
        self._runs.add(RUN)
        self._watch(Feed(self._ports, self._frames, RUN))
        self._feed.start()

    def play(self, step: str) -> None:
        """Let one thing happen."""
        match step:
            case "chunk" | "progress" | "milestone":
                self._feed.take(self._stream.say(step))
            case "restart":
                self._restart([])
            case "missed":
                self._restart(["milestone", "chunk", "milestone"])
            case "connect":
                self.connect()
            case "read":
                for viewer in self.viewers:
                    viewer.read(1)

    def connect(self, *, room: int = 300) -> Viewer:
        """A client comes that is behind by the whole run, and takes pages of this size."""
        link = ClientLink(id="c", request=Request(), outbox=Outbox(limit_bytes=2**24))
        link.behind.add(KEY)
        self._clients.add(link)
        records = RunRecords(runs=self._runs, frames=self._frames, in_flight=self._in_flight)
        pages = ChunkPages(self._ports, self._child(), arrived=link.outbox.resume)
        viewer = Viewer(link, RunCursor(records, RUN, pages), room=room)
        self.viewers.append(viewer)
        return viewer

    def end(self, ending: Ending, *, counted: bool = True) -> None:
        """End the run and its live part."""
        Finalizer(self._ports, self._runs).seal(self._feed, ending, counted=counted)
        self._forget_live()

    def repair(self) -> None:
        """Take the interrupted run up again, with what the child has said since."""
        for kind in ("milestone", "chunk"):
            self._stream.say(kind)
        self._resume()

    def check(self) -> None:
        """Who reads to the end knows everything once, under the numbers that all others know."""
        for viewer in self.viewers:
            viewer.read(1000)
            assert len(set(viewer.said)) == len(viewer.said)
            for said, number in viewer.numbers.items():
                assert self._numbers.setdefault(said, number) == number, said
        assert len(set(self._numbers.values())) == len(self._numbers)

    def close(self) -> None:
        """The story is told."""
        self._ports.database.close()

    def _restart(self, missed: list[ChunkKind]) -> None:
        """The parent dies with its connections; its child goes on; a new instance takes over."""
        self.check()
        for kind in missed:
            self._stream.say(kind)
        self.close()
        self._forget_live()
        self.viewers.clear()
        self._open()
        self.connect().read(2)
        self._resume()

    def _resume(self) -> None:
        row = self._runs.get("r")
        assert row is not None
        self._watch(Feed.resume(self._ports, self._frames, row))
        for item in self._stream.after(self._feed.last_sequence):
            self._feed.take(item)
        if self._stream.last_progress is not None:
            self._feed.take(self._stream.last_progress)

    def _open(self) -> None:
        self._clients = ClientSet(DirectExit())
        stored = StoredChunks(self._stream.stored)
        self._ports = ports(self._file, clients=self._clients, chunks=stored, clock=self._clock)
        self._runs = RunStore(self._ports.database)
        self._frames = FrameStore(self._ports.database)
        self._in_flight = RunsInFlight()

    def _watch(self, feed: Feed) -> None:
        self._feed = feed
        live = LiveRun(self._child(), feed, clock=self._clock, fence=self._ports.fence)
        self._in_flight.add(live)

    def _forget_live(self) -> None:
        for live in self._in_flight:
            self._in_flight.forget(live)

    def _child(self) -> Child:
        path = self._ports.path.child("Child", "r")
        return Child(self._ports.caller, path, cls=object, run_id="r")


def lasting(viewer: Viewer) -> dict[str, int]:
    """What a viewer knows, without transient progress."""
    return {said: number for said, number in viewer.numbers.items() if "progress" not in said}


steps = st.lists(
    st.sampled_from(
        ["chunk", "chunk", "chunk", "progress", "milestone", "restart", "missed", "connect", "read"]
    ),
    max_size=40,
)


@pytest.mark.behaviour("D2", "D21", "AT-107", "AT-109", "QK-002")
@settings(max_examples=150)
@given(steps)
def test_live_and_replayed_frames_have_the_same_numbers(story_steps: list[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Story(Path(folder) / "agent.db")) as story,
    ):
        first = story.connect()
        first.read(2)
        for step in story_steps:
            story.play(step)
        story.end(Ending(status="completed", summary="s"))
        late = story.connect()
        story.check()

        everything = lasting(late)
        assert len(everything) == 2 + len(story._stream.stored)
        for viewer in story.viewers:
            assert lasting(viewer) == everything
        assert list(everything.values()) == sorted(everything.values())
        if first in story.viewers:
            assert list(first.numbers.values()) == list(range(len(first.numbers)))


@pytest.mark.behaviour("D2", "AT-055", "AT-059")
@settings(max_examples=80)
@given(steps, steps)
def test_a_run_that_is_repaired_keeps_its_numbers(before: list[str], after: list[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Story(Path(folder) / "agent.db")) as story,
    ):
        story.connect()
        for step in before:
            story.play(step)
        story.end(interruption("no-progress", child_still_running=True))
        story.repair()
        for step in after:
            story.play(step)
        story.end(Ending(status="completed", summary="s"))
        late = story.connect()
        story.check()

        assert len(lasting(late)) == 2 + len(story._stream.stored)
        assert list(late.numbers.values()) == sorted(late.numbers.values())


@pytest.mark.behaviour("D2", "D21", "AT-055")
def test_a_replay_of_a_lost_run_that_is_repaired_meanwhile_goes_on_with_what_came(
    tmp_path: Path,
) -> None:
    story = Story(tmp_path / "agent.db")
    story.play("chunk")
    story.end(interruption("inspect-timeout"), counted=False)
    slow = story.connect(room=1)
    while not any("interrupted" in said for said in slow.said):
        slow.read(1)
    assert slow.behind
    story.repair()
    story.end(Ending(status="completed", summary="s"))
    story.check()

    late = story.connect()
    story.check()
    assert len(lasting(late)) == 2 + len(story._stream.stored)
    assert set(lasting(late)) <= set(lasting(slow))
