"""What the parts of a chat need of their surroundings and of each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ramet.agent.context import AgentContext
from ramet.chat.child_runs import ChildRunStore
from ramet.chat.continuation_store import ContinuationStore
from ramet.chat.family import ChatFamily
from ramet.chat.hooks import ChatHooks
from ramet.chat.live_turn import LiveTurn
from ramet.chat.recovery_store import RecoveryStore
from ramet.chat.stream_log import StreamLog
from ramet.chat.transcript import Transcript
from ramet.chat.turn_store import TurnStore
from ramet.chat.turn_waking import TurnWaking
from ramet.connections.clients import ClientSet
from ramet.core.ports import ErrorHook


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPorts:
    """The surroundings of one chat."""

    context: AgentContext
    agent: object
    clients: ClientSet
    errors: ErrorHook
    family: ChatFamily
    hooks: ChatHooks
    transcript: Transcript
    log: StreamLog
    turns: TurnStore
    runs: ChildRunStore
    recovery: RecoveryStore
    continuation: ContinuationStore
    waking: TurnWaking
    runs_here: Callable[[str], bool]
    """Whether a tool call, by its id, is known to run here: no page gives its output then."""


class TurnWatcher(Protocol):
    """Told of where turns stand, in the same step in which it changes."""

    def turn_streams(self, live: LiveTurn) -> None:
        """The turn has begun to stream; nothing of it was sent yet."""
        ...

    def turn_lost(self, live: LiveTurn, *, out_of_memory: bool) -> bool:
        """The turn cannot go on: True when another will, and everybody was told so."""
        ...

    def turn_ending(self, live: LiveTurn) -> None:
        """The turn's producer has finished; its end is not stored and not told yet."""
        ...

    def turn_ended(self, live: LiveTurn) -> None:
        """The turn has ended and clients were told."""
        ...
