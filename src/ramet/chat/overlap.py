"""Joins the first part of a lost answer with what its second producer gives, without repeats (D5).

Parts that clients have seen never shrink. Text that repeats what is stored is swallowed; where it
differs, the stored part is closed as it is, and the new text comes whole in a part of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramet.chat.repair import ChunkRepair
from ramet.chat.turn import Chunk
from ramet.core.json import JsonObject
from ramet.protocol import chunks

INTERRUPTED: Final = "The tool call was interrupted before it could run."

_OUTPUTS: Final = frozenset(
    {chunks.TOOL_OUTPUT_AVAILABLE, chunks.TOOL_OUTPUT_ERROR, chunks.TOOL_OUTPUT_DENIED}
)
_REQUESTED, _COMPLETE, _ASKED, _SETTLED = range(4)


@dataclass(frozen=True, slots=True)
class DanglingCall:
    """A tool call of which clients have seen the beginning only."""

    tool_name: str
    wire_id: str


@dataclass(slots=True)
class _StoredPart:
    kind: str
    part_id: str
    text: str = ""
    open: bool = True


@dataclass(slots=True)
class _NewPart:
    kind: str
    part_id: str
    text: str = ""
    shown_as: str | None = None
    """The id under which its text is sent; None while it repeats what is stored."""


class Overlap:
    """Takes the chunks of a second producer; from when on it gives new ones, everything passes."""

    def __init__(self, stored: Sequence[JsonObject], *, whole: bool = False) -> None:
        """Begin after the chunks that are stored.

        Args:
            stored: What clients have been sent; with none of it everything passes.
            whole: The second producer begins at the first step, or else with something new. If
                not, it begins with the step `first_step`.
        """
        begun = [at for at, chunk in enumerate(stored) if chunk["type"] == chunks.START_STEP]
        tail = stored[begun[-1] :] if begun else []
        cut = bool(tail) and all(chunk["type"] != chunks.FINISH_STEP for chunk in tail)
        self.first_step = len(begun) - 1 if cut else len(begun)
        """The step that the second producer has to begin with, counted from 0."""
        repeated = stored if whole else tail if cut else []
        types = [chunk["type"] for chunk in repeated]
        self._suffix = f"r{len(stored)}"
        self._steps = {
            chunks.START_STEP: types.count(chunks.START_STEP),
            chunks.FINISH_STEP: types.count(chunks.FINISH_STEP),
        }
        self._over = not repeated
        self._parts: list[_StoredPart] = []
        self._calls: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._new: _NewPart | None = None
        for chunk in repeated:
            self._remember(chunk)
        self._unclaimed = dict.fromkeys(
            call_id for call_id, state in self._calls.items() if state != _SETTLED
        )

    @property
    def dangling_calls(self) -> list[DanglingCall]:
        """The tool calls whose input was cut off, in order; their ids can be used again."""
        return [
            DanglingCall(self._names[call_id], call_id)
            for call_id, state in self._calls.items()
            if state == _REQUESTED
        ]

    def take(self, chunk: JsonObject) -> Sequence[JsonObject]:
        """What to send for a chunk."""
        if self._over:
            return (chunk,)
        chunk_type, call_id = str(chunk["type"]), chunk.get("toolCallId")
        if chunk_type in chunks.SPOKEN_KINDS:
            return self._take_text(chunk_type, chunk)
        if isinstance(call_id, str):
            return self._take_call(chunk_type, call_id, chunk)
        return self._take_mark(chunk_type, chunk)

    def note(self, chunk: JsonObject) -> None:
        """Take note of what somebody else has said of a stored call: it stands."""
        call_id = chunk.get("toolCallId")
        if isinstance(call_id, str):
            self._unclaimed.pop(call_id, None)
            self._advances(str(chunk["type"]), call_id)

    def end(self) -> Sequence[JsonObject]:
        """What closes the stored part of the answer, unless that was done."""
        if self._over:
            return ()
        self._over = True
        return [*self._close_stored(), *self._settle_dangling()]

    def _take_mark(self, chunk_type: str, chunk: JsonObject) -> Sequence[JsonObject]:
        """Leave out the marks of steps that are stored; the first new one ends the overlap."""
        if chunk_type == chunks.START:
            metadata = chunk.get("messageMetadata")
            return () if metadata is None else (chunks.message_metadata(metadata),)
        if self._steps.get(chunk_type):
            self._steps[chunk_type] -= 1
            return ()
        if chunk_type in {chunks.START_STEP, chunks.FINISH_STEP, chunks.FINISH}:
            return [*self.end(), chunk]
        return (chunk,)

    def _take_call(self, chunk_type: str, call_id: str, chunk: JsonObject) -> Sequence[JsonObject]:
        if call_id not in self._calls:
            self._give_up_repeats()
        self._unclaimed.pop(call_id, None)
        kept = self._advances(chunk_type, call_id)
        return [*self._close_stored(), chunk] if kept else ()

    def _give_up_repeats(self) -> None:
        """Take what comes from here on as new."""
        self._steps = dict.fromkeys(self._steps, 0)

    def _remember(self, chunk: JsonObject) -> None:
        chunk_type, call_id = str(chunk["type"]), chunk.get("toolCallId")
        if chunk_type in chunks.SPOKEN_STARTS:
            self._parts.append(_StoredPart(chunks.SPOKEN_KINDS[chunk_type], str(chunk.get("id"))))
        elif chunk_type in chunks.SPOKEN_KINDS:
            part = next(
                (each for each in reversed(self._parts) if each.part_id == chunk.get("id")), None
            )
            if part is not None and chunk_type in chunks.SPOKEN_DELTAS:
                part.text += str(chunk.get("delta", ""))
            elif part is not None:
                part.open = False
        elif isinstance(call_id, str):
            self._names.setdefault(call_id, str(chunk.get("toolName", "")))
            self._advances(chunk_type, call_id)

    def _advances(self, chunk_type: str, call_id: str) -> bool:
        """Whether a chunk brings a tool call further than clients have seen it; notes it."""
        known = self._calls.get(call_id)
        if chunk_type == chunks.TOOL_INPUT_DELTA:
            return known is None or call_id not in self._names
        if chunk_type == chunks.TOOL_INPUT_START:
            state = _REQUESTED
        elif chunk_type in _OUTPUTS:
            state = _SETTLED
        elif chunk_type == chunks.TOOL_APPROVAL_REQUEST:
            state = _ASKED
        else:
            state = _COMPLETE
        if known is not None and state <= known:
            return False
        self._calls[call_id] = state
        return True

    def _take_text(self, chunk_type: str, chunk: JsonObject) -> Sequence[JsonObject]:
        if chunk_type in chunks.SPOKEN_STARTS:
            self._new = _NewPart(chunks.SPOKEN_KINDS[chunk_type], str(chunk.get("id")))
            return () if self._parts else self._open_new(self._new)
        new = self._new
        if new is None:
            return (chunk,)
        if chunk_type not in chunks.SPOKEN_DELTAS:
            self._new = None
            return self._end_new(new)
        delta = str(chunk.get("delta", ""))
        if new.shown_as is not None:
            return (_delta(new.kind, new.shown_as, delta),)
        new.text += delta
        return self._compare(new)

    def _compare(self, new: _NewPart) -> Sequence[JsonObject]:
        """Compare text with the first stored part that nothing was compared with yet."""
        stored = self._parts[0]
        if stored.kind == new.kind and stored.text.startswith(new.text):
            return ()
        if stored.kind == new.kind and new.text.startswith(stored.text):
            rest = new.text[len(stored.text) :]
            del self._parts[0]
            if stored.open:
                new.shown_as = stored.part_id
                return (_delta(new.kind, stored.part_id, rest),)
            return [*self._open_new(new), _delta(new.kind, self._shown(new), rest)]
        closed = self._close_stored()
        self._parts.clear()
        self._give_up_repeats()
        return [*closed, *self._open_new(new), _delta(new.kind, self._shown(new), new.text)]

    def _open_new(self, new: _NewPart) -> list[JsonObject]:
        new.shown_as = self._shown(new)
        opened = chunks.text_start if new.kind == "text" else chunks.reasoning_start
        return [opened(new.shown_as)]

    def _end_new(self, new: _NewPart) -> list[JsonObject]:
        if new.shown_as is not None:
            return [_end(new.kind, new.shown_as)]
        stored = self._parts.pop(0)
        return [_end(stored.kind, stored.part_id)] if stored.open else []

    def _shown(self, new: _NewPart) -> str:
        return new.shown_as or f"{new.part_id}{self._suffix}"

    def _close_stored(self) -> list[JsonObject]:
        """Close the part that the first producer had open, and that the second does not go on."""
        closed = [_end(part.kind, part.part_id) for part in self._parts if part.open]
        for part in self._parts:
            part.open = False
        return closed

    def _settle_dangling(self) -> list[JsonObject]:
        """End the calls of the first producer that the second has not made again."""
        return [chunks.tool_output_error(call_id, INTERRUPTED) for call_id in self._unclaimed]


class Joined:
    """Repairs what a second producer gives, then joins it with what is stored."""

    def __init__(self, repair: ChunkRepair, overlap: Overlap) -> None:
        self._repair = repair
        self._overlap = overlap

    def take(self, chunk: Chunk) -> Sequence[JsonObject]:
        """Give what to send for a chunk."""
        repaired = self._repair.take(chunk)
        return [new for each in repaired for new in self._overlap.take(each)]

    def note(self, chunk: JsonObject) -> None:
        """Take note of what a page has answered meanwhile."""
        self._overlap.note(chunk)

    def end(self) -> Sequence[JsonObject]:
        """Give what is missing at the end of an answer that is whole."""
        last = [new for each in self._repair.end() for new in self._overlap.take(each)]
        return [*last, *self._overlap.end()]


def _delta(kind: str, part_id: str, text: str) -> JsonObject:
    delta = chunks.text_delta if kind == "text" else chunks.reasoning_delta
    return delta(part_id, text)


def _end(kind: str, part_id: str) -> JsonObject:
    return chunks.text_end(part_id) if kind == "text" else chunks.reasoning_end(part_id)
