"""The answer of a model behind the OpenAI chat-completions API as chunks, for `on_chat_message`.

The library itself is not needed: its objects are looked at by their fields, and dicts will do.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from ramet.chat.source_items import Source, items_of
from ramet.core.json import JsonObject, loads_object
from ramet.protocol import chunks
from ramet.protocol.chunks import FinishReason
from ramet.protocol.ui_message import UIChunk

BAD_ARGUMENTS: Final = "The model gave arguments that are no JSON object."
FAILED: Final = "The model has failed."

_REASONS: Final[dict[object, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
}
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
"""Where services that speak this API put what a model thinks."""
_USAGE_FIELDS: Final = {
    "prompt_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "total_tokens": "totalTokens",
}


async def chunks_from_openai(stream: Source[Any]) -> AsyncGenerator[UIChunk]:
    """One streamed answer of the OpenAI chat-completions API as the chunks of one step.

    ```python
    def on_chat_message(self, turn):
        return ramet.chunks_from_openai(
            client.chat.completions.create(model=…, messages=…, stream=True)
        )
    ```

    Text, refusals, reasoning and tool calls are shown as they come; calls are run by nobody. Where
    the model calls tools no `finish` chunk is given, since the answer goes on: give the tools'
    outputs, then the chunks of the next request. Closing it closes the stream.

    Args:
        stream: The stream or the coroutine that opens it, async or not, of objects or dicts.
    """
    step = _Step()
    yield chunks.start_step()
    async with aclosing(items_of(stream)) as given:
        async for item in given:
            for chunk in step.take(item):
                yield chunk
    for chunk in step.end():
        yield chunk


@dataclass(slots=True)
class _Call:
    """A tool call whose arguments are still coming."""

    call_id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    shown: bool = False


class _Step:
    """Writes the chunks of one answer: at most one text or reasoning part is open at a time."""

    def __init__(self) -> None:
        self._open: str | None = None
        self._parts = 0
        self._calls: dict[int, _Call] = {}
        self._reason: FinishReason = "other"
        self._usage: JsonObject = {}
        self._failed = False

    def take(self, item: object) -> Iterator[JsonObject]:
        """The chunks for one object of the stream."""
        error = _field(item, "error")
        if error is not None:
            self._failed = True
            yield chunks.error(str(_field(error, "message") or FAILED))
            return
        self._note_usage(_field(item, "usage"))
        choices = _field(item, "choices") or ()
        for choice in choices:
            if _field(choice, "index") not in {None, 0}:
                continue
            yield from self._take_delta(_field(choice, "delta"))
            reason = _field(choice, "finish_reason")
            if reason is not None:
                self._reason = _REASONS.get(reason, "other")

    def end(self) -> Iterator[JsonObject]:
        """What closes the step."""
        yield from self._switch(None)
        if self._failed:
            return
        for call in self._calls.values():
            yield from self._whole(call)
        yield chunks.finish_step()
        if not self._calls:
            yield chunks.finish(
                self._reason, metadata={"usage": self._usage} if self._usage else None
            )
        elif self._usage:
            yield chunks.message_metadata({"usage": self._usage})

    def _take_delta(self, delta: object) -> Iterator[JsonObject]:
        for name in _REASONING_FIELDS:
            text = _field(delta, name)
            if isinstance(text, str) and text:
                yield from self._switch("reasoning")
                yield chunks.reasoning_delta(self._part_id, text)
                break
        for name in ("content", "refusal"):
            text = _field(delta, name)
            if isinstance(text, str) and text:
                yield from self._switch("text")
                yield chunks.text_delta(self._part_id, text)
        for place, made in enumerate(_field(delta, "tool_calls") or ()):
            yield from self._take_call(place, made)

    def _take_call(self, place: int, made: object) -> Iterator[JsonObject]:
        """Take a piece of a tool call; services may leave out its index, or repeat its id."""
        number, call_id = _field(made, "index"), _field(made, "id")
        index = number if isinstance(number, int) else place
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call(str(call_id or f"call_{index}"))
        function = _field(made, "function")
        call.name = call.name or str(_field(function, "name") or "")
        arguments = _field(function, "arguments")
        if call.name and not call.shown:
            yield from self._switch(None)
            call.shown = True
            yield chunks.tool_input_start(call.call_id, call.name)
            for earlier in call.arguments:
                yield chunks.tool_input_delta(call.call_id, earlier)
        if isinstance(arguments, str) and arguments:
            call.arguments.append(arguments)
            if call.shown:
                yield chunks.tool_input_delta(call.call_id, arguments)

    def _whole(self, call: _Call) -> Iterator[JsonObject]:
        text = "".join(call.arguments)
        arguments = loads_object(text) if text else {}
        if arguments is None:
            yield chunks.tool_input_error(
                call.call_id, call.name, tool_input=text, error_text=BAD_ARGUMENTS
            )
        else:
            yield chunks.tool_input_available(call.call_id, call.name, arguments)

    def _switch(self, kind: str | None) -> Iterator[JsonObject]:
        """Close the part that is open, unless it is of that kind, and open one that is."""
        if self._open == kind:
            return
        if self._open is not None:
            ended = chunks.text_end if self._open == "text" else chunks.reasoning_end
            yield ended(self._part_id)
            self._parts += 1
        self._open = kind
        if kind is not None:
            opened = chunks.text_start if kind == "text" else chunks.reasoning_start
            yield opened(self._part_id)

    @property
    def _part_id(self) -> str:
        return f"p{self._parts}"

    def _note_usage(self, usage: object) -> None:
        counts = {name: _field(usage, key) for key, name in _USAGE_FIELDS.items()}
        known = {name: count for name, count in counts.items() if isinstance(count, int)}
        self._usage = {**self._usage, **known}


def _field(owner: object, name: str) -> Any:
    """A field of an object or a dict; None when there is none."""
    if isinstance(owner, Mapping):
        return owner.get(name)
    return getattr(owner, name, None)
