"""A process killed at each durable step: nothing is lost, and what runs twice is known."""

from pathlib import Path

import pytest

from ramet.testing.manual_clock import START_MS
from tests.support.crashing import ground_in, play_until_killed

pytestmark = pytest.mark.kill


async def calls_after_restart(folder: Path, *, minutes: float = 2) -> list[str]:
    """Open nothing: let the index wake what it knows of, and give all calls since the beginning."""
    ground = ground_in(folder)
    due = ground.due_ms()
    if due is not None:
        ground.index.set(due)
    await ground.advance(minutes * 60)
    await ground.close()
    file = folder / "calls"
    return file.read_text().split() if file.exists() else []


@pytest.mark.behaviour("D6")
async def test_killed_between_the_promise_and_the_row_it_wakes_for_nothing(tmp_path: Path) -> None:
    play_until_killed(tmp_path, "delayed", "schedule.promised")
    ground = ground_in(tmp_path)
    assert ground.due_ms() == START_MS + 5_000
    assert await calls_after_restart(tmp_path) == []
    assert not (tmp_path / "wake").exists()


@pytest.mark.behaviour("D6", "SC-016")
@pytest.mark.parametrize(
    ("scene", "failpoint", "calls"),
    [
        # Killed before the callback: it is called once, by the next process.
        ("delayed", "schedule.stored", ["delayed"]),
        ("below", "schedule.stored", ["below"]),
        # Killed between the callback and its row: it is called again. At least once.
        ("delayed", "schedule.executed", ["delayed"] * 2),
        ("below", "schedule.executed", ["below"] * 2),
        # Killed after the row went: never again.
        ("delayed", "schedule.removed", ["delayed"]),
        ("below", "schedule.removed", ["below"]),
    ],
)
async def test_a_one_shot_survives_a_kill_at_any_step(
    tmp_path: Path, scene: str, failpoint: str, calls: list[str]
) -> None:
    play_until_killed(tmp_path, scene, failpoint)
    assert await calls_after_restart(tmp_path) == calls
    ground = ground_in(tmp_path)
    assert ground.schedule_rows() == []
    assert ground.due_ms() is None


@pytest.mark.behaviour("D6", "SC-017", "SC-018", "SC-020", "SC-021")
@pytest.mark.parametrize(
    ("scene", "failpoint", "calls"),
    [
        ("interval", "schedule.claimed", 2),
        ("interval", "schedule.executed", 3),
        ("interval", "schedule.next_promised", 3),
        ("interval", "schedule.rescheduled", 3),
        ("cron", "schedule.executed", 3),
        ("cron", "schedule.next_promised", 3),
        ("cron", "schedule.rescheduled", 3),
    ],
)
async def test_what_repeats_goes_on_after_a_kill_at_any_step(
    tmp_path: Path, scene: str, failpoint: str, calls: int
) -> None:
    play_until_killed(tmp_path, scene, failpoint)
    ground = ground_in(tmp_path)
    assert ground.due_ms() is not None
    made = await calls_after_restart(tmp_path, minutes=3)
    assert made == [scene] * len(made)
    assert len(made) >= calls
    [row] = ground.schedule_rows()
    assert row["running"] == 0
    assert row["time"] * 1000 > START_MS + 120_000


@pytest.mark.behaviour("QU-007", "QU-009", "QK-013", "D6")
@pytest.mark.parametrize(
    ("scene", "failpoint", "calls"),
    [
        ("queued", "queue.stored", ["0"]),
        ("queued", "queue.stored:3", ["0", "1", "2"]),
        ("queued", "queue.executed", ["0", "0", "1", "2"]),
        ("queued", "queue.executed:2", ["0", "1", "1", "2"]),
        ("queued", "queue.removed", ["0", "1", "2"]),
        ("queued_below", "queue.stored", ["below"]),
        ("queued_below", "queue.executed", ["below", "below"]),
        ("queued_below", "queue.removed", ["below"]),
    ],
)
async def test_a_queue_survives_a_kill_at_any_step_and_its_agent_is_woken(
    tmp_path: Path, scene: str, failpoint: str, calls: list[str]
) -> None:
    play_until_killed(tmp_path, scene, failpoint)
    assert await calls_after_restart(tmp_path) == calls
    ground = ground_in(tmp_path)
    assert ground.queue_rows() == []
    assert ground.due_ms() is None
