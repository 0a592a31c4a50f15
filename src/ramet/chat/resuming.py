"""Carries out resume: offers, acknowledgements, replays, and clients that wait for a turn."""

from collections.abc import Callable, Iterator, Sequence

from ramet.chat.continuing import Continuing
from ramet.chat.live_turn import LiveTurn, log_key
from ramet.chat.ports import ChatPorts
from ramet.chat.replay import ChatReplay
from ramet.chat.resume import (
    Answer,
    Idle,
    Ignore,
    Offer,
    Situation,
    Wait,
    answer_to_ack,
    answer_to_probe,
    greeting,
)
from ramet.chat.settling import NOT_FINISHED, LastWord, terminal
from ramet.chat.stream_log import StoredStream
from ramet.chat.stream_reader import StreamReader
from ramet.chat.turn_store import StoredTurn
from ramet.chat.turns import Turns
from ramet.connections.connection import Connection
from ramet.connections.link import ClientLink
from ramet.protocol import chunks, frames
from ramet.protocol.messages import parts_of

RECOVERING = frozenset({"recovery-continue", "recovery-retry"})


class Resuming:
    """Brings clients up to where the chat is."""

    def __init__(self, ports: ChatPorts, turns: Turns, continuing: Continuing) -> None:
        self._ports = ports
        self._turns = turns
        self._continuing = continuing
        self._parked: dict[ClientLink, None] = {}
        self._replaying: set[tuple[ClientLink, str]] = set()

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        return "an answer is being sent again" if self._replaying else None

    def greet(self, connection: Connection) -> None:
        """Tell a new client what is going on."""
        answer = greeting(self._situation(connection.link))
        if not isinstance(answer, Idle):
            self._tell(connection, answer, probe_id=None)
        if isinstance(answer, Wait | Idle):
            messages = self._ports.transcript.json()
            connection.send_frame(frames.transcript(messages, connect=True))

    def probed(self, connection: Connection, probe_id: str | None) -> None:
        """Answer a client that asks whether there is something to resume."""
        self._tell(connection, answer_to_probe(self._situation(connection.link)), probe_id=probe_id)

    def offer(self, connection: Connection, request_id: str) -> None:
        """Answer a request that was made before with what there is of it."""
        live = self._turns.find(request_id)
        if live is not None:
            request_id = live.plan.request_id
        waits = live is not None and live.phase == "accepted"
        self._tell(connection, Wait(request_id) if waits else Offer(request_id), probe_id=None)

    def acknowledged(self, connection: Connection, request_id: str) -> None:
        """Send a client the stream that it accepted; it waits for one that has not begun."""
        turn = self._ports.turns.of_request(request_id)
        if turn is None or turn.outcome != "recovering":
            match answer_to_ack(self._situation(connection.link), request_id):
                case Wait():
                    self._parked[connection.link] = None
                    return
                case Ignore():
                    return
        stream = self._ports.log.of_request(request_id)
        if stream is None:
            self._send_end(connection, request_id)
            return
        self._replay(connection.link, stream)

    def adopted(self, connection: Connection, lost: Sequence[StoredTurn]) -> None:
        """Take over a client that stayed connected when an earlier instance went.

        It is told how the lost turns ended. A replay that was cut off is made again from the start:
        clients begin anew at each `start` chunk.
        """
        link, log = connection.link, self._ports.log
        streams = [each for each in log.all() if _replay_key(each.stream_id) in link.behind]
        replayed = {stream.turn_id for stream in streams}
        told = [turn for turn in lost if turn.turn_id not in replayed]
        if lost:
            connection.send_frame(frames.transcript(self._ports.transcript.json()))
        for turn in told:
            connection.send_frame(_end_of_turn(turn, replay=False))
        for stream in streams:
            self._replay(link, stream)
        if self._ports.turns.recovering() is not None:
            self._parked[link] = None

    def park(self, link: ClientLink) -> None:
        """Have a client wait for the turn that its answer to a tool call has asked for."""
        self._parked[link] = None

    def park_all(self) -> None:
        """Have every client wait for the turn that goes on for one that was lost just now."""
        for connection in self._ports.clients:
            self._parked[connection.link] = None

    def _replay(self, link: ClientLink, stream: StoredStream) -> None:
        if (link, stream.stream_id) in self._replaying:
            return
        link.behind.update((log_key(stream.stream_id), _replay_key(stream.stream_id)))
        self._replaying.add((link, stream.stream_id))
        link.outbox.follow(
            ChatReplay(
                link,
                stream,
                self._reader(stream),
                caught_up=self._ending_of_replay(link, stream),
            )
        )

    def forget(self, link: ClientLink) -> None:
        """Take note that a client has gone."""
        self._parked.pop(link, None)
        self._replaying = {each for each in self._replaying if each[0] is not link}

    def turn_streams(self, live: LiveTurn) -> None:
        """Offer the stream to the clients that wait for it."""
        parked, self._parked = self._parked, {}
        for link in parked:
            connection = self._ports.clients.of(link)
            if connection is not None:
                self._tell(connection, Offer(live.plan.request_id), probe_id=None)

    def turn_ended(self) -> None:
        """Let the clients go that wait for a turn, when none is left to come."""
        if self._continuing.wished():
            return
        if next(iter(self._turns), None) is None and self._ports.turns.recovering() is None:
            self.release_parked()

    def release_parked(self) -> None:
        """Tell the clients that wait that nothing comes."""
        parked, self._parked = self._parked, {}
        for link in parked:
            connection = self._ports.clients.of(link)
            if connection is not None:
                connection.send_frame(frames.stream_resume_none())

    def _situation(self, link: ClientLink) -> Situation:
        streaming = self._turns.streaming
        waiting = [live.plan.request_id for live in self._turns if live.phase == "accepted"]
        turns = self._ports.turns
        lost = turns.recovering()
        awaits_continuation = link in self._parked and self._continuing.wished()
        return Situation(
            streaming=None if streaming is None else streaming.plan.request_id,
            waiting=waiting,
            recovering=None if lost is None else lost.request_id,
            continues=self._continuing.due or awaits_continuation,
            orphan=turns.orphan(),
            newest=turns.newest(),
        )

    def _tell(self, connection: Connection, answer: Answer, *, probe_id: str | None) -> None:
        match answer:
            case Offer(request_id):
                stream = self._ports.log.of_request(request_id)
                if stream is not None and stream.status == "streaming":
                    connection.link.behind.add(log_key(stream.stream_id))
                connection.send_frame(
                    frames.stream_resuming(
                        request_id, probe_id=probe_id, goes_on_for=self._lost_before(request_id)
                    )
                )
            case Wait(request_id):
                self._parked[connection.link] = None
                connection.send_frame(frames.stream_pending(request_id, probe_id=probe_id))
            case Idle():
                connection.send_frame(frames.stream_resume_none(reason="idle", probe_id=probe_id))

    def _lost_before(self, request_id: str) -> Sequence[str]:
        """The requests that one goes on for, so that a client that has asked them knows."""
        turn = self._ports.turns.of_request(request_id)
        if turn is None or turn.trigger not in RECOVERING:
            return ()
        requests = self._ports.turns.requests_of(turn.recovery_root)
        return requests[: requests.index(request_id)] if request_id in requests else ()

    def _reader(self, stream: StoredStream) -> StreamReader:
        log, runs = self._ports.log, self._ports.runs
        run = runs.of_request(stream.request_id)
        return StreamReader(
            lambda after, limit: log.page(stream.stream_id, after=after, limit=limit),
            lambda after: [] if run is None else runs.milestones(run.run_id, after=after),
        )

    def _ending_of_replay(
        self, link: ClientLink, stream: StoredStream
    ) -> Callable[[], Sequence[str]]:
        def caught_up() -> Sequence[str]:
            self._replaying.discard((link, stream.stream_id))
            link.behind.discard(_replay_key(stream.stream_id))
            if any(
                live.plan.stream_id == stream.stream_id and live.phase != "ended" and not live.told
                for live in self._turns
            ):
                return [_replay_complete(stream.request_id, continuation=stream.continuation)]
            return self._end_of(stream.request_id)

        return caught_up

    def _send_end(self, connection: Connection, request_id: str) -> None:
        for frame in self._end_of(request_id):
            connection.send_frame(frame)

    def _end_of(self, request_id: str) -> Sequence[str]:
        """The frames that end a request that is over; who is sent them knows of a lost turn (D4).

        The calls that a lost or cancelled turn left open get their results first, at each replay,
        so that no page waits for them. After a continuation the transcript comes: pages show what
        goes on as a message of its own until then (PROTOCOL 4.7), and show nothing of a replay
        before it is complete.
        """
        turn = self._ports.turns.of_request(request_id)
        if turn is None or turn.outcome is None:
            return [frames.chat_response(request_id, body="", done=True, replay=True)]
        end = _end_of_turn(turn, replay=turn.outcome != "error")
        if turn.status == "orphaned":
            self._ports.turns.settle_orphans()
        results = self._results_of_open_calls(turn)
        if not turn.continuation:
            return [*results, end]
        whole = frames.transcript(self._ports.transcript.json())
        return [*results, _replay_complete(turn.request_id, continuation=True), whole, end]

    def _results_of_open_calls(self, turn: StoredTurn) -> Iterator[str]:
        """What the stored answer says of the calls that the turn had not finished."""
        for message in self._ports.transcript.some([turn.assistant_message_id]):
            for part in parts_of(message):
                if part.get("errorText") == NOT_FINISHED:
                    call_id = str(part["toolCallId"])
                    yield frames.chat_response(
                        turn.request_id,
                        body=chunks.chunk_body(chunks.tool_output_error(call_id, NOT_FINISHED)),
                        done=False,
                        continuation=turn.continuation,
                        replay=True,
                    )


def _replay_key(stream_id: str) -> str:
    """Notes on a client that its replay is under way, so that another instance can take it up."""
    return f"replay:{stream_id}"


def _replay_complete(request_id: str, *, continuation: bool) -> str:
    return frames.chat_response(
        request_id,
        body="",
        done=False,
        continuation=continuation,
        replay=True,
        replay_complete=True,
    )


def _end_of_turn(turn: StoredTurn, *, replay: bool) -> str:
    outcome = turn.outcome or "aborted"
    return terminal(
        turn.request_id,
        LastWord(outcome, turn.error_text),
        message_ids=turn.message_ids,
        continuation=turn.continuation,
        replay=replay,
    )
