"""Writes one step of a model as chunks: opens and closes parts, names tool calls for clients."""

from collections.abc import Collection, Iterator
from typing import Final, assert_never

from pydantic_ai.messages import ModelResponse, ToolCallPart

from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.chunks import FinishReason
from ramet.think.model_seam import (
    CallDelta,
    CallStarted,
    PartEnded,
    ReasoningDelta,
    StepEvent,
    TextDelta,
)
from ramet.think.tool_outcome import wire_input
from ramet.think.wire_ids import IdSource

_FINISH_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}


def finish_reason_of(response: ModelResponse) -> FinishReason:
    """Why a model has stopped, as clients know it."""
    return _FINISH_REASONS.get(response.finish_reason or "stop", "other")


class ChunkWriter:
    """The chunks of one step.

    At most one text or reasoning part is open at a time. A part opens at its first text; one that
    goes on after another has begun is continued under a new id, since a closed part cannot grow.
    """

    def __init__(self, step: int, wire_ids: IdSource) -> None:
        self._step = step
        self._wire_ids = wire_ids
        self._calls: dict[int, str] = {}
        self._open: tuple[int, bool] | None = None
        self._open_id = ""
        self._parts = 0

    def write(self, event: StepEvent) -> Iterator[JsonObject]:
        """The chunks for one thing that the model said."""
        match event:
            case TextDelta(part=part, text=text):
                yield from self._switch(part, reasoning=False)
                yield chunks.text_delta(self._open_id, text)
            case ReasoningDelta(part=part, text=text):
                yield from self._switch(part, reasoning=True)
                yield chunks.reasoning_delta(self._open_id, text)
            case PartEnded(part=part):
                if self._open is not None and self._open[0] == part:
                    yield from self.close()
            case CallStarted(part=part, call_id=call_id, tool_name=tool_name):
                yield from self.close()
                yield from self._start_call(part, call_id, tool_name)
            case CallDelta(part=part, text=text):
                if part in self._calls:
                    yield chunks.tool_input_delta(self._calls[part], text)
            case _:
                assert_never(event)

    def close(self) -> Iterator[JsonObject]:
        """Close the part that is open."""
        if self._open is None:
            return
        _, reasoning = self._open
        self._open = None
        yield chunks.reasoning_end(self._open_id) if reasoning else chunks.text_end(self._open_id)

    def complete(
        self, response: ModelResponse, *, held: Collection[str] = ()
    ) -> Iterator[JsonObject]:
        """Close what is open and give the whole input of each tool call, in call order.

        That of the calls in `held`, by wire id, is not given yet.
        """
        yield from self.close()
        for part, call in enumerate(response.parts):
            if isinstance(call, ToolCallPart):
                if part not in self._calls:
                    yield from self._start_call(part, call.tool_call_id, call.tool_name)
                wire_id = self._calls[part]
                if wire_id not in held:
                    yield chunks.tool_input_available(wire_id, call.tool_name, wire_input(call))

    def wire_ids(self, response: ModelResponse) -> list[str]:
        """The wire ids of the response's tool calls, in call order."""
        return [
            self._calls.get(part) or self._wire_ids.assign(call.tool_call_id, call.tool_name)
            for part, call in enumerate(response.parts)
            if isinstance(call, ToolCallPart)
        ]

    def _switch(self, part: int, *, reasoning: bool) -> Iterator[JsonObject]:
        if self._open == (part, reasoning):
            return
        yield from self.close()
        self._open = (part, reasoning)
        self._open_id = f"s{self._step}p{self._parts}"
        self._parts += 1
        opened = chunks.reasoning_start if reasoning else chunks.text_start
        yield opened(self._open_id)

    def _start_call(self, part: int, call_id: str, tool_name: str) -> Iterator[JsonObject]:
        if part in self._calls:
            return
        self._calls[part] = self._wire_ids.assign(call_id, tool_name)
        yield chunks.tool_input_start(self._calls[part], tool_name)
