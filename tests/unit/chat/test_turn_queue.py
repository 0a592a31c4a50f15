"""Which turn runs next (TQ-001 … TQ-003)."""

import pytest

from ramet.chat.turn_queue import TurnQueue


def queue() -> tuple[TurnQueue[str], list[str]]:
    started: list[str] = []
    return TurnQueue(started.append), started


@pytest.mark.behaviour("TQ-001")
def test_items_start_in_order_and_one_at_a_time() -> None:
    turns, started = queue()
    for item in ("a", "b", "c"):
        turns.add(item)
    assert started == ["a"]
    turns.finished("a")
    assert started == ["a", "b"]
    turns.finished("b")
    assert (started, turns.active) == (["a", "b", "c"], "c")


def test_only_the_end_of_the_active_item_starts_the_next() -> None:
    turns, started = queue()
    turns.add("a")
    turns.add("b")
    turns.finished("b")
    assert started == ["a"]


@pytest.mark.behaviour("TQ-002")
def test_a_reset_gives_back_what_waits_and_lets_the_active_item_finish() -> None:
    turns, started = queue()
    for item in ("a", "b", "c"):
        turns.add(item)
    assert turns.reset() == ["b", "c"]
    assert turns.active == "a"
    turns.add("d")
    turns.finished("a")
    assert started == ["a", "d"]
    assert turns.generation == 1


@pytest.mark.behaviour("TQ-003")
def test_idle_means_nothing_runs_and_nothing_waits_what_came_meanwhile_included() -> None:
    turns, _ = queue()
    told: list[str] = []
    turns.when_idle(lambda: told.append("at once"))
    turns.add("a")
    turns.when_idle(lambda: told.append("later"))
    turns.add("b")
    turns.finished("a")
    assert told == ["at once"]
    turns.finished("b")
    assert told == ["at once", "later"]


def test_all_that_has_not_finished_is_listed_in_order() -> None:
    turns, _ = queue()
    for item in ("a", "b", "c"):
        turns.add(item)
    turns.finished("a")
    assert list(turns) == ["b", "c"]


@pytest.mark.behaviour("TQ-020")
def test_a_held_item_counts_as_waiting_but_gets_its_place_only_when_released() -> None:
    started: list[str] = []
    queue = TurnQueue[str](started.append)
    idle: list[bool] = []
    queue.hold("late")
    queue.when_idle(lambda: idle.append(True))
    assert (list(queue), queue.idle, started, idle) == (["late"], False, [], [])
    queue.add("first")
    queue.add("second")
    queue.release("late")
    queue.release("late")
    assert (started, list(queue)) == (["first"], ["first", "second", "late"])
    for item in ("first", "second", "late"):
        queue.finished(item)
    assert (started, idle) == (["first", "second", "late"], [True])


@pytest.mark.behaviour("TQ-002")
def test_what_was_withdrawn_never_starts_and_a_reset_gives_back_held_items_too() -> None:
    started: list[str] = []
    queue = TurnQueue[str](started.append)
    for item in ("active", "gone", "stays"):
        queue.add(item)
    queue.hold("held")
    queue.hold("gone too")
    for item in ("gone", "gone too", "active"):
        queue.withdraw(item)
    assert list(queue) == ["active", "stays", "held"]
    assert queue.reset() == ["stays", "held"]
    queue.release("held")
    queue.finished("active")
    assert started == ["active"]
