"""A step loop with everything around it in memory: what tests of the loop share."""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

from ramet.core.current import within, working_for
from ramet.core.ids import Ids
from ramet.core.json import JsonObject
from ramet.think.hooks import NO_HOOKS, StepHooks
from ramet.think.step_loop import LoopParts, StepLoop
from ramet.think.tool_gathering import gather
from ramet.think.toolbox import Toolbox
from ramet.think.wire_ids import WireIds

T = TypeVar("T")


class Tasks:
    """Starts tasks and keeps them."""

    def __init__(self) -> None:
        self.all: list[asyncio.Task[object]] = []

    def start(self, work: Coroutine[object, object, T], *, name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.all.append(task)
        return task


class Journal:
    """Keeps steps in memory, and the order in which things were committed."""

    def __init__(self) -> None:
        self.responses: list[ModelResponse] = []
        self.results: dict[str, ModelRequest] = {}
        self.log: list[str] = []
        self.own: Collection[str] = ()

    def add_response(
        self,
        step: int,
        response: ModelResponse,
        wire_ids: Sequence[str],
        *,
        own: Collection[str] = (),
    ) -> None:
        self.responses.append(response)
        self.own = own
        self.log.append(f"response {step} {' '.join(wire_ids)}".strip())

    def ask(self, wire_id: str) -> None:
        self.log.append(f"ask {wire_id}")

    def add_result(self, wire_id: str, result: ModelRequest) -> None:
        self.results[wire_id] = result
        self.log.append(f"result {wire_id}")


class NeverUsed:
    """No id was used before."""

    def is_used(self, tool_call_id: str) -> bool:
        return False


@dataclass
class Loop:
    """One turn of a loop and what is around it."""

    model: Model
    tools: Iterable[object] = ()
    text: str = "question"
    max_steps: int = 10
    hooks: StepHooks = NO_HOOKS
    taken: Iterable[str] = ()
    agent: object = "the agent"
    instructions: Sequence[str] = ()
    history: Sequence[ModelMessage] = ()
    journal: Journal = field(default_factory=Journal)
    tasks: Tasks = field(default_factory=Tasks)
    chunks: list[JsonObject] = field(default_factory=list)

    async def run(self) -> list[JsonObject]:
        """Play the turn to its end."""
        messages: list[ModelMessage] = [
            *self.history,
            ModelRequest(parts=[UserPromptPart(self.text)]),
        ]
        context = RunContext[object](
            deps=self.agent, model=self.model, usage=RunUsage(), messages=messages, max_retries=1
        )
        parts = LoopParts(
            model=self.model,
            toolbox=Toolbox(gather(self.tools), context, ids=Ids(), hooks=self.hooks),
            journal=self.journal,
            wire_ids=WireIds(NeverUsed(), Ids(), taken=self.taken),
            background=self.tasks,
            max_steps=self.max_steps,
            usage=context.usage,
            instructions=self.instructions,
            hooks=self.hooks,
        )
        with working_for(self.agent), within(request_id="request"):
            async with aclosing(StepLoop(parts, messages).chunks()) as chunks:
                async for chunk in chunks:
                    self.chunks.append(chunk)
        return self.chunks

    def begin(self) -> asyncio.Task[list[JsonObject]]:
        """Play the turn as a task."""
        return asyncio.get_running_loop().create_task(self.run())

    @property
    def types(self) -> list[str]:
        """The types of the chunks so far."""
        return [str(chunk["type"]) for chunk in self.chunks]

    def of(self, chunk_type: str) -> list[JsonObject]:
        """The chunks of one type."""
        return [chunk for chunk in self.chunks if chunk["type"] == chunk_type]

    @property
    def said(self) -> str:
        """All the text of the answer."""
        return "".join(str(chunk["delta"]) for chunk in self.of("text-delta"))
