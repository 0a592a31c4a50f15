"""Blocking code of users, run in threads that carry the running code's context along."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MOST_THREADS = 64
"""Blocking functions that run at the same time in one process; more wait for their turn."""

_running: set[asyncio.Future[Any]] = set()
_turns = threading.BoundedSemaphore(MOST_THREADS)


_calling_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar(
    "ramet_calling_loop", default=None
)


def calling_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that the running thread works for; None in a thread of anybody else's."""
    return _calling_loop.get()


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread; `current_agent()` works inside it.

    Cancelling the wait does not stop the thread: its result is dropped. A thread that still blocks
    does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()
    context.run(_calling_loop.set, loop)
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type] # there is a result without an error

    def work() -> None:
        result: T | None = None
        failure: BaseException | None = None
        with _turns:
            try:
                result = context.run(call, *args, **kwargs)
            except StopIteration as error:
                failure = RuntimeError(f"the function raised StopIteration: {error}")
            except SystemExit as error:
                failure = RuntimeError(f"the function called sys.exit({error.code!r})")
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the caller gets it, whatever it is
                failure = error
            except BaseException as error:  # noqa: BLE001 - nobody's Ctrl-C comes to a thread
                failure = RuntimeError(f"the function raised {type(error).__name__}: {error}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    _running.add(done)
    done.add_done_callback(_running.discard)
    threading.Thread(target=work, name="ramet blocking call", daemon=True).start()
    return await done


async def items_in_thread(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """Iterate over what may block; each item is waited for in a thread.

    Ended early, it asks for no more; what is being asked for is dropped.
    """
    iterator = iter(items)
    while True:
        item = await in_thread(next, iterator, _END)
        if isinstance(item, _End):
            return
        yield item


class _End:
    """Says that an iterator has nothing more to give."""


_END = _End()


def running_threads() -> int:
    """How many such functions are waited for at the moment."""
    return len(_running)


async def thread_finished() -> None:
    """Wait until one of them has returned."""
    if _running:
        await asyncio.wait(set(_running), return_when=asyncio.FIRST_COMPLETED)
