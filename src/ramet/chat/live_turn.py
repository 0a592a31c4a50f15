"""A turn that was accepted and has not ended: what is kept of it in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ramet.agent_tools.records import StoredChunk
from ramet.chat.answer import Answer
from ramet.chat.turn import Turn, TurnResult, TurnTrigger
from ramet.connections.link import ClientLink
from ramet.core.json import JsonObject, JsonValue
from ramet.core.signals import AbortController
from ramet.core.tail import Tail
from ramet.protocol.ui_message import UIMessage

TurnPhase: TypeAlias = Literal["accepted", "streaming", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """What is known of a turn before it begins."""

    request_id: str
    turn_id: str
    recovery_root: str
    stream_id: str
    assistant_message_id: str
    trigger: TurnTrigger
    message_ids: Sequence[str] = ()
    """The user messages that the turn answers."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    client_tools: Sequence[JsonObject] = ()
    continuation: bool = False
    run_id: str | None = None
    """The run of a parent that the turn works for."""
    resumes: str | None = None
    """The chunk log of a lost turn that this one goes on with."""
    former_requests: Sequence[str] = ()
    """The requests of the lost turns that this one goes on for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSubmit:
    """A client's question that a newer one may take the place of while it waits."""

    questions: Sequence[str]
    """The messages that it asks."""
    absorbed: frozenset[str] = frozenset()
    """Messages that were joined into its last one, and are gone."""


@dataclass(slots=True, kw_only=True, eq=False)
class LiveTurn:
    """A turn between its acceptance and its end."""

    plan: TurnPlan
    sender: ClientLink | None = None
    """The client that asked."""
    submit: OpenSubmit | None = None
    """Set when a newer question may take its place."""
    record: Callable[[], object] | None = None
    """Stores the turn with its messages when its slot comes; None when that was done before."""
    controller: AbortController = field(default_factory=AbortController)
    phase: TurnPhase = "accepted"
    discarded: bool = False
    """Whether the chat was cleared meanwhile: nothing more of the turn is stored."""
    told: bool = False
    """Whether clients were told that it has ended."""
    handed_over: bool = False
    """Whether the turn was lost in this process, and another goes on for it."""
    under_way: set[str] = field(default_factory=set)
    """The tool calls that its producer runs at the moment."""
    resumed: Sequence[JsonObject] = ()
    """The chunks that are stored from before the turn's first producer was lost."""
    answer: Answer | None = None
    """The answer so far, once the turn streams."""
    next_index: int = 0
    """The index of the next chunk."""
    write: Callable[[JsonObject], None] | None = None
    """Adds a chunk to the answer from outside its producer; None before it streams."""
    tails: list[Tail[StoredChunk]] = field(default_factory=list)
    """Who follows the turn's items from inside the process."""
    progress: StoredChunk | None = None
    """The last progress that was told, for who begins to follow."""
    result: TurnResult | None = None
    waiters: list[Callable[[TurnResult], object]] = field(default_factory=list)

    def is_cancelled(self) -> bool:
        """Whether somebody has ended the turn early."""
        return self.controller.signal.aborted

    @property
    def log_key(self) -> str:
        """The name under which clients are behind in this turn's stream."""
        return log_key(self.plan.stream_id)

    def as_turn(self, messages: Sequence[UIMessage]) -> Turn:
        """The turn as its producer sees it."""
        plan = self.plan
        return Turn(
            request_id=plan.request_id,
            turn_id=plan.turn_id,
            recovery_root=plan.recovery_root,
            stream_id=plan.stream_id,
            assistant_message_id=plan.assistant_message_id,
            trigger=plan.trigger,
            messages=messages,
            message_ids=plan.message_ids,
            signal=self.controller.signal,
            body=plan.body,
            client_tools=plan.client_tools,
            continuation=plan.continuation or plan.resumes is not None,
            resumed=self.resumed,
            under_way=self.under_way,
        )

    def finish(self, result: TurnResult) -> None:
        """Take note of how the turn ended, and tell who waits for it."""
        self.phase = "ended"
        self.result = result
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter(result)

    def when_finished(self, waiter: Callable[[TurnResult], object]) -> None:
        """Call `waiter` with the result, at once when there is one."""
        if self.result is None:
            self.waiters.append(waiter)
        else:
            waiter(self.result)


def log_key(stream_id: str) -> str:
    """The name under which clients are behind in a stream."""
    return f"stream:{stream_id}"
