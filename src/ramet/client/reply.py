"""One answer of a chat: its chunks as they come, its message, and how it ended."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias

from ramet.client.buffer import Buffer
from ramet.client.missed import missed_chunks
from ramet.client.received import Received
from ramet.client.settled import Settled
from ramet.core.json import JsonObject, dumps, loads_object, text_at
from ramet.protocol import chunks
from ramet.protocol.messages import text_of
from ramet.protocol.parts import MessageFold
from ramet.protocol.ui_message import UIChunk, UIMessage

OutcomeStatus: TypeAlias = Literal["completed", "error", "aborted", "skipped"]

_STATUSES: Final[Mapping[str | None, OutcomeStatus]] = {
    "completed": "completed",
    "error": "error",
    "aborted": "aborted",
    "skipped": "skipped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOutcome:
    """How an answer ended."""

    request_id: str
    """The request that was answered: that of the last turn, when others were lost on the way."""
    status: OutcomeStatus
    message: UIMessage | None
    """The assistant's message, as far as it came; None when nothing of it came."""
    error: str | None
    """What the server said, when it failed."""
    message_ids: Sequence[str]
    """The user messages that were answered."""

    @property
    def text(self) -> str:
        """The text of the message; empty without one."""
        return text_of(self.message)


class Answer:
    """What has come of one answer; the client's side of a `ChatReply`."""

    def __init__(self, request_id: str, message_ids: Sequence[str], *, limit: int) -> None:
        self.request_id = request_id
        self.message_ids = tuple(message_ids)
        self.chunks: Buffer[JsonObject] = Buffer(limit, "The answer")
        self.outcome: Settled[ChatOutcome] = Settled()
        self.received = Received()
        self.recovering = False
        """Whether its turn was lost, and the one that goes on for it is not known yet."""
        self.attached = False
        """Whether the server sends it on the connection that is open now."""
        self.added: frozenset[str] = frozenset()
        """The messages that were added to the chat to ask it."""
        self.cleared = False
        """Whether the chat was cleared since it was asked for."""
        self._fold = MessageFold("")
        self._part_ids: dict[str, str] = {}

    @property
    def message(self) -> UIMessage:
        """The message as far as it came."""
        return self._fold.message()

    def chunk(self, body: str, *, seq: int | None, replay: bool) -> None:
        """Take in a chunk, unless it is known."""
        for new in self.received.new(body, seq=seq, replay=replay):
            chunk = loads_object(new)
            if chunk is not None:
                self._take(chunk, len(new))

    def follow(self, request_id: str) -> None:
        """Go on with the turn that goes on for the one that was lost."""
        self.request_id = request_id
        self.recovering = False
        self.received.another_stream_begins()

    def end(self, frame: JsonObject, error: str | None) -> None:
        """Take the last frame."""
        named = _STATUSES.get(text_at(frame, "outcome"), "completed")
        answered = frame.get("messageIds")
        if isinstance(answered, list):
            self.message_ids = tuple(str(each) for each in answered)
        self._settle("error" if error is not None else named, self.message, error)

    def end_with(self, message: UIMessage | None) -> None:
        """End with the message that the server has stored; its chunks are made from that."""
        if message is not None:
            for chunk in missed_chunks(self.message, message, part_ids=self._part_ids):
                self._take(chunk, len(dumps(chunk)))
        self._settle("aborted" if message is None else "completed", message or self.message, None)

    def _take(self, chunk: JsonObject, size: int) -> None:
        kind = chunk.get("type")
        if kind == chunks.START:
            self._fold = MessageFold("")
        elif kind in chunks.SPOKEN_STARTS:
            self._part_ids[chunks.SPOKEN_KINDS[str(kind)]] = str(chunk.get("id"))
        self._fold.apply(chunk)
        self.chunks.put(chunk, size)

    def _settle(self, status: OutcomeStatus, message: UIMessage, error: str | None) -> None:
        self.chunks.end()
        self.outcome.succeed(
            ChatOutcome(
                request_id=self.request_id,
                status=status,
                message=message if message["id"] or message["parts"] else None,
                error=error,
                message_ids=self.message_ids,
            )
        )

    def fail(self, error: Exception) -> None:
        """Say that nothing more of it will be known."""
        self.chunks.end(error)
        self.outcome.fail(error)


class ChatReply:
    """An answer that is being written. Iterate over it for its chunks, one reader at a time.

    It goes on over lost connections, and over a server that is started again: no chunk comes twice,
    none is left out. A turn that was lost and is answered anew begins with another `start` chunk.
    Of one that went on and ended while there was no connection the chunks are made from the stored
    message: what was missed of a text comes in one piece.
    """

    def __init__(self, answer: Answer, cancel: Callable[[str], Awaitable[None]]) -> None:
        self._answer = answer
        self._cancel = cancel

    @property
    def request_id(self) -> str:
        """The request on the wire; another one once a lost turn goes on."""
        return self._answer.request_id

    @property
    def message(self) -> UIMessage:
        """The assistant's message, as far as it came."""
        return self._answer.message

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._answer.outcome.done

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> UIChunk:
        return await self._answer.chunks.next()

    async def texts(self) -> AsyncIterator[str]:
        """The text alone, piece by piece."""
        async for chunk in self:
            delta = chunk.get("delta")
            if chunk.get("type") == chunks.TEXT_DELTA and isinstance(delta, str):
                yield delta

    async def result(self) -> ChatOutcome:
        """How it ended; chunks that nobody has begun to read are dropped.

        An answer that failed or was cancelled is a result like any other: look at its `status`.

        Raises:
            ConnectionLost: The connection is gone for good, or broke before the server had the
                question.
        """
        if not self._answer.chunks.read:
            self._answer.chunks.discard()
        return await self._answer.outcome.wait()

    async def cancel(self) -> None:
        """Ask the server to stop; the answer then ends as `aborted`."""
        await self._cancel(self._answer.request_id)
