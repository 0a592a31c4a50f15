"""Blocking code of users, run in threads that carry the running code's context along."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_running: set[asyncio.Future[Any]] = set()


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread; `current_agent()` works inside it.

    Cancelling the wait does not stop the thread: its result is dropped.
    """
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()
    work = loop.run_in_executor(None, lambda: context.run(call, *args, **kwargs))
    _running.add(work)
    work.add_done_callback(_running.discard)
    return await work


def running_threads() -> int:
    """How many such functions run at the moment."""
    return len(_running)


async def thread_finished() -> None:
    """Wait until one of them has returned."""
    if _running:
        await asyncio.wait(set(_running), return_when=asyncio.FIRST_COMPLETED)
