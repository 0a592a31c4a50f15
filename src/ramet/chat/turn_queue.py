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
        self._held: list[T] = []
        self._gaps: deque[Callable[[], object]] = deque()
        self._in_gap = False
        self._idle_waiters: list[Callable[[], object]] = []
        self.active: T | None = None
        """What runs now."""
        self.generation = 0
        """How often the queue was reset."""

    def __iter__(self) -> Iterator[T]:
        """The active item, then those that wait."""
        if self.active is not None:
            yield self.active
        yield from self.waiting

    @property
    def waiting(self) -> tuple[T, ...]:
        """Those that wait for their turn, then those that are held back."""
        return (*self._waiting, *self._held)

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.active is None and not self.waiting

    def add(self, item: T) -> None:
        """Put an item at the end, and start it when nothing else runs."""
        self._waiting.append(item)
        self._advance()

    def hold(self, item: T) -> None:
        """Take an item in, but give it no place before it is released."""
        self._held.append(item)

    def release(self, item: T) -> None:
        """Put a held item at the end; nothing when it is not held any more."""
        if item in self._held:
            self._held.remove(item)
            self.add(item)

    def withdraw(self, item: T) -> None:
        """Forget an item that waits; another is about to take its place."""
        for items in (self._waiting, self._held):
            if item in items:
                items.remove(item)

    def finished(self, item: T) -> None:
        """Take note that the active item has ended, however it did; the next one starts."""
        if self.active is item:
            self.active = None
            self._advance()

    def reset(self) -> list[T]:
        """Begin a new generation: what waits is given back, the active one goes on."""
        self.generation += 1
        stale = list(self.waiting)
        self._waiting.clear()
        self._held.clear()
        self._tell_when_idle()
        return stale

    def between(self, call: Callable[[], object]) -> None:
        """Call once no item is active, before those that wait; none starts until `gap_over`."""
        self._gaps.append(call)
        self._advance()

    def gap_over(self) -> None:
        """Take note that what was called between two items is done."""
        self._in_gap = False
        self._advance()

    def when_idle(self, call: Callable[[], object]) -> None:
        """Call once nothing runs and nothing waits; at once when that is so."""
        self._idle_waiters.append(call)
        self._tell_when_idle()

    def _advance(self) -> None:
        if self.active is None and not self._in_gap and self._gaps:
            self._in_gap = True
            self._gaps.popleft()()
        elif self.active is None and not self._in_gap and self._waiting:
            self.active = self._waiting.popleft()
            self._start(self.active)
        self._tell_when_idle()

    def _tell_when_idle(self) -> None:
        while self.idle and self._idle_waiters:
            self._idle_waiters.pop(0)()
