"""Runs one turn: asks its producer for chunks, and stores, folds and announces each of them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ramet.agent_tools.records import StoredChunk
from ramet.chat.abortable import Abortable
from ramet.chat.earlier_calls import EarlierCalls
from ramet.chat.live_turn import LiveTurn
from ramet.chat.overlap import Joined, Overlap
from ramet.chat.partial import folded
from ramet.chat.ports import ChatPorts, TurnWatcher
from ramet.chat.recovery_progress import Progress
from ramet.chat.repair import ChunkRepair
from ramet.chat.settling import NOT_FINISHED, Ending, settle, settled, tell_ended
from ramet.chat.stalls import RunningTools, StreamStalled, lively
from ramet.chat.stream_log import StoredStream
from ramet.chat.turn import ChatErrorContext, Chunk, StoredOutcome, Turn, TurnProducer, TurnResult
from ramet.core.current import within, working_for
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject, loads_object, without_surrogates
from ramet.core.public_errors import UNKNOWN_ERROR, public_text
from ramet.errors import ChunkTooLarge
from ramet.protocol import chunks, frames
from ramet.protocol.client_answers import last_step_is_answered
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.parts import settle_parts
from ramet.protocol.ui_message import UIMessage

MOST_BYTES_PER_CHARACTER = 4
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
CANCELLED_ITSELF = "The turn was cancelled by its own code"
LOST = "The turn ended unexpectedly"


class StreamFailed(Exception):
    """The producer gave an `error` chunk: the message is what clients are shown."""


class TurnRunner:
    """Runs the turns of one chat, one at a time."""

    def __init__(self, ports: ChatPorts, producer: TurnProducer, watcher: TurnWatcher) -> None:
        self._ports = ports
        self._producer = producer
        self._watcher = watcher
        self._cap = ports.context.host_options.max_chunk_bytes

    async def run(self, live: LiveTurn) -> None:
        """Run a turn to its end, whatever that is.

        When the instance dies meanwhile, this ends without a trace: nothing is sealed and nobody is
        told; the next instance finds the turn unfinished (D11).
        """
        ports, context = self._ports, self._ports.context
        events, started = context.events, context.clock.now_ms()
        payload: JsonObject = {
            "requestId": live.plan.request_id,
            "trigger": live.plan.trigger,
            "admission": "queue",
        }
        events.emit("chat:turn:start", payload)
        connection = ports.clients.of(live.sender) if live.sender is not None else None
        with working_for(ports.agent, connection), within(request_id=live.plan.request_id):
            ending = await self._ending_of(live)
        if ending is None:
            status: StoredOutcome = "recovering"
        else:
            self._watcher.turn_ending(live)
            status = settle(ports, live, ending).status
        events.emit(
            "chat:turn:finish",
            {**payload, "status": status, "durationMs": context.clock.now_ms() - started},
        )

    def give_up(self, live: LiveTurn) -> None:
        """End a turn whose own end could not be carried out: keep its answer, tell who waits."""
        ending = Ending("error", LOST)
        try:
            settle(self._ports, live, ending)
        except Exception as error:  # noqa: BLE001 - the last resort, so that nobody waits for it
            self._ports.errors.report(error)
            tell_ended(self._ports, live, ending)
            live.finish(TurnResult(request_id=live.plan.request_id, status="error", error=LOST))

    async def _ending_of(self, live: LiveTurn) -> Ending | None:
        """Run the turn and say how it ended; None when another goes on for it."""
        if live.is_cancelled():
            return Ending("aborted")
        try:
            self._begin(live)
            await self._stream(live)
        except (StreamStalled, MemoryError) as stop:
            return await self._stopped(live, stop)
        except StreamFailed as failure:
            return await self._failed(live, failure, str(failure))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._ports.context.fence.down or (task is not None and task.cancelling()):
                raise
            return await self._failed(live, error, CANCELLED_ITSELF)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a producer raises ends its turn
            self._ports.context.fence.check()
            return await self._failed(live, error, public_text(error, self._ports.context.ids))
        return Ending("aborted" if live.is_cancelled() else "completed")

    async def _stopped(self, live: LiveTurn, stop: StreamStalled | MemoryError) -> Ending | None:
        """Hand a turn over that cannot go on here but might in another attempt (CR-026)."""
        stalled = isinstance(stop, StreamStalled)
        if stalled:
            payload: JsonObject = {"requestId": live.plan.request_id}
            self._ports.context.events.emit("chat:stream:stalled", payload)
        if live.is_cancelled():
            return Ending("aborted")
        if self._watcher.turn_lost(live, out_of_memory=not stalled):
            return None
        text = str(stop) if stalled else public_text(stop, self._ports.context.ids)
        return await self._failed(live, stop, text)

    async def _failed(self, live: LiveTurn, error: BaseException, text: str) -> Ending:
        if live.is_cancelled():
            return Ending("aborted")
        context = ChatErrorContext(
            request_id=live.plan.request_id,
            trigger=live.plan.trigger,
            text=text or UNKNOWN_ERROR,
            message=None if live.answer is None else live.answer.message(),
        )
        return Ending("error", await self._ports.hooks.failed(error, context) or context.text)

    def _begin(self, live: LiveTurn) -> None:
        plan, ports = live.plan, self._ports
        if live.record is not None:
            live.record()
        stream = StoredStream(
            stream_id=plan.stream_id,
            request_id=plan.request_id,
            turn_id=plan.turn_id,
            message_id=plan.assistant_message_id,
            continuation=plan.continuation,
        )
        with ports.context.database.transaction():
            ports.turns.start(plan.turn_id, ports.context.clock.now_ms())
            ports.log.open(stream)
            if plan.resumes is not None:
                ports.log.copy(plan.resumes, to=plan.stream_id)
                ports.log.close(plan.resumes, "recovering")
        failpoint("turn.started")
        live.answer, live.resumed = folded(ports, stream)
        live.next_index = ports.log.next_index(plan.stream_id) if live.resumed else 0
        live.phase = "streaming"
        self._watcher.turn_streams(live)

    async def _stream(self, live: LiveTurn) -> None:
        if live.resumed and live.resumed[-1]["type"] == chunks.FINISH:
            return
        turn, shaper = self._turn_of(live), self._shaper_of(live)
        self._use_up_wish(turn)
        writer = ChunkWriter(self._ports, live, cap=self._cap)
        earlier = EarlierCalls(self._ports, live)
        tools = RunningTools(live.resumed if self._ports.family.resumes_steps else ())
        live.write = _AnswerWriter(writer, shaper, tools).write
        async with (
            Abortable(live.controller.signal),
            _closed_after(self._producer.produce(turn)) as given,
        ):
            async for chunk in self._lively(given, tools):
                if live.is_cancelled():
                    return
                if earlier.take(chunk):
                    continue
                for shaped in shaper.take(chunk):
                    writer.write(shaped)
                    tools.note(shaped)
        if not live.is_cancelled():
            for shaped in shaper.end():
                writer.write(shaped)

    def _turn_of(self, live: LiveTurn) -> Turn:
        """The turn as its producer sees it; with what was said before it was lost, if it was."""
        plan = live.plan
        last = plan.assistant_message_id if plan.continuation else (None, *plan.message_ids)[-1]
        messages = self._ports.transcript.until(last)
        if live.resumed and not self._ports.family.resumes_steps:
            messages = _with_partial(messages, live)
        return live.as_turn(messages)

    def _use_up_wish(self, turn: Turn) -> None:
        """Forget that an answer is to go on: this turn does, and sees all that was answered in it.

        What is answered from here on has to wait for the next turn. So has what was answered in a
        step that itself goes on: it ends before the model is told.
        """
        if turn.resumed and self._ports.family.resumes_steps:
            return
        last = turn.messages[-1] if turn.messages else None
        if last is None or last["id"] != turn.assistant_message_id:
            return
        if last_step_is_answered(last):
            self._ports.continuation.forget_wish_for(turn.assistant_message_id)

    def _shaper_of(self, live: LiveTurn) -> ChunkRepair | Joined:
        message_id = None if live.plan.continuation else live.plan.assistant_message_id
        if live.resumed and not self._ports.family.resumes_steps:
            calls = (chunk.get("toolCallId") for chunk in live.resumed)
            known = [call_id for call_id in calls if isinstance(call_id, str)]
            repair = ChunkRepair(message_id, known_calls=known)
            return Joined(repair, Overlap(live.resumed, whole=True))
        repair = ChunkRepair(message_id)
        repair.resume(live.resumed)
        return repair

    def _lively(self, given: AsyncIterator[Chunk], tools: RunningTools) -> AsyncIterator[Chunk]:
        seconds = self._ports.hooks.stall_timeout()
        if not seconds:
            return given
        clock = self._ports.context.clock
        return lively(given, clock, most_seconds=seconds, excused=tools.any)


class ChunkWriter:
    """Stores and announces the chunks of one turn; the way of every chunk, so it is short."""

    def __init__(self, ports: ChatPorts, live: LiveTurn, *, cap: int) -> None:
        self._live = live
        self._cap = cap
        self._log = ports.log
        self._clients = ports.clients
        self._progress = Progress(ports.recovery, ports.context.clock)
        self._log_key = live.log_key
        self._envelope = frames.ChatChunkEnvelope(
            live.plan.request_id, continuation=live.plan.continuation
        )

    def write(self, chunk: JsonObject) -> None:
        """Commit a chunk, then show it to clients and to whoever follows the turn.

        Raises:
            StreamFailed: It is an `error` chunk, which is no part of the answer.
            ChunkTooLarge: It is larger than chunks may be.
        """
        live = self._live
        if live.discarded:
            return
        if chunk["type"] == chunks.ERROR:
            raise StreamFailed(without_surrogates(str(chunk.get("errorText") or UNKNOWN_ERROR)))
        body = chunks.chunk_body(chunk)
        if len(body) * MOST_BYTES_PER_CHARACTER > self._cap:
            self._check_size(body)
        if REPLACEMENT in body:
            chunk = loads_object(body) or chunk  # half an emoji is stored, and shown, as a sign
        index = live.next_index
        self._log.append(live.plan.stream_id, index, body)
        failpoint("chat.chunk.committed")
        live.next_index = index + 1
        self._progress.note(chunk["type"])
        if live.answer is not None:
            live.answer.add(chunk)
        if len(self._clients):
            self._clients.broadcast_log(self._envelope.frame(index, body), self._log_key)
        if live.tails:
            item = StoredChunk(sequence=index, body=body)
            for tail in tuple(live.tails):
                tail.push(item)

    def _check_size(self, body: str) -> None:
        size = len(body.encode())
        if size > self._cap:
            raise ChunkTooLarge(f"A chunk has {size} bytes; at most {self._cap} are allowed.")


class _AnswerWriter:
    """Adds what pages answer to the answer that streams."""

    def __init__(
        self, writer: ChunkWriter, shaper: ChunkRepair | Joined, tools: RunningTools
    ) -> None:
        self._writer = writer
        self._joined = shaper if isinstance(shaper, Joined) else None
        self._tools = tools

    def write(self, chunk: JsonObject) -> None:
        self._writer.write(chunk)
        self._tools.note(chunk)
        if self._joined is not None:
            self._joined.note(chunk)


@asynccontextmanager
async def _closed_after(given: AsyncIterator[Chunk]) -> AsyncGenerator[AsyncIterator[Chunk], None]:
    try:
        yield given
    finally:
        if isinstance(given, AsyncGenerator):
            await given.aclose()


def _with_partial(messages: Sequence[UIMessage], live: LiveTurn) -> list[UIMessage]:
    """The messages with what a producer was lost over, of which nothing is open any more."""
    partial = None if live.answer is None else live.answer.message()
    if partial is None:
        return [*messages]
    if not live.plan.continuation:
        return [*messages, settled(partial)]
    *before, extended = messages
    known, parts = len(parts_of(extended)), parts_of(partial)
    lost = settle_parts(parts[known:], reason=NOT_FINISHED)
    return [*before, with_parts(partial, [*parts[:known], *lost])]
