"""Accepts turns, queues them, and ends them early: the one way in for clients, code and parents."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ramet.chat.gaps import stepped_out
from ramet.chat.live_turn import LiveTurn, OpenSubmit, TurnPlan
from ramet.chat.orphans import seal_unsettled
from ramet.chat.ports import ChatPorts, TurnWatcher
from ramet.chat.recovery_store import Asked
from ramet.chat.settling import Ending, final_frame
from ramet.chat.turn import TurnProducer, TurnResult, TurnTrigger
from ramet.chat.turn_queue import TurnQueue
from ramet.chat.turn_runner import TurnRunner
from ramet.chat.turn_store import StoredTurn
from ramet.connections.link import ClientLink
from ramet.core.current import current
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, JsonValue
from ramet.errors import TurnInsideTurn

ID_LENGTH = 16
CLEARED = "The chat was cleared"
CANCELLED = "The turn was cancelled"
SUPERSEDED = "A newer question took its place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A lost turn that another goes on for."""

    turn: StoredTurn
    stream_id: str | None
    """What is stored of its answer; None to begin anew."""


class LostTurns(Protocol):
    """The turns that are lost and have not gone on yet."""

    def cancel(self, request_id: str) -> bool:
        """Give one up."""
        ...

    def cancel_all(self) -> None:
        """Give all up."""
        ...

    def clear(self) -> None:
        """Forget all: the chat was cleared."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """What a turn is asked for with."""

    trigger: TurnTrigger
    store: Callable[[TurnPlan], object]
    """Stores the messages that the turn answers; called inside the accepting transaction."""
    request_id: str | None = None
    """Made here when nobody chose one."""
    message_ids: Sequence[str] = ()
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    client_tools: Sequence[JsonObject] = ()
    sender: ClientLink | None = None
    run_id: str | None = None
    continues: str | None = None
    """The assistant message that the answer extends."""
    recovers: Recovered | None = None
    """The lost turn that this one goes on for."""
    supersedes: Sequence[LiveTurn] = ()
    """The waiting turns whose place this one takes."""
    submit: OpenSubmit | None = None
    """Set when a newer question may take its place."""


class Turns:
    """The turns of one chat."""

    def __init__(self, ports: ChatPorts, producer: TurnProducer, watcher: TurnWatcher) -> None:
        self._ports = ports
        self._watcher = watcher
        self._runner = TurnRunner(ports, producer, watcher)
        self._queue: TurnQueue[LiveTurn] = TurnQueue(self._start)
        self.lost: LostTurns | None = None
        """Set once by the chat."""

    def __iter__(self) -> Iterator[LiveTurn]:
        """The running turn, then those that wait."""
        return iter(self._queue)

    @property
    def queue(self) -> TurnQueue[LiveTurn]:
        """Which turn runs next."""
        return self._queue

    @property
    def streaming(self) -> LiveTurn | None:
        """The turn that streams now."""
        active = self._queue.active
        return active if active is not None and active.phase == "streaming" else None

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        return None if self._queue.idle else "a chat turn is running or waiting"

    def find(self, request_id: str) -> LiveTurn | None:
        """The turn of a request that has not ended, or the one that goes on for it."""
        for live in self:
            if request_id == live.plan.request_id or request_id in live.plan.former_requests:
                return live
        return None

    def current(self) -> LiveTurn | None:
        """The turn that the running code belongs to."""
        found = current()
        if found is None or found.agent is not self._ports.agent or found.request_id is None:
            return None
        return self.find(found.request_id)

    def overlapped(self) -> bool:
        """Whether a new question overlaps a turn; those before a clear do not count (TQ-021)."""
        return any(not live.discarded for live in self)

    def open_submits(self) -> list[LiveTurn]:
        """The waiting turns that a newer question takes the place of."""
        waiting = self._queue.waiting
        return [live for live in waiting if live.submit is not None and not live.is_cancelled()]

    def accept(self, request: TurnRequest) -> LiveTurn:
        """Store a turn with its messages in one commit; `enqueue` then runs it.

        A lost turn of an earlier process is not offered any more from here on (D4). Turns whose
        place it takes end as skipped, in the same commit; only their senders are told.
        """
        plan = self._plan(request)
        self._record(plan, request)
        for old in request.supersedes:
            self._queue.withdraw(old)
            self._skip(old, SUPERSEDED)
        return LiveTurn(plan=plan, sender=request.sender, submit=request.submit)

    def reserve(self, request: TurnRequest) -> LiveTurn:
        """Prepare a turn that is stored with its messages when its slot comes, not before."""
        plan = self._plan(request)
        return LiveTurn(plan=plan, record=lambda: self._record(plan, request))

    def _record(self, plan: TurnPlan, request: TurnRequest) -> None:
        turns, now = self._ports.turns, self._ports.context.clock.now_ms()
        self._ports.waking.promise()
        with self._ports.transcript.changing():
            seal_unsettled(self._ports)
            request.store(plan)
            turns.settle_orphans()
            for old in request.supersedes:
                turns.end(old.plan.turn_id, "skipped", now=now)
                self._ports.recovery.forget_asked(old.plan.turn_id)
            turns.insert(
                StoredTurn(
                    turn_id=plan.turn_id,
                    recovery_root=plan.recovery_root,
                    request_ids=[plan.request_id],
                    trigger=plan.trigger,
                    message_ids=plan.message_ids,
                    assistant_message_id=plan.assistant_message_id,
                    continuation=plan.continuation,
                    created_at=now,
                )
            )
            asked = Asked(body=plan.body, client_tools=plan.client_tools)
            self._ports.recovery.keep_asked(plan.turn_id, asked)
        failpoint("turn.recorded")

    def enqueue(self, live: LiveTurn, *, quiet: float = 0.0) -> None:
        """Run an accepted turn as soon as those before it have ended.

        With `quiet` it gets its place in the queue only after so many seconds, or when it is
        cancelled; until then another may take its place.
        """
        if not quiet:
            self._queue.add(live)
            return
        self._queue.hold(live)
        self._ports.context.clock.call_later(quiet, lambda: self._release(live))
        live.controller.signal.add_listener(lambda _: self._release(live))

    async def result_of(self, live: LiveTurn) -> TurnResult:
        """Wait for a turn; when the waiting is cancelled, so is the turn."""
        answer: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        live.when_finished(lambda result: None if answer.done() else answer.set_result(result))
        try:
            async with stepped_out():
                return await answer
        except asyncio.CancelledError:
            if not self._ports.context.fence.down:
                live.controller.abort(CANCELLED)
                self.cancel(live.plan.request_id)
            raise

    def refuse_inside_turn(self) -> None:
        """Refuse to wait for a turn from inside one, which would be waiting for itself (TQ-005)."""
        if self.current() is not None:
            raise TurnInsideTurn(
                "A turn cannot wait for another turn of the same agent: it would never begin. "
                "Start it from on_chat_response, or outside of turns."
            )

    def cancel(self, request_id: str, reason: str = CANCELLED) -> None:
        """End a turn early and keep what there is of its answer; an unknown id changes nothing."""
        live = self.find(request_id)
        if live is not None:
            live.controller.abort(reason)
        elif self.lost is not None:
            self.lost.cancel(request_id)

    def cancel_all(self, reason: str = CANCELLED) -> None:
        """End every turn early, those that wait too."""
        for live in tuple(self):
            live.controller.abort(reason)
        if self.lost is not None:
            self.lost.cancel_all()

    def reset(self) -> None:
        """End every turn and forget what it was about: the chat was cleared (TQ-014)."""
        active = self._queue.active
        stale = self._queue.reset()
        for live in (*stale, *([] if active is None else [active])):
            live.discarded = True
            live.controller.abort(CLEARED)
        for live in stale:
            self._skip(live, CLEARED)
        if self.lost is not None:
            self.lost.clear()

    async def idle(self) -> None:
        """Wait until no turn runs or waits (TQ-003)."""
        idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.when_idle(lambda: None if idle.done() else idle.set_result(None))
        async with stepped_out():
            await idle

    def _plan(self, request: TurnRequest) -> TurnPlan:
        ids = self._ports.context.ids
        turn_id = ids.message_id("turn_")
        lost = request.recovers.turn if request.recovers is not None else None
        return TurnPlan(
            request_id=request.request_id or ids.request_id(),
            turn_id=turn_id,
            recovery_root=turn_id if lost is None else lost.recovery_root,
            stream_id=ids.url_safe(ID_LENGTH),
            assistant_message_id=request.continues
            or (ids.message_id("asst_") if lost is None else lost.assistant_message_id),
            continuation=request.continues is not None,
            trigger=request.trigger,
            message_ids=tuple(request.message_ids),
            body=request.body,
            client_tools=request.client_tools,
            run_id=request.run_id,
            resumes=request.recovers.stream_id if request.recovers is not None else None,
            former_requests=()
            if lost is None
            else self._ports.turns.requests_of(lost.recovery_root),
        )

    def _start(self, live: LiveTurn) -> None:
        name = f"turn {live.plan.request_id}"
        task = self._ports.context.background.start(self._runner.run(live), name=name)
        task.add_done_callback(lambda _: self._finished(live))

    def _finished(self, live: LiveTurn) -> None:
        if self._ports.context.fence.down:
            return
        if live.result is None and not live.handed_over:
            self._runner.give_up(live)
        self._queue.finished(live)
        self._watcher.turn_ended(live)

    def _release(self, live: LiveTurn) -> None:
        if not self._ports.context.fence.down:
            self._queue.release(live)

    def _skip(self, live: LiveTurn, reason: str) -> None:
        connection = self._ports.clients.of(live.sender) if live.sender is not None else None
        if connection is not None:
            connection.send_frame(final_frame(live, Ending("skipped")))
        live.finish(TurnResult(request_id=live.plan.request_id, status="skipped", error=reason))
