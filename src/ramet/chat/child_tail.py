"""Follows a run's items for its parent: what is stored first, then what comes, without a seam."""

from collections.abc import Callable
from typing import Protocol

from ramet.agent_tools.records import StoredChunk
from ramet.core.tail import Tail


class Backlog(Protocol):
    """What is stored of a stream, from a place on."""

    @property
    def at_end(self) -> bool:
        """Whether everything that is stored so far was given."""
        ...

    def next_page(self) -> list[StoredChunk]:
        """The next items."""
        ...


class ChildTail(Tail[StoredChunk]):
    """A tail that reads the backlog in pages as its consumer takes them (AT-108 … AT-112).

    The page that reaches the end and the switch to live items are one step, so nothing is missed
    and nothing comes twice; until then live items are left to the backlog.
    """

    def __init__(
        self,
        backlog: Backlog,
        *,
        attach: Callable[["ChildTail"], bool],
        on_detach: Callable[["ChildTail"], object],
    ) -> None:
        """Begin at the backlog's place.

        Args:
            backlog: What is stored.
            attach: Puts the tail among those that get live items; False when none will come.
            on_detach: Called once when the tail has ended, whoever ended it.
        """
        super().__init__(lambda: on_detach(self))
        self._backlog = backlog
        self._attach = attach
        self._behind = True

    async def __anext__(self) -> StoredChunk:
        while self._behind and not self._items and not self.ended:
            self._read()
        return await super().__anext__()

    @property
    def has_caught_up(self) -> bool:
        """Whether everything that was stored has been given, so that live items are next."""
        return not self._behind

    def settle(self) -> None:
        """Take note that the run has ended: the tail ends once its consumer has everything."""
        if not self._behind:
            self.end()

    def _read(self) -> None:
        self._items.extend(self._backlog.next_page())
        if self._backlog.at_end:
            self._behind = False
            if not self._attach(self):
                self.end()
