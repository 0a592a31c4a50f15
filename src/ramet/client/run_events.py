"""Keeps the run events that come before anybody listens: they come once in a connection."""

import logging
from collections.abc import Callable

from ramet.client.listeners import Listeners
from ramet.core.json import JsonObject

_log = logging.getLogger("ramet.client")


class RunEvents:
    """Hands run events on; the first listener gets those that came before it, too."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._listeners: Listeners[JsonObject] = Listeners("run events")
        self._early: list[JsonObject] | None = []
        self._size = 0

    def add(self, listener: Callable[[JsonObject], object]) -> Callable[[], None]:
        """Call `listener` with what came already, if it is the first, and with what comes."""
        remove = self._listeners.add(listener)
        early, self._early = self._early, None
        for frame in early or ():
            listener(frame)
        return remove

    def take(self, frame: JsonObject, size: int) -> None:
        """Hand an event on, or keep it."""
        if self._early is None:
            self._listeners.tell(frame)
            return
        self._size += size
        if self._size > self._limit:
            self._early = None
            _log.warning(
                "More than %d bytes of run events came and nobody listened: they are dropped; "
                "make AgentToolEvents before the client connects",
                self._limit,
            )
            return
        self._early.append(frame)
