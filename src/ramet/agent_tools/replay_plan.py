"""Decides which runs a new connection is sent (D22)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ramet.agent_tools.run_store import StoredRun


def runs_to_replay(
    unfinished: Sequence[StoredRun],
    candidates: Iterable[Sequence[StoredRun]],
    *,
    chunk_counts: Mapping[str, int],
    most_runs: int,
    most_chunks: int,
) -> list[StoredRun]:
    """Choose the runs to send, in the order they were started.

    Args:
        unfinished: Sent in full, whatever the limits.
        candidates: Groups of finished runs, the most wanted first; a run may be in several.
        chunk_counts: How many chunks each finished run has.
        most_runs: How many finished runs are sent.
        most_chunks: How many chunks of finished runs are sent.
    """
    chosen = {run.run_id: run for run in unfinished}
    runs_left, chunks_left = most_runs, most_chunks
    for run in chain.from_iterable(candidates):
        if run.run_id in chosen:
            continue
        runs_left -= 1
        chunks_left -= chunk_counts.get(run.run_id, 0)
        if runs_left < 0 or chunks_left < 0:
            break
        chosen[run.run_id] = run
    return sorted(chosen.values(), key=lambda run: run.age)
