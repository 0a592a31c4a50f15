"""`Agent.retry`: the user's function, tried again with the options of the class."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ramet.core.options import AgentOptions, RetryOptions
from ramet.errors import InvalidOptions
from tests.support.ground import Ground, Verbs

T = TypeVar("T")


class Room(Verbs):
    """A root."""


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground[Room]]:
    options = AgentOptions(retry=RetryOptions(max_attempts=2, max_delay=1.0))
    made = Ground(tmp_path, Room, options=options)
    await made.open()
    yield made
    await made.close()


async def finished(ground: Ground[Room], work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.get_running_loop().create_task(work)
    await ground.advance(60)
    assert task.done()
    return task.result()


@pytest.mark.behaviour("RT-001")
async def test_a_function_is_given_its_attempt_if_it_takes_it(ground: Ground[Room]) -> None:
    seen: list[int] = []

    async def flaky(attempt: int) -> str:
        seen.append(attempt)
        if attempt < 4:
            raise OSError("not yet")
        return "done"

    room = ground.root.agent
    assert await finished(ground, room.retry(flaky, RetryOptions(max_attempts=5))) == "done"
    assert seen == [1, 2, 3, 4]
    assert await finished(ground, room.retry(lambda: 5)) == 5


@pytest.mark.behaviour("RT-001", "RT-004")
async def test_what_is_left_out_comes_from_the_class_and_the_last_error_is_raised(
    ground: Ground[Room],
) -> None:
    seen: list[int] = []

    def fail(attempt: int) -> None:
        seen.append(attempt)
        raise OSError(f"attempt {attempt}")

    room = ground.root.agent
    with pytest.raises(OSError, match="attempt 2"):
        await finished(ground, room.retry(fail))
    assert seen == [1, 2]
    with pytest.raises(InvalidOptions, match=r"base_delay 2\.0 is above max_delay 1\.0"):
        await room.retry(fail, RetryOptions(base_delay=2.0))
    assert seen == [1, 2]


@pytest.mark.behaviour("RT-003")
async def test_a_predicate_ends_it(ground: Ground[Room]) -> None:
    seen: list[int] = []

    def fail(attempt: int) -> None:
        seen.append(attempt)
        raise ValueError("for good")

    room = ground.root.agent
    run = room.retry(
        fail,
        RetryOptions(max_attempts=9),
        should_retry=lambda error, attempt: isinstance(error, OSError),
    )
    with pytest.raises(ValueError, match="for good"):
        await finished(ground, run)
    assert seen == [1]
