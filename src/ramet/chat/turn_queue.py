"""Which turn runs next: one at a time, in the order they were accepted (TQ-001 … TQ-003)."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class TurnQueue(Generic[T]):
    """A queue that holds one item as active and starts the next when that has finished."""

    def __init__(self, start: Callable[[T], object]) -> None:
        self._start = start
        self._waiting: deque[T] = deque()
        self._idle_waiters: list[Callable[[], object]] = []
        self.active: T | None = None
        """What runs now."""
        self.generation = 0
        """How often the queue was reset."""

    def __iter__(self) -> Iterator[T]:
        """The active item, then those that wait."""
        if self.active is not None:
            yield self.active
        yield from tuple(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.active is None and not self._waiting

    def add(self, item: T) -> None:
        """Put an item at the end, and start it when nothing else runs."""
        self._waiting.append(item)
        self._advance()

    def finished(self, item: T) -> None:
        """Take note that the active item has ended, however it did; the next one starts."""
        if self.active is item:
            self.active = None
            self._advance()

    def reset(self) -> list[T]:
        """Begin a new generation: what waits is given back, the active one goes on."""
        self.generation += 1
        stale = list(self._waiting)
        self._waiting.clear()
        self._tell_when_idle()
        return stale

    def when_idle(self, call: Callable[[], object]) -> None:
        """Call once nothing runs and nothing waits; at once when that is so."""
        self._idle_waiters.append(call)
        self._tell_when_idle()

    def _advance(self) -> None:
        if self.active is None and self._waiting:
            self.active = self._waiting.popleft()
            self._start(self.active)
        self._tell_when_idle()

    def _tell_when_idle(self) -> None:
        while self.idle and self._idle_waiters:
            self._idle_waiters.pop(0)()
