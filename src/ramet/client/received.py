"""Which chunks of an answer are new: each is given on once, however often it is sent again."""

from collections.abc import Sequence

from ramet.core.json import loads_object
from ramet.protocol import chunks


class Received:
    """The chunks of one answer, over reconnects and recoveries.

    A stored chunk has a number, and a replay begins at 0 again; what is known already is dropped.
    The turn that goes on for a lost one begins with the same chunks, unless it answers anew: then
    all of its chunks are new, from its `start` on.
    """

    def __init__(self) -> None:
        self._known: list[int] = []
        """A hash of each numbered chunk."""
        self._held: list[str] | None = None
        """What of another stream has repeated the known chunks so far."""
        self._unnumbered: set[str] = set()
        self._count = 0
        """The chunks from a server that numbers none."""
        self._replayed = 0

    @property
    def any(self) -> bool:
        """Whether anything came."""
        return bool(self._known or self._count)

    def replay_begins(self) -> None:
        """Note that the stored chunks come again from the first."""
        self._replayed = 0

    def another_stream_begins(self) -> None:
        """Note that the chunks of another turn come, which may repeat those that are known."""
        self._held = []
        self.replay_begins()

    def new(self, body: str, *, seq: int | None, replay: bool) -> Sequence[str]:
        """The bodies to give on now that this one came."""
        if seq is None:
            return [body] if self._is_new_unnumbered(body, replay=replay) else []
        if self._held is not None:
            return self._joined(self._held, body, seq)
        if seq < len(self._known):
            return []
        self._note(body, seq)
        return [body]

    def _joined(self, held: list[str], body: str, seq: int) -> Sequence[str]:
        """Hold back what repeats the known chunks; give all of it when it turns out to differ."""
        if seq == 0:
            held.clear()
        held.append(body)
        if seq < len(self._known) and self._known[seq] == hash(body):
            return []
        self._held = None
        if seq >= len(self._known):
            self._note(body, seq)
            return [body]
        self._known.clear()
        for number, each in enumerate(held):
            self._note(each, number)
        return held

    def _note(self, body: str, seq: int) -> None:
        self._known.extend([0] * (seq - len(self._known)))
        self._known.append(hash(body))

    def _is_new_unnumbered(self, body: str, *, replay: bool) -> bool:
        if not self._known:
            return self._is_next(replay=replay)
        key = _milestone_key(body) or (body if replay else None)
        if key is None:
            return True
        known = key in self._unnumbered
        self._unnumbered.add(key)
        return not known

    def _is_next(self, *, replay: bool) -> bool:
        """Whether a chunk is new where the server numbers none: by its place in the replay."""
        if replay:
            self._replayed += 1
            if self._replayed <= self._count:
                return False
        self._count += 1
        return True


def _milestone_key(body: str) -> str | None:
    if chunks.kind_of_body(body) != "milestone":
        return None
    chunk = loads_object(body)
    data = chunk.get("data") if chunk else None
    return f"milestone {data.get('sequence')}" if isinstance(data, dict) else None
