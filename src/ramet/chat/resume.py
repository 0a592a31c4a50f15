"""Decides what a client that comes back is answered (PROTOCOL 4.5); nothing here has effects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ramet.chat.turn_store import StoredTurn


@dataclass(frozen=True, slots=True)
class Offer:
    """There is a stream to send: the client acknowledges, then gets it."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A turn was accepted and has not begun to stream."""

    request_id: str | None
    """None for a continuation that is about to be accepted."""


@dataclass(frozen=True, slots=True)
class Idle:
    """There is nothing to resume."""


Answer: TypeAlias = Offer | Wait | Idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What there is to resume."""

    streaming: str | None = None
    """The request whose turn streams now."""
    recovering: str | None = None
    """A request whose turn was lost and will go on under another."""
    waiting: Sequence[str] = ()
    """The requests whose turns wait, in their order."""
    continues: bool = False
    """Whether the last answer is to go on, for all or because this client has answered a call."""
    orphan: StoredTurn | None = None
    """A turn that was lost with an earlier process, and whose end nobody knows yet."""
    newest: StoredTurn | None = None
    """The turn that was accepted last."""

    @property
    def accepted(self) -> str | None:
        """The first request whose turn waits."""
        return self.waiting[0] if self.waiting else None


def answer_to_probe(situation: Situation) -> Answer:
    """What a client that asks is told: of a stream, a lost or failed turn, one to wait for."""
    if situation.streaming is not None:
        return Offer(situation.streaming)
    if situation.continues:
        return Wait(situation.accepted)
    if situation.orphan is not None:
        return Offer(situation.orphan.request_id)
    newest = situation.newest
    if newest is not None and newest.status == "ended" and newest.outcome == "error":
        return Offer(newest.request_id)
    return _wait_or_idle(situation)


def greeting(situation: Situation) -> Answer:
    """What a client is told that has just connected; an old failure is only told when it asks."""
    if situation.streaming is not None:
        return Offer(situation.streaming)
    if situation.continues:
        return Wait(situation.accepted)
    if situation.orphan is not None:
        return Offer(situation.orphan.request_id)
    return _wait_or_idle(situation)


def _wait_or_idle(situation: Situation) -> Answer:
    awaited = situation.accepted or situation.recovering
    return Idle() if awaited is None else Wait(awaited)


@dataclass(frozen=True, slots=True)
class ReplayStream:
    """Send the stored chunks of a request, then what there is of its end."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """The acknowledgement is of something else than what is offered."""


def answer_to_ack(situation: Situation, request_id: str) -> ReplayStream | Wait | Ignore:
    """Whether an acknowledged request is replayed.

    One that waits has nothing to replay yet; while a turn streams only that one is replayed.
    """
    if request_id in situation.waiting:
        return Wait(request_id)
    if situation.streaming is not None and situation.streaming != request_id:
        return Ignore()
    return ReplayStream(request_id)
