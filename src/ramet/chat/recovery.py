"""Takes up the turns that were lost with a process, or that stood still (section 34, D4, D5)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from ramet.chat.child import ChatChild
from ramet.chat.live_turn import LiveTurn, TurnPlan
from ramet.chat.orphans import seal_orphans
from ramet.chat.partial import partial_message, waits_for_client
from ramet.chat.ports import ChatPorts
from ramet.chat.recovering_flag import RecoveringFlag
from ramet.chat.recovery_endings import Endings
from ramet.chat.recovery_losses import Losses, Lost, event_of, tools_for
from ramet.chat.recovery_options import ChatRecovery, ExhaustedReason, resolved
from ramet.chat.recovery_policy import Incident, holds_results
from ramet.chat.settling import LastWord, final_frame
from ramet.chat.turn import TurnResult
from ramet.chat.turn_store import StoredTurn
from ramet.chat.turns import Recovered, TurnRequest, Turns
from ramet.core.failpoints import failpoint
from ramet.errors import StorageError
from ramet.protocol import frames

AGAIN_SECONDS: Final = 3.0
"""How long an attempt is put off when other turns do not end (CR-016)."""
CANCELLED: Final = "cancelled"

_log = logging.getLogger("ramet.chat")


class Recovery:
    """The lost turns of one chat.

    All of it is done in this process: should that die too, the wake-up that stands while turns are
    under way opens the agent again, and what is lost by then is taken up from the start.
    """

    def __init__(
        self,
        ports: ChatPorts,
        turns: Turns,
        child: ChatChild,
        *,
        parked: Callable[[], object],
        ended: Callable[[], object],
    ) -> None:
        """Begin.

        Args:
            ports: The chat.
            turns: Runs the turns that go on for lost ones.
            child: Keeps the runs that lost turns worked for.
            parked: Called when a turn was lost whose clients are there: they wait for the next one.
            ended: Called when a lost turn has ended and none will go on for it.
        """
        self._ports = ports
        self._turns = turns
        self._child = child
        self._parked = parked
        self.flag = RecoveringFlag(ports.clients, ports.context.clock)
        self._losses = Losses(ports, self._budgets)
        self._endings = Endings(ports, self._losses, self.flag, budgets=self._budgets, ended=ended)
        self._settings: ChatRecovery | None = None
        self._lost: dict[str, Lost] = {}
        self._giving_up = 0
        self._one_at_a_time = asyncio.Lock()

    @property
    def pending(self) -> bool:
        """Whether there are lost turns that have neither gone on nor ended yet."""
        return bool(self._lost)

    def busy(self) -> str | None:
        """Why the instance may not be evicted (D14)."""
        return "a lost turn is being taken up" if self._lost or self._giving_up else None

    def detect(self, given: object) -> Sequence[StoredTurn]:
        """Take note of what an earlier process has lost; before `on_start` (CR-003).

        Args:
            given: The agent's `chat_recovery`.

        Returns:
            The lost turns. Without recovery they are ended as aborted (D4).
        """
        self._settings = resolved(given)
        turns = self._ports.turns
        unfinished = turns.unfinished()
        if unfinished:
            self._ports.waking.promise()  # the one of the earlier process may be used up
        if self._settings is None:
            return seal_orphans(self._ports)
        for turn in unfinished:
            self._note(self._losses.note(turn))
        found = [turns.get(turn_id) for turn_id in self._lost]
        self._find_half_given_up()
        return [turn for turn in found if turn is not None]

    def begin(self) -> None:
        """Take up what was noted, in the background; after `on_start`."""
        if self._lost:
            self._ports.context.background.start(self._decide_all(), name="recover turns")

    def lose(self, live: LiveTurn, *, out_of_memory: bool = False) -> bool:
        """Take over a turn that cannot go on in its task (CR-026); False when nothing recovers.

        Its request ends as `recovering`; who waits for the turn waits for the next one.
        """
        turn = self._ports.turns.get(live.plan.turn_id)
        if self._settings is None or turn is None or live.discarded:
            return False
        lost = self._losses.note(turn, out_of_memory=out_of_memory)
        lost.live, lost.waiters, live.waiters = live, live.waiters, []
        live.tails.clear()
        live.handed_over = True
        live.phase = "ended"
        clients = self._ports.clients
        clients.broadcast_frame(frames.chat_messages(self._ports.transcript.all()))
        clients.broadcast_log(final_frame(live, LastWord("recovering")), live.log_key)
        self._note(lost)
        self._parked()
        work = self._surely(self._decide, lost)
        self._ports.context.background.start(work, name="recover turn")
        return True

    def owns(self, request_id: str) -> bool:
        """Whether a request's turn goes on, or is still to."""
        turn = self._ports.turns.of_request(request_id)
        if turn is None:
            return False
        going_on = (live.plan.recovery_root for live in self._turns)
        waiting = (lost.turn.recovery_root for lost in self._lost.values())
        return turn.recovery_root in {*going_on, *waiting}

    def cancel(self, request_id: str) -> bool:
        """Give up a lost turn that has not gone on yet; False when there is none."""
        for lost in tuple(self._lost.values()):
            if request_id in lost.turn.request_ids:
                self._lost.pop(lost.turn.turn_id, None)
                self._endings.skip(lost, CANCELLED)
                return True
        return False

    def cancel_all(self) -> None:
        """Give up every lost turn that has not gone on yet."""
        for lost in tuple(self._lost.values()):
            self.cancel(lost.turn.request_id)

    def clear(self) -> None:
        """Forget all lost turns: the chat was cleared."""
        lost, self._lost = self._lost, {}
        self._ports.recovery.forget_incidents()
        self.flag.clear()
        for each in lost.values():
            request_id = each.turn.request_id
            each.finish(TurnResult(request_id=request_id, status="skipped"))

    def warn_if_changed(self, given: object) -> None:
        """Say once that what `on_start` sets is not looked at (CR-003)."""
        if resolved(given) != self._settings:
            self._ports.errors.report(
                RuntimeWarning("chat_recovery was changed in on_start: set it in the class body")
            )

    def _budgets(self) -> ChatRecovery:
        return self._settings or ChatRecovery()

    def _note(self, lost: Lost) -> None:
        self._lost[lost.turn.turn_id] = lost
        self.flag.on(lost.turn.recovery_root, lost.turn.request_id)

    def _find_half_given_up(self) -> None:
        """Take note of turns whose giving up was cut by a crash (CR-021)."""
        for incident in self._ports.recovery.incidents():
            if incident.status != "exhausting" or incident.turn_id in self._lost:
                continue
            turn = self._ports.turns.get(incident.turn_id)
            if turn is None:
                self._ports.recovery.forget_incident(incident.incident_id)
                continue
            self._ports.waking.promise()
            self._lost[turn.turn_id] = Lost(turn=turn, incident=incident, partial=None)

    async def _decide_all(self) -> None:
        for lost in tuple(self._lost.values()):
            await self._surely(self._decide, lost)

    async def _surely(self, step: Callable[[Lost], Awaitable[None]], lost: Lost) -> None:
        """Take a step, again and again while the disk keeps it from being recorded (CR-022)."""
        turn_id = lost.turn.turn_id
        while turn_id in self._lost:
            try:
                await step(lost)
            except StorageError as error:
                self._ports.context.fence.check()
                self._ports.errors.report(error)
                self._lost[turn_id] = lost
                await self._ports.context.clock.sleep(AGAIN_SECONDS)
            else:
                return

    async def _decide(self, lost: Lost) -> None:
        """Ask what is to become of a lost turn, and have it taken up (CR-012 … CR-015)."""
        if lost.incident.status == "exhausting":
            await self._give_up(lost, _reason(lost.incident))
            return
        context = self._losses.context(lost.turn, lost.incident, lost.partial)
        try:
            decision = await self._ports.hooks.recovery_of(
                context, clock=self._ports.context.clock, seconds=self._budgets().hook_timeout
            )
        except Exception as error:  # noqa: BLE001 - a hook that raises fails the recovery (CR-013)
            self._ports.context.fence.check()
            self._ports.errors.report(error)
            if self._lost.pop(lost.turn.turn_id, None) is not None:
                self._endings.fail(lost, "hook_error")
            return
        if lost.turn.turn_id not in self._lost:
            return
        if not decision.proceed:
            del self._lost[lost.turn.turn_id]
            self._endings.refuse(lost, "continue_disabled")
            return
        lost.incident = replace(lost.incident, status="scheduled", persist=decision.persist)
        self._ports.recovery.keep_incident(lost.incident)
        failpoint("recovery.scheduled")
        self._ports.context.events.emit("chat:recovery:scheduled", event_of(lost.incident))
        self._attempt_soon(lost)

    def _attempt_soon(self, lost: Lost, *, delay: float = 0.0) -> None:
        work = self._attempt_after(delay, lost)
        self._ports.context.background.start(work, name="go on with a lost turn")

    async def _attempt_after(self, delay: float, lost: Lost) -> None:
        if delay > 0:
            await self._ports.context.clock.sleep(delay)
        async with self._one_at_a_time:  # they go on in the order in which they were accepted
            await self._surely(self._attempt_if_lost, lost)

    async def _attempt_if_lost(self, lost: Lost) -> None:
        """Go on with a lost turn, if that still is to be (CR-020)."""
        if not self._is_still_lost(lost):
            return
        try:
            await self._attempt(lost)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn must end (CR-022)
            self._ports.context.fence.check()
            self._ports.errors.report(error)
            await self._give_up(lost, "recovery_error")

    def _is_still_lost(self, lost: Lost) -> bool:
        turn = self._ports.turns.get(lost.turn.turn_id)
        return (
            turn is not None
            and turn.status == "recovering"
            and self._lost.get(turn.turn_id) is lost
        )

    async def _attempt(self, lost: Lost) -> None:
        incident = self._ports.recovery.incident(lost.incident.incident_id)
        if incident is None:
            await self._give_up(lost, "recovery_error")
            return
        lost.incident = incident
        if waits_for_client(self._ports, lost.turn, lost.partial):
            self._lost.pop(lost.turn.turn_id, None)
            self._endings.park(lost)
            return
        if not await self._stable():
            await self._put_off(lost)
            return
        if not self._is_still_lost(lost):
            return
        if not self._losses.still_to_answer(lost.turn):
            self._lost.pop(lost.turn.turn_id, None)
            retry = incident.kind == "retry"
            self._endings.skip(
                lost, "no_unanswered_user_message" if retry else "conversation_changed"
            )
            return
        self._go_on(lost)

    async def _stable(self) -> bool:
        """Wait until nothing but recovered turns runs or waits; False when that takes too long."""
        if all(live.plan.former_requests for live in self._turns):
            return True
        try:
            async with self._ports.context.clock.timeout(self._budgets().stable_timeout):
                await self._turns.idle()
        except TimeoutError:
            return False
        return True

    async def _put_off(self, lost: Lost) -> None:
        """Try again a little later, as often as there are attempts (CR-016)."""
        lost.incident = replace(lost.incident, attempt=lost.incident.attempt + 1)
        if lost.incident.attempt > self._budgets().max_attempts:
            await self._give_up(lost, "stable_timeout")
            return
        self._ports.recovery.keep_incident(lost.incident)
        self._attempt_soon(lost, delay=AGAIN_SECONDS)

    def _go_on(self, lost: Lost) -> None:
        """Accept the turn that goes on for a lost one: both facts are one commit."""
        ports, turn = self._ports, lost.turn
        asked, run = ports.recovery.asked(turn.turn_id), ports.runs.of_request(turn.request_id)
        # Looked at anew: a page may have answered since the turn was noted.
        results = holds_results(partial_message(ports, turn))
        keeps = lost.incident.persist or run is not None or results
        stream, goes_on = ports.log.of_turn(turn.turn_id), lost.incident.kind == "continue"
        resumes = stream.stream_id if stream is not None and keeps and goes_on else None

        def store(plan: TurnPlan) -> None:
            ports.turns.end(turn.turn_id, "recovering", now=ports.context.clock.now_ms())
            if stream is not None and resumes is None:
                ports.log.close(stream.stream_id, "recovering")
            if not keeps:
                self._drop(turn)
            ports.recovery.forget_asked(turn.turn_id)
            ports.recovery.keep_incident(replace(lost.incident, status="attempting"))
            if run is not None:
                ports.runs.rebind(run, request_id=plan.request_id, stream_id=plan.stream_id)

        live = self._turns.accept(
            TurnRequest(
                trigger="recovery-continue" if goes_on else "recovery-retry",
                store=store,
                message_ids=turn.message_ids,
                body=asked.body,
                client_tools=tools_for(ports, turn),
                run_id=None if run is None else run.run_id,
                continues=turn.assistant_message_id if turn.continuation else None,
                recovers=Recovered(turn=turn, stream_id=resumes),
            )
        )
        failpoint("recovery.accepted")
        told = (ports.context.path, turn.request_id, lost.incident.attempt)
        _log.info("%s: a turn that was cut goes on (request %s, attempt %d)", *told)
        self._lost.pop(turn.turn_id, None)
        self._hand_on(lost, live)
        self._turns.enqueue(live)

    def _drop(self, turn: StoredTurn) -> None:
        """Forget what there is of a lost answer, and that it was to go on after an approval."""
        if not turn.continuation:
            self._ports.transcript.delete([turn.assistant_message_id])
        self._ports.continuation.forget_wish_for(turn.assistant_message_id)

    def _hand_on(self, lost: Lost, live: LiveTurn) -> None:
        """Let those who wait for the lost turn wait for the one that goes on for it."""
        live.waiters.extend(lost.waiters)
        lost.waiters = []
        if lost.live is not None:
            signal = lost.live.controller.signal
            signal.add_listener(lambda _: live.controller.abort(signal.reason_text()))
        self._child.go_on(live, known=lost.live is not None)
        root, incident = lost.turn.recovery_root, lost.incident
        live.when_finished(lambda result: self._finished(root, incident, result))

    def _finished(self, root: str, incident: Incident, result: TurnResult) -> None:
        """Take note of how a recovered turn ended (CR-018)."""
        events, store = self._ports.context.events, self._ports.recovery
        if result.status == "error":
            failed = replace(incident, status="failed", reason="recovery_error")
            store.keep_incident(failed)
            events.emit("chat:recovery:failed", event_of(failed))
        elif store.forget_incident(incident.incident_id) and result.status == "completed":
            events.emit("chat:recovery:completed", event_of(incident))
        self.flag.off(root)

    async def _give_up(self, lost: Lost, reason: ExhaustedReason) -> None:
        self._giving_up += 1
        self._lost.pop(lost.turn.turn_id, None)
        try:
            await self._endings.exhaust(lost, reason)
        finally:
            self._giving_up -= 1
        self._ports.waking.release()


_REASONS: Final[dict[str, ExhaustedReason]] = {
    "out_of_memory": "out_of_memory",
    "work_budget_exceeded": "work_budget_exceeded",
    "no_progress_timeout": "no_progress_timeout",
    "recovery_aborted": "recovery_aborted",
    "max_attempts_exceeded": "max_attempts_exceeded",
    "stable_timeout": "stable_timeout",
}


def _reason(incident: Incident) -> ExhaustedReason:
    return _REASONS.get(incident.reason or "", "recovery_error")
