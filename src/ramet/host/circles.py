"""Notices agents that would wait for each other's `on_start` for ever."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ramet.core.paths import AgentPath
from ramet.errors import CallError


class StartWaits:
    """Which starting agents wait for which others to start."""

    def __init__(self) -> None:
        self._waits: dict[AgentPath, Counter[AgentPath]] = {}

    @contextmanager
    def waiting(self, starting: AgentPath, on: AgentPath) -> Iterator[None]:
        """Note a wait for the block.

        Raises:
            CallError: The other one waits for this one, itself or through others.
        """
        circle = self._way(on, to=starting)
        if circle is not None:
            names = " → ".join(str(path) for path in (starting, *circle))
            raise CallError(
                f"These agents wait for each other to start: {names}; "
                "let one of them make its call later than in on_start"
            )
        waits = self._waits.setdefault(starting, Counter())
        waits[on] += 1
        try:
            yield
        finally:
            waits[on] -= 1
            if not waits[on]:
                del waits[on]
            if not waits:
                self._waits.pop(starting, None)

    def _way(self, start: AgentPath, *, to: AgentPath) -> list[AgentPath] | None:
        """The agents from one to another along what they wait for; None when there is no way."""
        ways = [[start]]
        seen = {start}
        while ways:
            way = ways.pop()
            if way[-1] == to:
                return way
            following = [each for each in self._waits.get(way[-1], ()) if each not in seen]
            seen.update(following)
            ways += [[*way, each] for each in following]
        return None
