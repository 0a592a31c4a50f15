"""The one path by which every run ends: row, then frame, then hook."""

from ramet.agent_tools.feed import Feed
from ramet.agent_tools.outputs import result_of
from ramet.agent_tools.policy import Ending, rewrite, storable
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.core.failpoints import SEAL_TWICE, failpoint


class Finalizer:
    """Seals runs and tells of it."""

    def __init__(self, ports: AgentToolPorts, runs: RunStore) -> None:
        self._ports = ports
        self._runs = runs

    def seal(self, feed: Feed, ending: Ending, *, counted: bool = True) -> StoredRun | None:
        """Write how a run ended and its last frame in one commit, and send the frame.

        None when nothing is to be told: the row has a hard terminal already, which at most gains
        what it lacked, or the run was cleared (AT-058 … AT-060).
        """
        failpoint("run.finalizing")
        ending = storable(ending)
        with self._ports.database.transaction():
            sealed = self._write(feed, ending, counted=counted)
            if SEAL_TWICE and sealed is not None:
                feed.end(sealed, counted=counted)
        failpoint("run.finalized")
        return sealed

    def _write(self, feed: Feed, ending: Ending, *, counted: bool) -> StoredRun | None:
        run_id = feed.run.run_id
        stored = self._runs.get(run_id)
        decision = rewrite(stored.status, ending) if stored else "keep"
        if decision == "fill":
            self._runs.fill(run_id, ending)
        if decision != "seal":
            return None
        feed.start()
        completed_at = ending.completed_at or self._ports.clock.now_ms()
        self._runs.seal(run_id, ending, completed_at)
        sealed = self._runs.get(run_id)
        if sealed is not None:
            feed.end(sealed, counted=counted)
        return sealed

    async def tell(self, run: StoredRun) -> None:
        """Run the finish hook for a sealed run; the result stands whatever it raises (QK-011)."""
        try:
            await self._ports.hooks.agent_tool_finished(run.info(), result_of(run))
        except Exception as error:  # noqa: BLE001 - a hook's fault goes to on_error, the result stands
            self._ports.errors.report(error)
