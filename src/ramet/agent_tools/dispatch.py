"""Dispatches runs: a new id registers and starts one, a known id leads to the run that has it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ramet.agent_tools.arguments import check_id, check_signal
from ramet.agent_tools.carry_out import RunTasks
from ramet.agent_tools.children import Child, check_adapter, in_time
from ramet.agent_tools.detached_observers import DetachedObservers
from ramet.agent_tools.detached_terms import DetachedTerms
from ramet.agent_tools.feed import Feed
from ramet.agent_tools.frame_store import FrameStore
from ramet.agent_tools.in_flight import RunsInFlight
from ramet.agent_tools.live_run import LiveRun
from ramet.agent_tools.outputs import OutputType, result_of
from ramet.agent_tools.policy import (
    ending_of,
    redispatch,
    refusal,
    run_id_of_call,
    same_question,
)
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.preview import input_digest, input_preview
from ramet.agent_tools.records import RunResult
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.core.current import current
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonValue, to_json
from ramet.core.signals import AbortSignal
from ramet.errors import InvalidArguments, RunBelongsToAnother
from ramet.protocol.run_events import ABSENT, Absent

LARGEST_ORDER = 2**31
"""What an order of display may be at most, so that it can be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """What a caller asks for."""

    cls: type
    input: object = ABSENT
    output: object = None
    """The type that the output must have; None takes it as it comes."""
    run_id: str | None = None
    idempotency_key: str | None = None
    """Names the run, whichever question it is asked for."""
    parent_tool_call_id: str | None = None
    display_order: int = 0
    input_preview: object = None
    display: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOrder:
    """An order with everything that can be wrong with it found before anything is written."""

    order: RunOrder
    agent_type: str
    preview: JsonValue | Absent
    digest: str | None
    display: JsonValue
    wanted: OutputType | None
    tool_call_id: str | None
    call_position: int | None
    root: str | None
    run_id: str = field(default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    """Takes the orders of one parent."""

    ports: AgentToolPorts
    runs: RunStore
    frames: FrameStore
    in_flight: RunsInFlight
    tasks: RunTasks
    observers: DetachedObservers

    async def run(self, order: RunOrder, signal: AbortSignal | None) -> RunResult[object]:
        """Run a child as a tool, or join the run that has the id, and wait for its result.

        Raises:
            AgentNotRegistered: The class was not given to `App`.
            NotAnAgentTool: The class lacks the adapter.
            RunBelongsToAnother: The run id is taken by another class or another question, or the
                idempotency key by another input.
            NotJson: The preview or the display is nothing JSON can carry.
            Exception: What `on_agent_tool_start` or the child's start raised.
        """
        check_signal(signal)
        checked = self.check(order)
        known = self.known(checked)
        if known is not None and known.detached:
            return result_of(await self.observers.ended(known, signal), checked.wanted)
        found = self._joined(checked, known) or self._new(checked)
        if isinstance(found, LiveRun):
            found.wanted = found.wanted or checked.wanted
            found = await found.outcome(signal)
        elif redispatch(found.status, found.output) == "ask-child":
            found = await self._refreshed(found)
        return result_of(found, checked.wanted)

    def live_again(self, run: StoredRun) -> LiveRun:
        """A live run for a row that is not final; whoever asks for it starts its task."""
        feed = Feed.resume(self.ports, self.frames, run)
        return LiveRun(self.child_of(run), feed, clock=self.ports.clock, fence=self.ports.fence)

    async def repair(self, run: StoredRun) -> None:
        """Have an interrupted run take the end that its child has come to, and wait for that."""
        live = self.in_flight.get(run.run_id)
        if live is None:
            live = self.live_again(run)
            self.tasks.attach(live)
        await live.sealed.wait()

    def child_of(self, run: StoredRun) -> Child:
        """The child of a run; one whose class is gone cannot be reached, and says so when asked."""
        try:
            cls = self.ports.classes.class_of(run.agent_type)
        except LookupError:
            cls = object
        return self._child(run, cls)

    def check(self, order: RunOrder) -> CheckedOrder:
        """Find everything that can be wrong with an order before anything is written."""
        _check_arguments(order)
        agent_type = self.ports.classes.name_of(order.cls)
        check_adapter(order.cls)
        preview = input_preview(order.input, order.input_preview)
        display = to_json(order.display)
        wanted = None if order.output is None else OutputType(order.output)
        now = current()
        tool_call_id = now.tool_call_id if now else None
        position = next(now.run_positions) if now and tool_call_id else None
        root = self.ports.turn_root()
        return CheckedOrder(
            order=order,
            agent_type=agent_type,
            preview=preview,
            digest=input_digest(order.input),
            display=display,
            wanted=wanted,
            tool_call_id=tool_call_id,
            call_position=position,
            root=root,
            run_id=order.run_id
            or order.idempotency_key
            or self._minted(tool_call_id, position, root),
        )

    def _minted(self, tool_call_id: str | None, position: int | None, root: str | None) -> str:
        if tool_call_id is None or position is None:
            return self.ports.ids.run_id()

        def taken_by_another(run_id: str) -> bool:
            run = self.runs.get(run_id)
            return run is not None and not same_question(run.recovery_root, root)

        return run_id_of_call(tool_call_id, position, root=root, taken_by_another=taken_by_another)

    def known(self, checked: CheckedOrder) -> StoredRun | None:
        """The run that has the id already; raises `RunBelongsToAnother` when it may not be had."""
        run = self.runs.get(checked.run_id)
        if run is not None:
            self._check_same(run, checked)
        return run

    def _joined(self, checked: CheckedOrder, run: StoredRun | None) -> LiveRun | StoredRun | None:
        if run is None:
            return None
        live = self.in_flight.get(checked.run_id)
        if live is not None:
            live.input = checked.order.input
            return live
        if redispatch(run.status, run.output) != "attach":
            return run
        live = self.live_again(run)
        live.input = checked.order.input
        self.tasks.attach(live)
        return live

    def _check_same(self, run: StoredRun, checked: CheckedOrder) -> None:
        if run.agent_type != checked.agent_type:
            raise RunBelongsToAnother(
                f"The run id {run.run_id!r} is a run of {run.agent_type}, not of "
                f"{checked.agent_type}: give this run an id of its own"
            )
        if checked.order.idempotency_key is not None:
            if run.input_digest not in {None, checked.digest}:
                raise RunBelongsToAnother(
                    f"The idempotency key {run.run_id!r} was used with another input: what it "
                    "stands for has been asked already; inspect_agent_tool tells what came of it"
                )
        elif not same_question(run.recovery_root, checked.root):
            raise RunBelongsToAnother(
                f"The run id {run.run_id!r} was used in an earlier turn: give this run an id of "
                "its own, or an idempotency_key if it is to be the same run in every turn"
            )

    def _new(self, checked: CheckedOrder) -> LiveRun | StoredRun:
        found = self.register(checked)
        if isinstance(found, LiveRun):
            order = checked.order
            self.tasks.begin(found, None if order.input is ABSENT else order.input)
        return found

    def register(
        self,
        checked: CheckedOrder,
        *,
        terms: DetachedTerms | None = None,
        arm: Callable[[], object] | None = None,
    ) -> LiveRun | StoredRun:
        """Register a run with its child in one commit, or refuse it (D19).

        Args:
            checked: The order.
            terms: How it reports back, if nobody waits for it.
            arm: Called before a run is registered, with what has to stand before it (D6).
        """
        refused = self._refused()
        order, now = checked.order, self.ports.clock.now_ms()
        run = StoredRun(
            run_id=checked.run_id,
            agent_type=checked.agent_type,
            status="starting" if refused is None else "error",
            parent_tool_call_id=order.parent_tool_call_id or checked.tool_call_id,
            input_preview=checked.preview,
            display=checked.display,
            display_order=order.display_order,
            error=refused,
            started_at=now,
            completed_at=None if refused is None else now,
            call_position=checked.call_position,
            recovery_root=checked.root,
            input_digest=checked.digest,
            detachment=terms.begun(now) if terms is not None and refused is None else None,
        )
        if arm is not None and refused is None:
            arm()
        feed = Feed(self.ports, self.frames, run)
        with self.ports.database.transaction():
            self.runs.add(run)
            failpoint("run.registering")
            if refused is not None:
                feed.start()
                feed.end(run)
                return run
            self.ports.registry.add(run.agent_type, run.run_id)
        failpoint("run.registered")
        return LiveRun(
            self._child(run, order.cls), feed, clock=self.ports.clock, fence=self.ports.fence
        )

    def _refused(self) -> str | None:
        cap = self.ports.options.max_concurrent_agent_tools
        return None if math.isinf(cap) else refusal(self.runs.count_unfinished(), cap)

    async def _refreshed(self, run: StoredRun) -> StoredRun:
        """A completed run without output, filled up by what its child says (AT-053)."""
        try:
            async with in_time(self.ports.clock):
                ending = ending_of(await self.child_of(run).inspect())
        except Exception as error:  # noqa: BLE001 - the stored result stands, whatever the child raised
            self.ports.fence.check()
            self.ports.errors.report(error)
            return run
        if ending is not None and ending.status == "completed":
            self.runs.fill(run.run_id, ending)
        return self.runs.get(run.run_id) or run

    def _child(self, run: StoredRun, cls: type) -> Child:
        path = self.ports.path.child(run.agent_type, run.run_id)
        return Child(self.ports.caller, path, cls=cls, run_id=run.run_id)


def _check_arguments(order: RunOrder) -> None:
    """Refuse arguments of a wrong kind before anything is written."""
    if not isinstance(order.cls, type):
        raise InvalidArguments(f"run_agent_tool takes an agent class, not {order.cls!r}")
    for name in ("run_id", "idempotency_key", "parent_tool_call_id"):
        value: object = getattr(order, name)
        if value is not None:
            check_id(name, value)
    if order.run_id is not None and order.idempotency_key is not None:
        raise InvalidArguments("An idempotency_key is the run's id: leave out run_id")
    if isinstance(order.output, str):
        raise InvalidArguments(f"output must be a type, not the text {order.output!r}")
    place: object = order.display_order
    if not isinstance(place, int) or abs(place) > LARGEST_ORDER:
        raise InvalidArguments(f"display_order must be a whole number, not {place!r}")
