"""The tasks of one instance: owned by it, ended with it, their errors reported (D12)."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from ramet.agent.build import BuiltAgent
from ramet.core.callbacks import exits_as_errors
from ramet.core.current import Current, set_base
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.errors import InstanceGone

T = TypeVar("T")

_log = logging.getLogger("ramet.host")


class InstanceTasks:
    """Starts the tasks of one instance in its base context and ends them together."""

    def __init__(self, path: AgentPath, fence: Fence) -> None:
        self._path = path
        self._fence = fence
        self._built: BuiltAgent | None = None
        self._context = contextvars.Context()
        self._tasks: set[asyncio.Task[Any]] = set()

    def serve(self, built: BuiltAgent) -> None:
        """Say whose tasks these are; before the first is started."""
        self._built = built
        self._context.run(set_base, Current(agent=built.agent))

    def start(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        """Run `work` as a task nobody need wait for: an error goes to the agent's `on_error`."""
        task = self.run(work, name=name)
        task.add_done_callback(self._report)
        return task

    def run(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        """Run `work` as a task whose outcome its starter takes."""
        task = new_task(_staying(work), name=f"{self._path} {name}", context=self._context.copy())
        task.add_done_callback(lambda _: work.close())  # for one that is cancelled before it begins
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> list[asyncio.Task[Any]]:
        """Cancel every task; returns those that have to end. The running one is cancelled too."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def _report(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._fence.down or isinstance(error, InstanceGone) or self._built is None:
            _log.debug("%s ended with its instance: %s", task.get_name(), error)
        else:
            self._built.runtime.hooks.report(error)


async def _staying(work: Coroutine[object, object, T]) -> T:
    """Run code of users, which must not end the server by `sys.exit`."""
    with exits_as_errors():
        return await work


def new_task(
    work: Coroutine[object, object, T], *, name: str, context: contextvars.Context | None = None
) -> asyncio.Task[T]:
    """Make a task; its starter holds it until it is done."""
    coroutine: Coroutine[Any, Any, T] = work
    return asyncio.get_running_loop().create_task(
        coroutine, name=name, context=context or contextvars.Context()
    )


async def outcome(task: asyncio.Task[T]) -> T:
    """Wait for a task that others wait for too: cancelling this wait leaves it running."""
    await asyncio.wait({task})
    return task.result()


async def ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait until all of the tasks have ended, however they did."""
    if tasks:
        await asyncio.wait(tasks)
