"""Ends turns that an earlier process left unfinished: what there is of answers is stored (D4)."""

from collections.abc import Sequence

from ramet.chat.answer import Answer
from ramet.chat.ports import ChatPorts
from ramet.chat.settling import settled
from ramet.chat.stream_log import StoredStream
from ramet.chat.stream_reader import StreamReader
from ramet.chat.turn import Message
from ramet.chat.turn_store import StoredTurn
from ramet.core.json import loads_object


def seal_orphans(ports: ChatPorts) -> Sequence[StoredTurn]:
    """Store the partial answers of lost turns and record their end; gives the turns.

    They stay on offer until a client has been told, or a newer turn begins. Killed in the middle,
    it is done again: it is one commit.
    """
    orphans = ports.turns.unfinished()
    if not orphans:
        return orphans
    with ports.transcript.changing():
        for turn in orphans:
            _seal(ports, turn)
    return orphans


def _seal(ports: ChatPorts, turn: StoredTurn) -> None:
    stream = ports.log.of_turn(turn.turn_id)
    if stream is not None:
        message = _folded(ports, stream)
        if message is not None:
            behind = turn.message_ids[-1] if turn.message_ids else None
            ports.transcript.put(settled(message), after=behind)
        ports.log.close(stream.stream_id, "aborted")
    now = ports.context.clock.now_ms()
    ports.turns.end(turn.turn_id, "aborted", now=now, status="orphaned")


def _folded(ports: ChatPorts, stream: StoredStream) -> Message | None:
    stored = ports.transcript.some([stream.message_id]) if stream.continuation else []
    answer = Answer(
        stream.message_id,
        continuation=stream.continuation,
        extends=stored[0] if stored else None,
    )
    run = ports.runs.of_request(stream.request_id)
    reader = StreamReader(
        lambda after, limit: ports.log.page(stream.stream_id, after=after, limit=limit),
        lambda after: [] if run is None else ports.runs.milestones(run.run_id, after=after),
    )
    while not reader.at_end:
        for item in reader.next_page():
            chunk = loads_object(item.body)
            if chunk is not None:
                answer.add(chunk)
    return answer.message()
