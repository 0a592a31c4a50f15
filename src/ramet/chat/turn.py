"""One question and its answer: what a turn's producer is given, and how a turn ends."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from ramet.core.json import AnyJson, JsonObject
from ramet.core.signals import AbortSignal
from ramet.protocol.ui_message import UIChunk, UIMessage

TurnTrigger: TypeAlias = Literal[
    "ws-chat",
    "rpc",
    "programmatic",
    "submission",
    "scheduled",
    "agent-tool",
    "auto-continuation",
    "recovery-continue",
    "recovery-retry",
]
TurnOutcome: TypeAlias = Literal["completed", "error", "aborted", "skipped"]
StoredOutcome: TypeAlias = TurnOutcome | Literal["recovering"]
"""How a request ended: `recovering` when another goes on with its answer (D4)."""

Chunk: TypeAlias = Mapping[str, object] | str
"""What a producer gives: a UI message chunk, or a piece of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn as its producer sees it."""

    request_id: str
    """Names the request on the wire; each frame of the answer carries it."""
    turn_id: str
    """Names the turn on disk."""
    recovery_root: str
    """The turn that this one is a recovery or continuation of; itself otherwise (D5)."""
    stream_id: str
    """The chunk log that the answer is written to."""
    assistant_message_id: str
    """The id that the answer is stored under."""
    trigger: TurnTrigger
    messages: Sequence[UIMessage]
    """The transcript up to the last message that this turn answers."""
    message_ids: Sequence[str] = ()
    """The user messages that the turn answers."""
    signal: AbortSignal
    """Aborted when the turn is cancelled; the producer is cancelled too."""
    body: Mapping[str, AnyJson] = field(default_factory=dict)
    """What the application sent beside the messages."""
    client_tools: Sequence[JsonObject] = ()
    """Tools that the browser executes: `{"name", "description"?, "parameters"?}`."""
    continuation: bool = False
    """Whether the answer goes on with the last assistant message: what comes is added to it.

    So it is when the first part of the answer was lost with an earlier process.
    """
    resumed: Sequence[UIChunk] = ()
    """The chunks that are stored of an answer whose first producer was lost."""
    under_way: set[str] = field(default_factory=set)
    """The tool calls that run here at the moment: no page may answer them.

    `Think` keeps it; who runs tools in an `on_chat_message` may add their ids.
    """


class TurnProducer(Protocol):
    """Answers turns: the one thing in which the kinds of chat agents differ."""

    def produce(self, turn: Turn) -> AsyncIterator[Chunk]:
        """Give the chunks of the answer in order; each is stored before the next is asked for.

        Cancelled when the turn is. What it raises ends the turn with an error, and so does an
        `error` chunk. A plain text becomes a text part; a part nobody opened is opened.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended."""

    request_id: str
    """Empty when no turn was run."""
    status: TurnOutcome
    error: str | None = None
    """The text that clients were shown, for `error`."""
    message: UIMessage | None = None
    """The answer as stored; None when there was nothing to store."""
    continuation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResult:
    """A turn that has produced a message, as `on_chat_response` is told of it."""

    request_id: str
    message: UIMessage
    status: TurnOutcome
    error: str | None = None
    continuation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatErrorContext:
    """Where a turn failed, as `on_chat_error` is told of it."""

    request_id: str
    trigger: TurnTrigger
    text: str
    """What clients will be shown."""
    message: UIMessage | None = None
    """The partial answer, if there is any."""
