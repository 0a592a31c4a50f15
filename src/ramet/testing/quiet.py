"""Waits until an event loop has nothing left to do by itself."""

import asyncio
from collections import deque

from ramet.core.threads import running_threads, thread_finished

_ROUNDS = 3


async def quiet() -> None:
    """Return once every task waits for a timer, a test or the outside, and no tool thread runs."""
    calm = 0
    while calm < _ROUNDS:
        await asyncio.sleep(0)
        if _ready_count():
            calm = 0
        elif running_threads():
            await thread_finished()
            calm = 0
        else:
            calm += 1


def _ready_count() -> int:
    ready: object = getattr(asyncio.get_running_loop(), "_ready", deque())
    return len(ready) if isinstance(ready, deque) else 0
