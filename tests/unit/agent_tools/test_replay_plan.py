"""Which runs a new connection is sent."""

import pytest

from ramet.agent_tools.replay_plan import runs_to_replay
from ramet.agent_tools.run_store import StoredRun


def run(number: int) -> StoredRun:
    return StoredRun(
        run_id=f"r{number}", agent_type="A", status="completed", started_at=5, ordinal=number
    )


def planned(
    unfinished: list[int], *groups: list[int], runs: int = 100, chunks: int = 100, each: int = 1
) -> list[str]:
    found = runs_to_replay(
        [run(number) for number in unfinished],
        [[run(number) for number in group] for group in groups],
        chunk_counts={f"r{number}": each for group in groups for number in group},
        most_runs=runs,
        most_chunks=chunks,
    )
    return [each.run_id for each in found]


@pytest.mark.behaviour("D22", "AT-134")
def test_everything_is_sent_in_the_order_it_was_started() -> None:
    assert planned([4, 1], [2, 3], [5, 3, 2]) == ["r1", "r2", "r3", "r4", "r5"]


@pytest.mark.behaviour("D22")
def test_the_most_wanted_runs_come_first_where_not_all_are_sent() -> None:
    assert planned([], [2, 1], [9, 8, 2], runs=3) == ["r1", "r2", "r9"]
    assert planned([], [2, 1], [9, 8, 2], chunks=25, each=10) == ["r1", "r2"]


@pytest.mark.behaviour("D22")
def test_what_is_unfinished_is_sent_whatever_the_limits() -> None:
    assert planned([3, 4], [5], runs=0, chunks=0) == ["r3", "r4"]
