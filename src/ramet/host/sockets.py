"""The open sockets of all clients: whose each is, and what waits while that agent opens."""

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from ramet.connections.link import ClientLink
from ramet.connections.outbox import TRY_AGAIN_LATER
from ramet.core.ids import Ids
from ramet.core.paths import AgentPath
from ramet.core.public_errors import public_text
from ramet.host.instance import Instance
from ramet.host.instances import Instances
from ramet.host.tasks import new_task
from ramet.protocol import frames

GOING_AWAY = 1001
SERVER_ERROR = 1011
MOST_WAITING_BYTES = 32 * 2**20

Message: TypeAlias = str | bytes

_log = logging.getLogger("ramet.host")


@dataclass(slots=True, eq=False)
class _Seat:
    path: AgentPath
    instance: Instance | None = None
    backlog: deque[Message] = field(default_factory=deque)
    backlog_size: int = 0
    opening: bool = False


class Sockets:
    """Brings clients and instances together; a socket outlives the instance that it talks to."""

    def __init__(self, instances: Instances, ids: Ids) -> None:
        self._instances = instances
        self._ids = ids
        self._seats: dict[ClientLink, _Seat] = {}

    async def connect(self, path: AgentPath, link: ClientLink) -> None:
        """Open the agent and let it greet the client; raises what opening raises."""
        seat = _Seat(path, opening=True)
        self._seats[link] = seat
        try:
            instance = await self._instances.opened(path)
        except BaseException:
            self._seats.pop(link, None)
            raise
        if link in self._seats and not instance.fence.down:
            instance.runtime.connect(link)
            self._sit(link, seat, instance)

    def receive(self, link: ClientLink, message: Message) -> None:
        """Take a client's frame: the agent gets it now, or in order once it is open."""
        seat = self._seats.get(link)
        if seat is None:
            return
        if seat.instance is not None and not seat.opening:
            self._instances.touch(seat.instance)
            self._deliver(seat.instance, link, message)
            return
        seat.backlog.append(message)
        seat.backlog_size += len(message)
        if seat.backlog_size > MOST_WAITING_BYTES:
            link.outbox.close(TRY_AGAIN_LATER, "Too much at once: reconnect to go on")
        elif not seat.opening:
            seat.opening = True
            self._reopening = new_task(self._reopen(link, seat), name=f"reopen {seat.path}")

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        """Let a client go."""
        seat = self._seats.pop(link, None)
        link.outbox.drop()
        if seat is not None and seat.instance is not None:
            seat.instance.links.discard(link)
            if not seat.instance.fence.down:
                seat.instance.runtime.disconnect(link, code, reason)

    def instance_ended(self, instance: Instance, close_sockets: str | None) -> None:
        """Close the sockets of an instance that ended, or keep them for the next one."""
        for link in instance.links:
            seat = self._seats.get(link)
            if close_sockets is not None:
                self._seats.pop(link, None)
                link.outbox.close(GOING_AWAY, close_sockets)
            elif seat is not None:
                seat.instance = None
        instance.links.clear()

    def drop_all(self) -> None:
        """Forget every client at once, as a crash does."""
        for link in tuple(self._seats):
            link.outbox.drop()
        self._seats.clear()

    async def _reopen(self, link: ClientLink, seat: _Seat) -> None:
        try:
            instance = await self._instances.opened(seat.path)
        except Exception as error:  # noqa: BLE001 - the client is told, whatever kept the agent shut
            _log.warning("%s cannot be opened again", seat.path, exc_info=error)
            self._seats.pop(link, None)
            link.outbox.close(SERVER_ERROR, public_text(error, self._ids)[:120])
            return
        if link in self._seats and not instance.fence.down:
            instance.runtime.adopt(link)
            self._sit(link, seat, instance)

    def _sit(self, link: ClientLink, seat: _Seat, instance: Instance) -> None:
        seat.instance, seat.opening = instance, False
        instance.links.add(link)
        backlog, seat.backlog, seat.backlog_size = seat.backlog, deque(), 0
        for message in backlog:
            self._deliver(instance, link, message)

    def _deliver(self, instance: Instance, link: ClientLink, message: Message) -> None:
        try:
            instance.runtime.receive(link, message)
        except Exception as error:  # noqa: BLE001 - one frame's trouble must not end the connection
            if instance.fence.down:
                return
            instance.runtime.hooks.report(error)
            link.outbox.push(frames.ramet_error(public_text(error, self._ids)))
