"""The answer of a turn as it grows: folds chunks, runs of deltas only once something else comes."""

from ramet.core.json import JsonObject
from ramet.protocol import chunks
from ramet.protocol.messages import parts_of
from ramet.protocol.parts import MessageFold
from ramet.protocol.ui_message import UIMessage

_DELTAS = frozenset({chunks.TEXT_DELTA, chunks.REASONING_DELTA})


class Answer:
    """A message that is being written, chunk by chunk."""

    def __init__(
        self, message_id: str, *, continuation: bool = False, extends: UIMessage | None = None
    ) -> None:
        """Begin an answer, or go on with a message that is stored."""
        metadata = None if extends is None else extends.get("metadata")
        self._fold = MessageFold(
            message_id,
            parts=() if extends is None else parts_of(extends),
            metadata=metadata if isinstance(metadata, dict) else None,
            continuation=continuation,
        )
        self._delta_type: str | None = None
        self._deltas: list[str] = []

    def add(self, chunk: JsonObject) -> None:
        """Take in one chunk."""
        chunk_type, delta = chunk["type"], chunk.get("delta")
        if chunk_type in _DELTAS and isinstance(delta, str) and "providerMetadata" not in chunk:
            if chunk_type != self._delta_type:
                self._fold_deltas()
                self._delta_type = str(chunk_type)
            self._deltas.append(delta)
            return
        self._fold_deltas()
        self._fold.apply(chunk)

    def message(self) -> UIMessage | None:
        """The message so far; None when there is nothing to show."""
        self._fold_deltas()
        return self._fold.message() if self._fold.has_content else None

    def _fold_deltas(self) -> None:
        if self._delta_type is not None:
            delta: JsonObject = {"type": self._delta_type, "delta": "".join(self._deltas)}
            self._delta_type = None
            self._deltas.clear()
            self._fold.apply(delta)
