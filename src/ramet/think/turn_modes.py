"""The ways to run a turn from code: wait for it, submit it, or follow it as it streams (TQ-006)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ramet.agent_tools.records import StoredChunk
from ramet.chat.feature import Chat
from ramet.chat.gaps import stepped_out
from ramet.chat.live_turn import LiveTurn
from ramet.chat.saving import Given, begun, given_messages, run_added, run_continued
from ramet.chat.turn import TurnResult
from ramet.chat.turns import CANCELLED
from ramet.core.json import loads_object
from ramet.core.signals import AbortSignal
from ramet.core.tail import Tail
from ramet.errors import InvalidArguments
from ramet.protocol.ui_message import UIChunk
from ramet.think.hooks import settled
from ramet.think.submission_records import SubmitResult
from ramet.think.submissions import Submissions

TurnMode: TypeAlias = Literal["wait", "submit", "stream"]
MODES: Final = ("wait", "submit", "stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCallback:
    """What is called while a turn streams; each may be a coroutine function.

    They are called in order by whoever started the turn; the turn does not wait for them. What one
    raises cancels the turn and reaches the starter.
    """

    on_event: Callable[[UIChunk], object]
    """Each chunk of the answer."""
    on_start: Callable[[str], object] | None = None
    """The turn's request id, before it runs."""
    on_done: Callable[[], object] | None = None
    """The turn has completed."""
    on_error: Callable[[str], object] | None = None
    """The turn has failed; the text is what clients are shown."""
    on_interrupted: Callable[[], object] | None = None
    """The turn was cancelled, or skipped by a clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOrder:
    """What `run_turn` was called with."""

    input: Given | None
    mode: TurnMode
    continuation: bool
    signal: AbortSignal | None
    callback: TurnCallback | None
    submission_id: str | None
    idempotency_key: str | None
    metadata: object


async def carry_out(
    chat: Chat, submissions: Submissions, order: TurnOrder
) -> TurnResult | SubmitResult | None:
    """Run a turn as it was ordered; see `ThinkTurnVerbs.run_turn`."""
    fault = fault_of(order)
    if fault is not None:
        raise InvalidArguments(fault)
    given = order.input
    if given is None:
        return await run_continued(chat, order.signal)
    if order.mode == "submit":
        return await submissions.submit(
            given,
            submission_id=order.submission_id,
            key=order.idempotency_key,
            metadata=order.metadata,
        )
    if order.mode == "stream" and order.callback is not None:
        await stream_turn(chat, given, order.callback, signal=order.signal)
        return None
    chat.turns.refuse_inside_turn()
    messages = given_messages(given, chat.ports.context.ids)
    if not messages:
        return TurnResult(request_id="", status="skipped")
    return await run_added(chat, messages, order.signal)


def fault_of(order: TurnOrder) -> str | None:
    """What is wrong with the arguments of `run_turn` (TQ-008), in one sentence."""
    if order.mode not in MODES:
        return f"mode is one of {', '.join(map(repr, MODES))}, not {order.mode!r}"
    if order.continuation and order.mode != "wait":
        return f"A continuation can only be waited for, not run with mode={order.mode!r}"
    if order.continuation and order.input is not None:
        return "A continuation takes no input: leave out one of the two"
    if not order.continuation and order.input is None:
        return "run_turn needs an input, or continuation=True"
    return _fault_of_extras(order)


def _fault_of_extras(order: TurnOrder) -> str | None:
    if (order.callback is None) is (order.mode == "stream"):
        return 'A callback is needed for mode="stream", and only there'
    given = (order.submission_id, order.idempotency_key, order.metadata)
    if order.mode != "submit" and any(each is not None for each in given):
        return 'submission_id, idempotency_key and metadata are for mode="submit"'
    if order.mode == "submit" and order.signal is not None:
        return "A submission is called off by cancel_submission, not by a signal"
    return None


async def stream_turn(
    chat: Chat, given: Given, callback: TurnCallback, *, signal: AbortSignal | None
) -> None:
    """Run a turn and call back with its chunks as they come, then with its end.

    Raises:
        InvalidArguments: There is nothing to answer.
        TurnInsideTurn: Called from inside a turn of the same agent.
    """
    messages = given_messages(given, chat.ports.context.ids)
    if not messages:
        raise InvalidArguments("A turn that is streamed needs at least one message")
    chat.turns.refuse_inside_turn()
    await chat.lost_first()
    tail = Tail[StoredChunk]()

    def follow(live: LiveTurn) -> None:
        live.tails.append(tail)
        live.when_finished(lambda _: tail.end())

    live = begun(chat, messages, signal, before=follow)
    try:
        if callback.on_start is not None:
            await settled(callback.on_start(live.plan.request_id))
        async with stepped_out():
            async for item in tail:
                chunk = loads_object(item.body)
                if item.kind == "chunk" and chunk is not None:
                    await settled(callback.on_event(chunk))
    except BaseException:
        if not chat.ports.context.fence.down:
            live.controller.abort(CANCELLED)
        raise
    await _tell_end(callback, await chat.turns.result_of(live))


async def _tell_end(callback: TurnCallback, result: TurnResult) -> None:
    if result.status == "error":
        if callback.on_error is not None:
            await settled(callback.on_error(result.error or ""))
        return
    ended = callback.on_done if result.status == "completed" else callback.on_interrupted
    if ended is not None:
        await settled(ended())
