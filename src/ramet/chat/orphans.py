"""Ends turns that an earlier process left unfinished: what there is of answers is stored (D4)."""

from collections.abc import Sequence

from ramet.chat.partial import folded
from ramet.chat.ports import ChatPorts
from ramet.chat.settling import settled
from ramet.chat.turn import TurnOutcome
from ramet.chat.turn_store import StoredTurn, TurnStatus


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


def seal_unsettled(ports: ChatPorts) -> None:
    """Do the same for turns whose end could not be stored; raises while that is still so."""
    unsettled = ports.turns.unsettled
    if not unsettled:
        return
    with ports.transcript.changing():
        for turn in ports.turns.unfinished():
            if turn.turn_id in unsettled:
                _seal(ports, turn, outcome="error", status="ended")
        ports.context.database.after_commit(unsettled.clear)


def _seal(
    ports: ChatPorts,
    turn: StoredTurn,
    *,
    outcome: TurnOutcome = "aborted",
    status: TurnStatus = "orphaned",
) -> None:
    stream = ports.log.of_turn(turn.turn_id)
    if stream is not None:
        message = folded(ports, stream)[0].message()
        if message is not None:
            behind = turn.message_ids[-1] if turn.message_ids else None
            ports.transcript.put(settled(message), after=behind)
        ports.log.close(stream.stream_id, outcome)
    now = ports.context.clock.now_ms()
    ports.turns.end(turn.turn_id, outcome, now=now, status=status)
    ports.recovery.forget_asked(turn.turn_id)
