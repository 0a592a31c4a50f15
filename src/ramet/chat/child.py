"""A chat agent as the child of another agent: its turns as runs, for both families (AT-071)."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from ramet.agent_tools.records import ChildRun, Inspection, StoredChunk
from ramet.chat.child_results import RunEnd, end_of_lost_run, end_of_run, inspection_of
from ramet.chat.child_runs import StoredChildRun
from ramet.chat.child_tail import ChildTail
from ramet.chat.family import Output
from ramet.chat.live_turn import LiveTurn, TurnPlan
from ramet.chat.ports import ChatPorts
from ramet.chat.stream_log import PAGE_CHUNKS, ChunkPage
from ramet.chat.stream_reader import StreamReader
from ramet.chat.turn import TurnResult
from ramet.chat.turns import TurnRequest, Turns
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonValue, NotJson, as_text, dump_indented, to_json, to_json_strict
from ramet.core.public_errors import public_text
from ramet.core.signals import AbortSignal
from ramet.errors import UnknownModelResult
from ramet.protocol import frames
from ramet.protocol.messages import user_message
from ramet.protocol.run_events import ABSENT
from ramet.protocol.ui_message import UIMessage, as_message

_UNDER_WAY = frozenset({"accepted", "running", "recovering"})


class ChatChild:
    """The runs that this agent works for."""

    def __init__(self, ports: ChatPorts, turns: Turns) -> None:
        self._ports = ports
        self._turns = turns
        self._tails: dict[ChildTail, str] = {}
        self._sealing = 0

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        if self._tails:
            return "a run is being followed"
        return "a run is being sealed" if self._sealing else None

    @property
    def sealing(self) -> bool:
        """Whether the turn of a run has ended whose end is not recorded yet."""
        return self._sealing > 0

    async def start(
        self, input: object, *, run_id: str, signal: AbortSignal | None = None
    ) -> Inspection:
        """Begin a run; the turn goes on by itself. One that was begun before is only looked at."""
        known = self.inspect(run_id)
        if known is not None:
            return known
        value = _as_json(input)
        formatted = await self._ports.hooks.tool_input(value, ChildRun(run_id=run_id, input=value))
        known = self.inspect(run_id)
        if known is not None:
            return known
        started = self._begin(run_id, value, _as_message(formatted, run_id))
        if signal is None:
            return inspection_of(started, (), self._ports.family)
        self._cancel_with(signal, run_id)
        return self.inspect(run_id) or inspection_of(started, (), self._ports.family)

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """End a run early; harmless when there is none or it has ended (AT-182)."""
        run = self._ports.runs.get(run_id)
        if run is None or run.completed_at is not None:
            return
        self._turns.cancel(run.request_id, reason or "cancelled")
        self._seal(run_id, RunEnd("aborted", reason))

    def inspect(self, run_id: str) -> Inspection | None:
        """What is known of a run; None when nothing is."""
        run = self._ports.runs.get(run_id)
        if run is None:
            return None
        return inspection_of(run, self._ports.runs.milestones(run_id), self._ports.family)

    def chunks(self, run_id: str, *, after: int, limit: int | None = None) -> list[StoredChunk]:
        """The stored items of a run after a chunk index, all of them or one page."""
        run = self._ports.runs.get(run_id)
        if run is None:
            return []
        reader = self._reader(run, after)
        items = reader.next_page(limit or PAGE_CHUNKS)
        while limit is None and not reader.at_end:
            items += reader.next_page()
        return items

    def tail(self, run_id: str, *, after: int, signal: AbortSignal | None) -> ChildTail:
        """Follow the items of a run after a chunk index until the run ends.

        Closing the tail, or aborting the signal, only detaches it (AT-113, AT-114).
        """
        run = self._ports.runs.get(run_id)
        fence = self._ports.context.fence
        removals: list[Callable[[], None]] = []

        def detach(tail: ChildTail) -> None:
            self._tails.pop(tail, None)
            for live in self._turns:
                if tail in live.tails:
                    live.tails.remove(tail)
            for remove in removals:
                remove()

        tail = ChildTail(
            _Nothing() if run is None else self._reader(run, after),
            attach=lambda tail: self._attach(tail, run_id),
            on_detach=detach,
        )
        self._tails[tail] = run_id
        removals.append(fence.on_down(lambda: tail.end(fence.error())))
        if signal is not None:
            removals.append(signal.add_listener(lambda _: tail.end()))
        return tail

    def run_of(self, run_id: str) -> ChildRun:
        """What a run was asked, and the messages that it has added.

        Raises:
            LookupError: There is no such run.
        """
        run = self._ports.runs.get(run_id)
        if run is None:
            raise LookupError(f"This agent has no run {run_id!r}")
        return ChildRun(run_id=run_id, input=run.input, messages=self._messages(run))

    def default_output(self, run_id: str) -> Output:
        """The output of a run whose agent says nothing else."""
        return self._ports.family.child_output(self._answers(run_id))

    def default_summary(self, run_id: str, output: object) -> str:
        """The summary of a run whose agent says nothing else."""
        value = ABSENT if output is None or output is ABSENT else to_json(output)
        return self._ports.family.child_summary(self._answers(run_id), value)

    async def reconcile(self) -> None:
        """Seal the runs that an earlier process left open, by what was recorded of their turns.

        A run whose turn goes on, or still may, is left open (AT-091).
        """
        for run in self._ports.runs.unsealed():
            turn = self._ports.turns.of_request(run.request_id)
            if turn is None or turn.status not in _UNDER_WAY:
                await self._seal_completed(run.run_id, end_of_lost_run(turn))

    def go_on(self, live: LiveTurn, *, known: bool) -> None:
        """Let a turn that goes on for a lost one work for its run (AT-095, AT-096).

        Args:
            live: The new turn.
            known: Whether those who wait for the run wait for this turn already.
        """
        run_id = live.plan.run_id
        if run_id is None:
            return
        live.tails.extend(
            tail
            for tail, followed in self._tails.items()
            if followed == run_id and tail.has_caught_up
        )
        if not known:
            live.when_finished(lambda result: self._turn_ended(run_id, live, result))

    def _begin(self, run_id: str, value: JsonValue, message: UIMessage) -> StoredChildRun:
        now = self._ports.context.clock.now_ms()

        def run_of(plan: TurnPlan) -> StoredChildRun:
            return StoredChildRun(
                run_id=run_id,
                request_id=plan.request_id,
                stream_id=plan.stream_id,
                started_at=now,
                input=value,
                request_ids=[plan.request_id],
            )

        def store(plan: TurnPlan) -> None:
            self._ports.transcript.put(message)
            self._ports.runs.insert(run_of(plan))

        live = self._turns.accept(
            TurnRequest(
                trigger="agent-tool",
                store=store,
                message_ids=[str(message["id"])],
                body={"agentToolInput": value},
                run_id=run_id,
            )
        )
        live.when_finished(lambda result: self._turn_ended(run_id, live, result))
        self._ports.clients.broadcast_frame(frames.transcript(self._ports.transcript.json()))
        self._turns.enqueue(live)
        return run_of(live.plan)

    def _cancel_with(self, signal: AbortSignal, run_id: str) -> None:
        remove = signal.add_listener(lambda _: self.cancel(run_id, signal.reason_text()))
        live = next((each for each in self._turns if each.plan.run_id == run_id), None)
        if live is not None:
            live.when_finished(lambda _: remove())

    def _turn_ended(self, run_id: str, live: LiveTurn, result: TurnResult) -> None:
        reason = live.controller.signal.reason_text()
        end = end_of_run(result.status, result.error, reason=reason)
        self._sealing += 1
        work = self._seal_completed(run_id, end)
        task = self._ports.context.background.start(work, name=f"seal {run_id}")
        task.add_done_callback(lambda _: self._sealed())

    def _sealed(self) -> None:
        self._sealing -= 1
        if not self._ports.context.fence.down:
            self._ports.waking.release()

    async def _seal_completed(self, run_id: str, end: RunEnd) -> None:
        """Ask for the output of a run that has completed, then seal it."""
        output: Output = ABSENT
        summary: str | None = None
        if end.status == "completed":
            hooks = self._ports.hooks
            try:
                given = await hooks.tool_output(run_id)
                output = ABSENT if given is ABSENT else to_json_strict(given)
                told = None if output is ABSENT else output
                summary = as_text(await hooks.tool_summary(run_id, told))
            except NotJson as error:
                end = RunEnd("error", f"The output of the run is not JSON: {error}")
            except Exception as error:  # noqa: BLE001 - an output that cannot be given fails its run
                self._ports.context.fence.check()
                end = RunEnd("error", public_text(error, self._ports.context.ids))
        self._seal(run_id, end, output=output, summary=summary)

    def _seal(
        self, run_id: str, end: RunEnd, *, output: Output = ABSENT, summary: str | None = None
    ) -> None:
        """Record the end of a run unless it has one, and let go of those who follow it."""
        self._ports.runs.seal(
            run_id,
            end.status,
            now=self._ports.context.clock.now_ms(),
            output=output,
            summary=summary,
            error=end.error,
        )
        failpoint("chat.run_sealed")
        for tail in [tail for tail, followed in self._tails.items() if followed == run_id]:
            tail.settle()

    def _attach(self, tail: ChildTail, run_id: str) -> bool:
        run = self._ports.runs.get(run_id)
        if run is None or run.completed_at is not None:
            return False
        live = self._turns.find(run.request_id)
        if live is not None:
            live.tails.append(tail)
            if live.progress is not None:
                tail.push(live.progress)
        return True

    def _messages(self, run: StoredChildRun) -> list[UIMessage]:
        turns = [self._ports.turns.of_request(request_id) for request_id in run.request_ids]
        return self._ports.transcript.some(
            message_id
            for turn in turns
            if turn is not None
            for message_id in (*turn.message_ids, turn.assistant_message_id)
        )

    def _answers(self, run_id: str) -> list[UIMessage]:
        messages = self.run_of(run_id).messages
        return [message for message in messages if message["role"] == "assistant"]

    def _reader(self, run: StoredChildRun, after: int) -> StreamReader:
        log, runs = self._ports.log, self._ports.runs

        def page(index: int, limit: int) -> ChunkPage:
            now = runs.get(run.run_id) or run
            return log.page(now.stream_id, after=index, limit=limit)

        return StreamReader(
            page,
            lambda number: runs.milestones(run.run_id, after=number),
            after=after,
        )


class _Nothing:
    """The backlog of a run that is not known."""

    at_end = True

    def next_page(self) -> list[StoredChunk]:
        """Nothing."""
        return []


def default_input(input: JsonValue, run: ChildRun) -> UIMessage:
    """The message that a run begins with: a text as it is, anything else as indented JSON."""
    text = input if isinstance(input, str) else dump_indented(input)
    return user_message(text, id=input_message_id(run.run_id))


def input_message_id(run_id: str) -> str:
    """The id of the message that a run begins with (AT-345)."""
    return f"agent-tool-{run_id}-input"


def _as_message(formatted: object, run_id: str) -> UIMessage:
    if isinstance(formatted, str):
        return user_message(formatted, id=input_message_id(run_id))
    if isinstance(formatted, Mapping):
        message = to_json(formatted)
        if isinstance(message, dict) and isinstance(message.get("parts"), list):
            return as_message({"id": input_message_id(run_id), "role": "user", **message})
    raise UnknownModelResult("format_agent_tool_input must give a text or a message with parts")


class _InputNotJson(NotJson):
    """What a run is asked cannot be stored: the fault of who asks, so everybody may hear it."""

    public: ClassVar[bool] = True


def _as_json(input: object) -> JsonValue:
    try:
        return to_json_strict(input)
    except NotJson as error:
        raise _InputNotJson(f"The input of the run cannot be written as JSON: {error}") from error
