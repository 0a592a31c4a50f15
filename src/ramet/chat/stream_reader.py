"""Reads a stored answer from a place on: its chunks, with the milestones of its run among them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ramet.agent_tools.records import StoredChunk
from ramet.chat.child_runs import ChildRunStore, PlacedMilestone
from ramet.chat.signals import milestone_chunk
from ramet.chat.stream_log import PAGE_CHUNKS, ChunkPage, read_page
from ramet.core.json import dumps
from ramet.storage import Database

ReadPage: TypeAlias = Callable[[int, int], ChunkPage]
"""Gives the page of chunks after an index, with a limit."""
ReadMilestones: TypeAlias = Callable[[int], Sequence[PlacedMilestone]]
"""Gives the milestones with a number above one."""


class StreamReader:
    """A place in a stored stream that moves forward with what is read."""

    def __init__(
        self, read_page: ReadPage, read_milestones: ReadMilestones, *, after: int = -1
    ) -> None:
        self._read_page = read_page
        self._read_milestones = read_milestones
        self._first = after
        self._last = after
        self._milestone = -1
        self.at_end = False
        """Whether the last page reached what is stored so far."""

    @property
    def last(self) -> int:
        """The index of the last chunk that was read."""
        return self._last

    def next_page(self, limit: int = PAGE_CHUNKS) -> list[StoredChunk]:
        """The next items, each milestone right before the chunk that follows it.

        A milestone with no chunk after it comes with the page that reaches the end.
        """
        page = self._read_page(self._last, limit)
        self.at_end = page.at_end
        milestones = [
            each for each in self._read_milestones(self._milestone) if each.position >= self._first
        ]
        items: list[StoredChunk] = []
        for chunk in page.chunks:
            items += self._before(chunk.index, milestones)
            items.append(StoredChunk(sequence=chunk.index, body=chunk.body))
            self._last = chunk.index
        if page.at_end:
            items += self._before(self._last + 1, milestones)
        return items

    def _before(self, index: int, milestones: list[PlacedMilestone]) -> list[StoredChunk]:
        due: list[StoredChunk] = []
        while milestones and milestones[0].position < index:
            placed = milestones.pop(0)
            self._milestone = placed.milestone.sequence
            body = dumps(milestone_chunk(placed.milestone))
            due.append(StoredChunk(sequence=placed.position, body=body, kind="milestone"))
        return due


def read_stored_run(  # noqa: PLR0917 - parents call it by place, whatever class the child has
    database: Database, run_id: str, after_sequence: int = -1, limit: int | None = None
) -> list[StoredChunk] | None:
    """What a run has streamed, from its agent's database, whether the agent is open or not.

    Args:
        database: The agent's database, with its current schema.
        run_id: The run.
        after_sequence: Only chunks above this index, and milestones from this place on.
        limit: The most chunks to give, in one page; None gives all there are.

    Returns:
        The items in order; None when the agent knows no such run.
    """
    runs = ChildRunStore(database)
    run = runs.get(run_id)
    if run is None:
        return None
    stream_id = run.stream_id
    reader = StreamReader(
        lambda after, most: read_page(database, stream_id, after=after, limit=most),
        lambda after: runs.milestones(run_id, after=after),
        after=after_sequence,
    )
    items = reader.next_page(limit or PAGE_CHUNKS)
    while limit is None and not reader.at_end:
        items += reader.next_page()
    return items
