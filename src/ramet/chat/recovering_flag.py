"""Tells clients that an interrupted answer will go on, and when it no longer will (CR-024)."""

from dataclasses import dataclass
from typing import Final

from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.core.clock import Clock
from ramet.protocol import frames

STALE_SECONDS: Final = 900.0
"""A flag that is older is not told any more."""


@dataclass(frozen=True, slots=True)
class _Raised:
    request_id: str
    since: float


class RecoveringFlag:
    """Which lost turns are being taken up now."""

    def __init__(self, clients: ClientSet, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock
        self._raised: dict[str, _Raised] = {}

    def __bool__(self) -> bool:
        return bool(self._raised)

    def on(self, root: str, request_id: str) -> None:
        """Note that a turn will go on; clients are told of the first."""
        first = not self._raised
        self._raised[root] = _Raised(request_id, self._clock.monotonic())
        if first:
            self._clients.broadcast_frame(frames.chat_recovering(recovering=True, id=request_id))

    def off(self, root: str) -> None:
        """Note that a turn has its outcome; clients are told of the last."""
        lowered = self._raised.pop(root, None)
        if lowered is not None and not self._raised:
            self._clients.broadcast_frame(
                frames.chat_recovering(recovering=False, id=lowered.request_id)
            )

    def clear(self) -> None:
        """Note that nothing will go on."""
        for root in tuple(self._raised):
            self.off(root)

    def tell(self, connection: Connection) -> None:
        """Tell one client, if there is something that goes on."""
        now = self._clock.monotonic()
        fresh = [each for each in self._raised.values() if now - each.since < STALE_SECONDS]
        if fresh:
            connection.send_frame(frames.chat_recovering(recovering=True, id=fresh[0].request_id))
