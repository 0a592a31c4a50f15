"""The runs that this instance has a task for: one each, so that a run ends once (QK-008)."""

from collections.abc import Iterator

from ramet.agent_tools.live_run import LiveRun


class RunsInFlight:
    """Finds the live run of an id."""

    def __init__(self) -> None:
        self._live: dict[str, LiveRun] = {}

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(tuple(self._live.values()))

    def __len__(self) -> int:
        return len(self._live)

    def get(self, run_id: str) -> LiveRun | None:
        """The live run of that id, if there is one."""
        return self._live.get(run_id)

    def gone(self, error: Exception) -> None:
        """Raise in everybody who waits for a run: the instance that had it is gone.

        Their own tasks need not end with it: an agent's object can be called from anywhere.
        """
        for live in self:
            live.sealed.set()
            live.fail(error)

    def add(self, live: LiveRun) -> None:
        """Take a run in."""
        self._live[live.run_id] = live

    def forget(self, live: LiveRun) -> None:
        """Let a run go; harmless when a newer one has its id by now."""
        if self._live.get(live.run_id) is live:
            del self._live[live.run_id]
