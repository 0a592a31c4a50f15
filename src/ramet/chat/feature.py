"""The chat of one agent: puts its parts together."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ramet.agent.context import AgentContext
from ramet.chat.child import ChatChild
from ramet.chat.child_runs import ChildRunStore
from ramet.chat.client_tools import ClientAnswers
from ramet.chat.concurrency import MessageConcurrency, checked_policy
from ramet.chat.continuation_store import ContinuationStore
from ramet.chat.continuing import Continuing
from ramet.chat.family import ChatFamily
from ramet.chat.gaps import Gaps
from ramet.chat.hooks import ChatHooked, ChatHooks, is_deciding
from ramet.chat.live_turn import LiveTurn
from ramet.chat.orphans import seal_unsettled
from ramet.chat.ports import ChatPorts
from ramet.chat.progress import ProgressReporter, Report, ReportOutcome
from ramet.chat.recovery import Recovery
from ramet.chat.recovery_progress import Credit
from ramet.chat.recovery_store import RecoveryStore
from ramet.chat.resuming import Resuming
from ramet.chat.settling import dismiss
from ramet.chat.stream_log import StreamLog
from ramet.chat.submits import Submits
from ramet.chat.transcript import Transcript
from ramet.chat.turn import TurnProducer
from ramet.chat.turn_store import StoredTurn, TurnStore
from ramet.chat.turn_waking import TurnWaking, Wake
from ramet.chat.turns import Turns
from ramet.chat.wire import ChatWire
from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.connections.inbox import Inbox
from ramet.core.alarm import Alarm
from ramet.core.durations import Duration, seconds_of
from ramet.core.ports import ErrorHook
from ramet.errors import StorageError
from ramet.protocol import frames
from ramet.protocol.messages import asks_client


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSurroundings:
    """What a chat is built in."""

    context: AgentContext
    agent: ChatHooked
    clients: ClientSet
    producer: TurnProducer
    errors: ErrorHook
    family: ChatFamily
    cleared: Callable[[], object]
    """Forgets what a kind of chat agent keeps beside the chat, in the transaction of a clear."""
    runs_here: Callable[[str], bool]
    """Whether a tool call, by its id, is known to run here; see `ChatPorts`."""
    turn_over: Callable[[], object]
    """Told that a turn has ended, or will not go on; in the step in which that was recorded."""
    alarm: Alarm | None
    """The agent's own; None below a root."""
    wake: Wake
    """Has an internal handler called at a moment; see `Schedules.wake`."""
    clear_runs: Callable[[], Coroutine[object, object, object]]
    """Removes the runs that this agent has started."""


class Chat:
    """Turns, transcript, resume and runs of one agent."""

    def __init__(self, around: ChatSurroundings) -> None:
        context, database = around.context, around.context.database
        self.transcript = Transcript(database, context.clock)
        self._ports = ChatPorts(
            context=context,
            agent=around.agent,
            clients=around.clients,
            errors=around.errors,
            family=around.family,
            hooks=ChatHooks(around.agent, context.background, around.errors),
            transcript=self.transcript,
            log=StreamLog(database, context.clock),
            turns=TurnStore(database),
            runs=ChildRunStore(database),
            recovery=RecoveryStore(database, context.clock),
            continuation=ContinuationStore(database),
            waking=TurnWaking(around.alarm, around.wake, context.clock, under_way=self._under_way),
            runs_here=around.runs_here,
        )
        self.turns = Turns(self._ports, around.producer, self)
        self.child = ChatChild(self._ports, self.turns)
        self._continuing = Continuing(self._ports, self.turns)
        self._resuming = Resuming(self._ports, self.turns, self._continuing)
        self.recovery = Recovery(
            self._ports,
            self.turns,
            self.child,
            parked=self._resuming.park_all,
            ended=self._lost_turn_ended,
        )
        self.turns.lost = self.recovery
        self.gaps = Gaps(
            self.turns.queue,
            clock=context.clock,
            fence=context.fence,
            unsettled=self._unsettled,
        )
        self._progress = ProgressReporter(self._ports)
        self._credit = Credit(self._ports.recovery, context.clock)
        submits = Submits(self._ports, self.turns, policy=self.concurrency)
        answers = ClientAnswers(self._ports, self.turns, self._continuing, park=self._resuming.park)
        self._wire = ChatWire(
            self._ports,
            self.turns,
            self._resuming,
            submits=submits,
            answers=answers,
            clear=self.clear,
        )
        self._agent = around.agent
        self._cleared = around.cleared
        self._clear_runs = around.clear_runs
        self._turn_over = around.turn_over
        self._lost: Sequence[StoredTurn] = ()
        self._started = False

    @property
    def ports(self) -> ChatPorts:
        """The parts that the verbs need."""
        return self._ports

    def check_settings(self) -> None:
        """Refuse settings of the agent that make no sense; raises `InvalidOptions`."""
        self.concurrency()
        self._ports.hooks.most_messages()

    def concurrency(self) -> MessageConcurrency:
        """What the agent does with questions that overlap; raises `InvalidOptions`."""
        return checked_policy(self._agent.message_concurrency)

    def listen(self, inbox: Inbox) -> None:
        """Take the chat frames of the agent's clients."""
        self._wire.listen(inbox)

    def busy(self) -> str | None:
        """Why the instance may not be evicted; None when it may (D14)."""
        parts = (
            self.turns,
            self.recovery,
            self._continuing,
            self.child,
            self._resuming,
            self._ports.hooks,
        )
        return next((reason for part in parts if (reason := part.busy())), None)

    def note_lost(self) -> None:
        """Take note of what an earlier process left unfinished; before anything else happens."""
        self._lost = self.recovery.detect(self._agent.chat_recovery)

    def started(self) -> None:
        """Take note that `on_start` has returned."""
        self._started = True

    def take_up_lost(self) -> None:
        """Go on with what was noted, in the background; after `on_start`."""
        self.recovery.warn_if_changed(self._agent.chat_recovery)
        self.recovery.begin()
        self._continuing.recheck()
        self._ports.waking.release()

    async def woken(self) -> None:
        """See to turns that are under way; called by the alarm of a root or as `RESUME_TURNS`."""
        self._seal_unsettled()
        self._ports.waking.renew()

    def expects(self, message_id: str) -> bool:
        """Whether a message is there or is being written: what belongs to it is kept."""
        if message_id in self.transcript:
            return True
        if any(live.plan.assistant_message_id == message_id for live in self.turns):
            return True
        lost = self._ports.turns.unfinished()
        return any(turn.assistant_message_id == message_id for turn in lost)

    def adopted(self, connection: Connection) -> None:
        """Take over a client of an earlier instance: what it followed has ended."""
        self._resuming.adopted(connection, self._lost)
        self.recovery.flag.tell(connection)

    def greet(self, connection: Connection) -> None:
        """Tell a new client what is going on."""
        self._seal_unsettled()
        self._resuming.greet(connection)
        self.recovery.flag.tell(connection)

    def forget(self, connection: Connection) -> None:
        """Take note that a client has gone."""
        self._resuming.forget(connection.link)

    def clear(self, sender: Connection | None = None) -> None:
        """Forget the chat: turns end, messages and logs go; what runs have streamed stays (D3)."""
        ports = self._ports
        self.turns.reset()
        kept = ports.runs.bound_requests()
        with self.transcript.changing():
            self.transcript.clear()
            ports.log.clear(keep=kept)
            ports.turns.clear(keep=kept, running=[live.plan.turn_id for live in self.turns])
            ports.continuation.clear()
            self._cleared()
        for live in self.turns:
            dismiss(ports, live)
        besides = None if sender is None else sender.link
        ports.clients.broadcast_frame(frames.chat_clear(), only=lambda link: link is not besides)
        self._resuming.release_parked()
        self.gaps.turn_over()
        ports.waking.release()
        if ports.context.options.clear_runs_with_chat:
            ports.context.background.start(self._clear_runs(), name="clear runs")

    async def lost_first(self) -> None:
        """Wait until lost turns have gone on: they were accepted before what code asks now.

        Not in `on_start`, which they wait for, nor in the hooks that decide about them.
        """
        await self.gaps.until_settled(
            lambda: self._started and self.recovery.pending and not is_deciding()
        )

    async def stable(self, timeout: Duration | None) -> bool:  # noqa: ASYNC109 - our own clock
        """Wait until no turn runs or waits and no client is asked; False when that takes longer."""
        seconds = None if timeout is None else seconds_of(timeout, name="timeout")
        try:
            async with self._ports.context.clock.timeout(seconds):
                await self._idle_and_unasked()
        except TimeoutError:
            return False
        return True

    def has_pending_interaction(self) -> bool:
        """Whether the last answer waits for somebody outside; a turn that goes on does not."""
        return (
            self.turns.busy() is None
            and not self.recovery.pending
            and asks_client(self.transcript.last())
        )

    async def _idle_and_unasked(self) -> None:
        while True:
            await self.turns.idle()
            if not self._continuing.due and not self.has_pending_interaction():
                return
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.transcript.once_changed(partial(_wake, changed))
            await changed

    def report(self, report: Report) -> ReportOutcome:
        """Send a progress signal of the run that the running code works for."""
        return self._progress.report(self.turns.current(), report)

    def turn_root(self) -> str | None:
        """The recovery root of the turn that the running code belongs to (D5)."""
        live = self.turns.current()
        return None if live is None else live.plan.recovery_root

    def run_gave_something(self) -> None:
        """Count what a run of this agent gives as its own progress, now and then (AT-228)."""
        self._credit.now_and_then()

    def tool_calls(self) -> set[str]:
        """The ids of the tool calls in the transcript (D22)."""
        return self.transcript.tool_calls()

    def turn_streams(self, live: LiveTurn) -> None:
        """Offer the turn to the clients that wait for one."""
        self._resuming.turn_streams(live)
        self.gaps.turn_over()  # a lost turn has gone on

    def turn_lost(self, live: LiveTurn, *, out_of_memory: bool) -> bool:
        """Have another turn go on for one that cannot."""
        return self.recovery.lose(live, out_of_memory=out_of_memory)

    def turn_ending(self, live: LiveTurn) -> None:
        """Send what progress was held back."""
        self._progress.flush(live)

    def turn_ended(self, live: LiveTurn) -> None:
        """Let go of the clients that wait, when nothing is left to come."""
        self._continuing.recheck()
        self._resuming.turn_ended()
        self.gaps.turn_over()
        self._turn_over()
        self._ports.waking.release()

    def _lost_turn_ended(self) -> None:
        """Let go of the clients and the parents that wait for a lost turn, which will not go on."""
        self._continuing.recheck()
        self._resuming.turn_ended()
        self.gaps.turn_over()
        self._turn_over()
        self._ports.context.background.start(self._reconcile(), name="reconcile runs")

    def _unsettled(self) -> bool:
        """Whether an answer is still to go on: what came after its question would end it."""
        going_on = (live.plan.former_requests or live.plan.continuation for live in self.turns)
        return self.recovery.pending or self._continuing.due or any(going_on)

    async def _reconcile(self) -> None:
        await self.child.reconcile()
        self._ports.waking.release()

    def _seal_unsettled(self) -> None:
        with suppress(StorageError):
            seal_unsettled(self._ports)
            self._ports.waking.release()

    def _under_way(self) -> bool:
        """Whether a turn needs this process or, should it die, the next one."""
        return (
            self.turns.busy() is not None
            or self.recovery.busy() is not None
            or self._continuing.due
            or self.child.sealing
            or bool(self._ports.turns.unsettled)
        )


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
