"""The open sockets of all clients: whose each is, and what waits while that agent opens."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from ramet.agent.build import overrides
from ramet.connections.link import ClientLink
from ramet.connections.outbox import TRY_AGAIN_LATER
from ramet.core.ids import Ids
from ramet.core.paths import AgentPath
from ramet.core.public_errors import public_text
from ramet.errors import NotRunning
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
    task: asyncio.Task[None] | None = None
    cls: type | None = None
    """The agent's class, once it has greeted the client."""
    left: tuple[int, str] | None = None
    """How the client has gone, while its agent is opened once more to take note of it."""


class Sockets:
    """Brings clients and instances together; a socket outlives the instance that it talks to."""

    def __init__(self, instances: Instances, ids: Ids) -> None:
        self._instances = instances
        self._ids = ids
        self._seats: dict[ClientLink, _Seat] = {}
        self._of_path: dict[AgentPath, dict[ClientLink, _Seat]] = {}
        """The same by path, in the order in which they came."""

    async def connect(self, path: AgentPath, link: ClientLink) -> None:
        """Open the agent and let it greet the client; raises what opening raises."""
        seat = self._seats[link] = _Seat(path, opening=True)
        self._of_path.setdefault(path, {})[link] = seat
        try:
            instance = await self._instances.opened(path)
            if link in self._seats:
                instance.fence.check()
                self._greet(link, instance)
        except BaseException:
            self._forget(link)
            raise
        if link in self._seats:
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
        else:
            self._start_reopening(link, seat)

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        """Let a client go; an agent that is not in memory is opened if it has to take note."""
        link.outbox.drop()
        seat = self._seats.get(link)
        if seat is not None and seat.instance is None and self._is_missed(seat):
            seat.left = (code, reason)
            self._start_reopening(link, seat)
            return
        self._forget(link)
        if seat is not None and seat.instance is not None:
            seat.instance.links.discard(link)
            if not seat.instance.fence.down:
                seat.instance.runtime.disconnect(link, code, reason)

    def instance_ended(self, instance: Instance, close_sockets: str | None) -> None:
        """Close the sockets of an instance that ended, or keep them for the next one."""
        for link in instance.links:
            seat = self._seats.get(link)
            if close_sockets is not None:
                self._close(link, close_sockets)
            elif seat is not None:
                seat.instance = None
        instance.links.clear()

    def show(self, instance: Instance) -> None:
        """Let a new instance send to the clients that an earlier one has greeted."""
        for link, _ in self._orphans(instance.path):
            instance.runtime.clients.add(link)

    def hand_over(self, instance: Instance) -> None:
        """Give an instance that is ready the clients that an earlier one has greeted."""
        for link, seat in self._orphans(instance.path):
            try:
                instance.runtime.adopt(link)
            except Exception as error:  # noqa: BLE001 - one client's trouble must not shut the agent
                self._give_up(link, seat, error)
            else:
                self._sit(link, seat, instance)

    def close_below(self, path: AgentPath, reason: str) -> None:
        """Close the sockets of an agent and of those below it, in memory or not."""
        for each in [other for other in self._of_path if path.contains(other)]:
            for link in tuple(self._of_path[each]):
                self._close(link, reason)

    def close_all(self, reason: str) -> None:
        """Close every socket."""
        for link in tuple(self._seats):
            self._close(link, reason)

    def drop_all(self) -> None:
        """Forget every client at once, as a crash does."""
        for link in tuple(self._seats):
            link.outbox.drop()
        self._seats.clear()
        self._of_path.clear()

    def _greet(self, link: ClientLink, instance: Instance) -> None:
        try:
            instance.runtime.connect(link)
        except BaseException:
            instance.runtime.clients.remove(link)
            raise

    def _is_missed(self, seat: _Seat) -> bool:
        """Whether the agent must hear of a client that goes while it is not in memory."""
        return seat.cls is not None and bool(seat.backlog or overrides(seat.cls, "on_close"))

    def _start_reopening(self, link: ClientLink, seat: _Seat) -> None:
        if not seat.opening:
            seat.opening = True
            seat.task = new_task(self._reopen(link, seat), name=f"reopen {seat.path}")

    async def _reopen(self, link: ClientLink, seat: _Seat) -> None:
        try:
            instance = await self._instances.opened(seat.path)
            while instance.fence.down and link in self._seats:
                instance = await self._instances.opened(seat.path)
        except Exception as error:  # noqa: BLE001 - the client is told, whatever kept the agent shut
            self._give_up(link, seat, error)

    def _give_up(self, link: ClientLink, seat: _Seat, error: Exception) -> None:
        if not isinstance(error, NotRunning):
            _log.warning("%s cannot be opened again", seat.path, exc_info=error)
        self._forget(link)
        link.outbox.close(SERVER_ERROR, public_text(error, self._ids)[:120])

    def _orphans(self, path: AgentPath) -> list[tuple[ClientLink, _Seat]]:
        """The clients whose agent is not in memory."""
        seats = self._of_path.get(path, {}).items()
        return [(k, seat) for k, seat in seats if seat.instance is None and seat.cls is not None]

    def _sit(self, link: ClientLink, seat: _Seat, instance: Instance) -> None:
        seat.instance, seat.opening, seat.task = instance, False, None
        seat.cls = instance.runtime.context.cls
        instance.links.add(link)
        backlog, seat.backlog, seat.backlog_size = seat.backlog, deque(), 0
        for message in backlog:
            self.receive(link, message)
        if seat.left is not None:
            code, reason = seat.left
            self.disconnect(link, code, reason)

    def _close(self, link: ClientLink, reason: str) -> None:
        self._forget(link)
        link.outbox.close(GOING_AWAY, reason)

    def _forget(self, link: ClientLink) -> None:
        seat = self._seats.pop(link, None)
        if seat is not None:
            group = self._of_path.get(seat.path, {})
            group.pop(link, None)
            if not group:
                self._of_path.pop(seat.path, None)

    def _deliver(self, instance: Instance, link: ClientLink, message: Message) -> None:
        try:
            instance.runtime.receive(link, message)
        except Exception as error:  # noqa: BLE001 - one frame's trouble must not end the connection
            if instance.fence.down:
                return
            instance.runtime.hooks.report(error)
            link.outbox.push(frames.ramet_error(public_text(error, self._ids)))
