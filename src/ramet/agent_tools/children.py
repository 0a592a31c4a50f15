"""A run's child as its parent talks to it: the adapter methods, with what comes back checked."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Final, get_args

from ramet.agent_tools.records import ChildStatus, Inspection, StoredChunk
from ramet.core.clock import Clock
from ramet.core.json import NotJson, to_json_strict
from ramet.core.paths import AgentPath
from ramet.core.ports import Call, Caller
from ramet.errors import NotAnAgentTool
from ramet.protocol.run_events import Absent

START: Final = "start_agent_tool_run"
CANCEL: Final = "cancel_agent_tool_run"
INSPECT: Final = "inspect_agent_tool_run"
CHUNKS: Final = "get_agent_tool_chunks"
TAIL: Final = "tail_agent_tool_run"

CHUNKS_AT_ONCE: Final = 256
CHILD_PATIENCE: Final = 10.0
"""Seconds that a child's answer is waited for where nothing else limits the wait."""
NO_ANSWER: Final = f"The child did not answer in {CHILD_PATIENCE:g} seconds."


@asynccontextmanager
async def in_time(clock: Clock) -> AsyncGenerator[None]:
    """Wait for a child's answer, but not for ever.

    Raises:
        TimeoutError: There was none.
    """
    try:
        async with clock.timeout(CHILD_PATIENCE):
            yield
    except TimeoutError as error:
        raise TimeoutError(str(error) or NO_ANSWER) from error


def check_adapter(cls: type) -> None:
    """Refuse a class that cannot be run as an agent tool.

    Raises:
        NotAnAgentTool: A method of the adapter is missing, or is not async (AT-042).
    """
    missing = _missing(cls)
    if missing:
        raise NotAnAgentTool(
            f"{cls.__name__} cannot be run as an agent tool: it has no async {', '.join(missing)}. "
            "Derive it from Think or AIChatAgent, or give it the methods of the agent-tool adapter."
        )


def has_adapter(cls: type) -> bool:
    """Whether `check_adapter` accepts a class."""
    return not _missing(cls)


def _missing(cls: type) -> list[str]:
    return [
        name
        for name in (START, CANCEL, INSPECT, CHUNKS)
        if not inspect.iscoroutinefunction(getattr(cls, name, None))
    ]


class Child:
    """The child of one run."""

    def __init__(self, caller: Caller, path: AgentPath, *, cls: type, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._caller = caller
        self._name = cls.__name__
        self.tailable = callable(getattr(cls, TAIL, None))
        """Whether its chunks can be followed; else they are fetched once (AT-048)."""
        self._pages = _takes(getattr(cls, CHUNKS, None), "limit")

    async def start(self, input: object) -> Inspection:
        """Start the run; a run that was started before is only looked at (AT-061)."""
        answer = await self._call(START, input, run_id=self.run_id)
        if not isinstance(answer, Inspection):
            raise self._wrong(START, "an Inspection", answer)
        return self._sound(answer)

    async def cancel(self, reason: str | None) -> None:
        """Stop the run; harmless when it has ended (AT-189)."""
        await self._call(CANCEL, self.run_id, reason)

    async def inspect(self) -> Inspection | None:
        """What the child knows of the run; None when it knows nothing yet (AT-073)."""
        answer = await self._call(INSPECT, self.run_id)
        if answer is not None and not isinstance(answer, Inspection):
            raise self._wrong(INSPECT, "an Inspection or None", answer)
        return None if answer is None else self._sound(answer)

    async def chunks(self, after: int) -> list[StoredChunk]:
        """The next stored items of the run after a chunk index; empty at the end."""
        limit = {"limit": CHUNKS_AT_ONCE} if self._pages else {}
        answer = await self._call(CHUNKS, self.run_id, after_sequence=after, **limit)
        if not isinstance(answer, Sequence) or not all(
            isinstance(item, StoredChunk) for item in answer
        ):
            raise self._wrong(CHUNKS, "a list of StoredChunk", answer)
        return list(answer)

    @asynccontextmanager
    async def tail(self, after: int) -> AsyncGenerator[AsyncIterator[object]]:
        """Follow the run's items after a chunk index; leaving the block only detaches (AT-113)."""
        call = Call(method=TAIL, args=(self.run_id,), kwargs={"after_sequence": after})
        items = self._caller.stream(self.path, call)
        try:
            yield items
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

    def wrong_item(self, item: object) -> NotAnAgentTool:
        """The error for something in a tail that is no item of one."""
        return self._wrong(TAIL, "StoredChunk items or bytes", item)

    async def _call(self, method: str, *args: object, **kwargs: object) -> object:
        return await self._caller.call(self.path, Call(method=method, args=args, kwargs=kwargs))

    def _sound(self, inspection: Inspection) -> Inspection:
        """The inspection with its output as JSON data."""
        if inspection.status not in get_args(ChildStatus):
            raise NotAnAgentTool(
                f"{self._name} reports the run status {inspection.status!r}, "
                f"which is none of {', '.join(get_args(ChildStatus))}"
            )
        if isinstance(inspection.output, Absent):
            return inspection
        try:
            return replace(inspection, output=to_json_strict(inspection.output))
        except NotJson as error:
            raise NotAnAgentTool(
                f"{self._name} gave an output that is not JSON: {error}"
            ) from error

    def _wrong(self, method: str, wanted: str, got: object) -> NotAnAgentTool:
        return NotAnAgentTool(f"{self._name}.{method} must give {wanted}, not {type(got).__name__}")


@lru_cache(maxsize=1024)
def _takes(method: Callable[..., object] | None, parameter: str) -> bool:
    return method is not None and parameter in inspect.signature(method).parameters
