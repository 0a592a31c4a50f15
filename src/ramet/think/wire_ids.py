"""Tool call ids as clients see them: the provider's own, unless that one was used before (D8)."""

from collections.abc import Iterable
from typing import Protocol

from ramet.chat.overlap import DanglingCall
from ramet.core.ids import Ids


class UsedIds(Protocol):
    """Remembers which tool call ids an agent has used, across restarts."""

    def is_used(self, tool_call_id: str) -> bool:
        """Whether some call of the agent has this id on the wire."""
        ...


class IdSource(Protocol):
    """Decides what clients know tool calls by."""

    def assign(self, provider_id: str, tool_name: str) -> str:
        """The wire id for a new call."""
        ...


class ProviderIds:
    """Leaves the provider's ids as they are."""

    def assign(self, provider_id: str, tool_name: str) -> str:
        """The same id."""
        return provider_id


class WireIds:
    """Gives out the wire ids of one turn.

    Some providers count their calls anew in each response (`call_0`). Run ids, panels and message
    parts hang on the id, so a repeated one is replaced; the model still sees the provider's.
    """

    def __init__(self, used: UsedIds, ids: Ids, *, taken: Iterable[str] = ()) -> None:
        self._used = used
        self._ids = ids
        self._taken = set(taken)

    def assign(self, provider_id: str, tool_name: str) -> str:
        """The wire id for a new call; each one is given once."""
        wire_id = provider_id
        while not wire_id or wire_id in self._taken or self._used.is_used(wire_id):
            wire_id = f"{provider_id or 'call'}-{self._ids.url_safe(8)}"
        self._taken.add(wire_id)
        return wire_id


class ReissuedIds:
    """Gives out the ids of calls that were cut off again, to calls of the same tools in order."""

    def __init__(self, cut_off: Iterable[DanglingCall], others: IdSource) -> None:
        self._cut_off = list(cut_off)
        self._others = others

    def assign(self, provider_id: str, tool_name: str) -> str:
        """The id of the first call of the tool that was cut off, else another."""
        for call in self._cut_off:
            if call.tool_name == tool_name:
                self._cut_off.remove(call)
                return call.wire_id
        return self._others.assign(provider_id, tool_name)
