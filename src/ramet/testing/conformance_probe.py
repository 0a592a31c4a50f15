"""A child under a real host, as a conformance check talks to it: through a parent's own calls."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn

from ramet.agent.agent import Agent
from ramet.agent_tools.children import CHUNKS, Child
from ramet.agent_tools.records import Inspection, RunResult, StoredChunk
from ramet.agent_tools.tail_lines import TailLines
from ramet.core.clock import SystemClock
from ramet.core.signals import AbortSignal
from ramet.testing.conformance_scenario import ChildScenario
from ramet.testing.harness import Harness

TERMINAL = frozenset({"completed", "error", "aborted"})
POLL_SECONDS = 0.01
STEP_SECONDS = 0.5
"""How far the manual clock is moved at a time while a run is to end."""
NAME = "conformance"


class CheckFailed(AssertionError):
    """A child does not keep a rule."""


class ConformanceParent(Agent[None]):
    """The parent of the children that are checked."""

    async def run(
        self, cls: type, input: object, *, run_id: str, signal: AbortSignal | None = None
    ) -> RunResult[object]:
        """Run a child and wait for it."""
        return await self.run_agent_tool(cls, input=input, run_id=run_id, signal=signal)


class Follower:
    """Reads a tail in the background, until it ends or is left."""

    def __init__(self) -> None:
        self.items: list[StoredChunk] = []
        self.ended = False
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None

    async def read(self, child: Child, after: int) -> None:
        """Read to the end."""
        lines = TailLines()
        try:
            async with child.tail(after) as items:
                async for item in items:
                    self.items += _items(item, lines)
            self.items += lines.end()
            self.ended = True
        except Exception as error:  # noqa: BLE001 - the check that follows says what it means
            self.error = error

    def leave(self) -> None:
        """Stop reading, as an observer that goes away does."""
        if self.task is not None:
            self.task.cancel()


class Probe:
    """One check's hold on a harness with one class of children."""

    def __init__(self, harness: Harness, cls: type, scenario: ChildScenario) -> None:
        self.harness = harness
        self.cls = cls
        self.scenario = scenario
        self._clock = SystemClock()
        chunks = getattr(cls, CHUNKS, None)
        self._pages = chunks is not None and "limit" in inspect.signature(chunks).parameters

    async def parent(self) -> ConformanceParent:
        """The parent, opened if need be."""
        return await self.harness.agent(ConformanceParent, NAME)

    async def child(self, run_id: str = "run-1", *, instance: str | None = None) -> Child:
        """The child of a run; by its adapter, with the types of what it gives checked.

        Args:
            run_id: The run.
            instance: The name of the instance that is asked, if it is not the run's own.
        """
        parent: Any = await self.parent()
        context = parent._ramet.context  # noqa: SLF001 - the kit stands in for the framework
        path = self.harness.path(ConformanceParent, NAME, [(self.cls, instance or run_id)])
        return Child(context.caller, path, cls=self.cls, run_id=run_id)

    async def start(self, run_id: str = "run-1", *, slow: bool = False) -> Inspection:
        """Start a run and check what that gave."""
        asked = self.scenario.slow_input if slow else self.scenario.input
        return await (await self.child(run_id)).start(asked)

    async def inspected(self, run_id: str = "run-1") -> Inspection:
        """The inspection of a run that was started."""
        found = await (await self.child(run_id)).inspect()
        if found is None:
            fail(f"inspect_agent_tool_run gave None for {run_id!r}, which was started")
        return found

    async def chunks(self, run_id: str = "run-1", *, after: int = -1) -> list[StoredChunk]:
        """All items after a sequence, page by page where the child gives pages."""
        child, found = await self.child(run_id), list[StoredChunk]()
        while True:
            page = await child.chunks(after)
            found += page
            last = max((item.sequence for item in page), default=after)
            if last <= after or not self._pages:
                return found
            after = last

    async def follow(self, run_id: str = "run-1", *, after: int = -1) -> Follower:
        """Begin to read a tail."""
        follower, child, parent = Follower(), await self.child(run_id), await self.parent()
        background = parent._ramet.context.background  # noqa: SLF001 - the owner of all tasks
        follower.task = background.start(follower.read(child, after), name="conformance tail")
        await self.harness.settle()
        return follower

    async def until(
        self, met: Callable[[], Awaitable[bool]], what: str, *, moving: bool = False
    ) -> None:
        """Wait for something in real time; `moving` moves the manual clock too."""
        end = self._clock.monotonic() + self.scenario.timeout
        while True:
            await self.harness.settle()
            if await met():
                return
            if self._clock.monotonic() > end:
                fail(f"{what} within {self.scenario.timeout:g} seconds")
            if moving:
                await self.harness.advance(STEP_SECONDS)
            await self._clock.sleep(POLL_SECONDS)

    async def ended(self, run_id: str = "run-1") -> Inspection:
        """Wait for the end of a run."""

        async def over() -> bool:
            return (await self.inspected(run_id)).status in TERMINAL

        await self.until(over, f"The run {run_id!r} did not end", moving=True)
        return await self.inspected(run_id)

    async def finished(self, run_id: str = "run-1") -> Inspection:
        """Start a run and wait until it has completed."""
        await self.start(run_id)
        inspection = await self.ended(run_id)
        if inspection.status != "completed":
            fail(f"The run ended as {inspection.status!r}: {inspection.error!r}")
        return inspection

    async def under_way(self, run_id: str = "run-1") -> Sequence[StoredChunk]:
        """Start a slow run and wait until it has given something; that is returned."""
        await self.start(run_id, slow=True)
        await self.given(run_id)
        await self.expect_running(run_id)
        return numbered(await self.chunks(run_id))

    async def given(self, run_id: str = "run-1") -> None:
        """Wait until a run has given a chunk."""

        async def gave() -> bool:
            return bool(numbered(await self.chunks(run_id)))

        await self.until(gave, "The slow run gave no chunk")

    async def expect_running(self, run_id: str = "run-1") -> None:
        """Check that a run has not ended."""
        await self.harness.settle()
        status = (await self.inspected(run_id)).status
        expect(status not in TERMINAL, f"The run {run_id!r} has ended as {status!r}")

    async def release(self) -> None:
        """Let slow runs go on."""
        await stepped(self.scenario.release)
        await self.harness.settle()

    async def tail_over(self, follower: Follower) -> None:
        """Wait for the end of a tail."""

        async def over() -> bool:
            return follower.ended or follower.error is not None

        await self.until(over, "The tail did not end with the run", moving=True)
        if follower.error is not None:
            fail(f"The tail raised {follower.error!r}")


def fail(text: str) -> NoReturn:
    """Fail the check."""
    raise CheckFailed(text)


def expect(condition: object, text: str) -> None:
    """Fail the check unless something holds."""
    if not condition:
        fail(text)


def numbered(items: Sequence[StoredChunk]) -> list[StoredChunk]:
    """The items that take a number: the chunks."""
    return [item for item in items if item.kind == "chunk"]


async def stepped(step: Callable[[], object] | None) -> None:
    """Do what a scenario has for a step."""
    done = None if step is None else step()
    if isinstance(done, Awaitable):
        await done


def _items(item: object, lines: TailLines) -> list[StoredChunk]:
    if isinstance(item, bytes):
        return [*lines.feed(item)]
    if isinstance(item, StoredChunk):
        return [item]
    fail(f"The tail gave a {type(item).__name__}; it may give StoredChunk items or bytes")
