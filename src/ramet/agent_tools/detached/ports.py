"""What detached runs need of their surroundings beside what runs need, as narrow ports."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from ramet.agent_tools.detachment import MilestoneMode
from ramet.agent_tools.records import Milestone, RunInfo, RunResult
from ramet.core.json import JsonValue


class Waking(Protocol):
    """The durable wake-ups of an agent; see `Schedules`."""

    def wake(
        self,
        handler: str,
        due_ms: int | None,
        *,
        payload: JsonValue = None,
        delay: float | None = None,
    ) -> None:
        """Have an internal handler called at a moment, in place of the one before; None: never."""
        ...

    def woken_at(self, handler: str) -> int | None:
        """When that is to be, in epoch milliseconds; None when it is not."""
        ...


class FinishCallbacks(Protocol):
    """The agent's own methods for the end of a run."""

    def finish_callback(self, method: object) -> str:
        """The name under which a method is stored; raises when it cannot be called later."""
        ...

    async def run_finish_callback(self, name: str, run: RunInfo, result: RunResult[object]) -> None:
        """Call it, if the agent still has it (AT-250); raises what it raises."""
        ...


class Notices(Protocol):
    """Tells a chat what becomes of its runs."""

    async def finished(self, run: RunInfo, result: RunResult[object]) -> None:
        """Tell of the end of a run; the same again adds nothing."""
        ...

    async def reached(
        self,
        run: RunInfo,
        milestone: Milestone,
        mode: MilestoneMode,
        *,
        noticed: Callable[[], object],
    ) -> None:
        """Tell of a milestone; `noticed` is called in the commit that stores the message."""
        ...


class BetweenTurns(Protocol):
    """Keeps the turns of a chat from running while a block runs (AT-268)."""

    def __call__(
        self, *, at_most: float, overdue: Callable[[], object]
    ) -> AbstractAsyncContextManager[object]:
        """The block; after `at_most` seconds turns go on beside it, and `overdue` is called."""
        ...


def no_turns(
    *, at_most: float, overdue: Callable[[], object]
) -> AbstractAsyncContextManager[object]:
    """The block of an agent without a chat: it keeps nobody waiting, however long it takes."""
    del at_most, overdue
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedPorts:
    """The surroundings of the detached runs of one parent."""

    waking: Waking
    callbacks: FinishCallbacks
    notices: Notices | None = None
    """None on an agent without a chat."""
    between_turns: BetweenTurns = no_turns
