"""The connections of one agent: who is there, and how all of them are told something."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial

from ramet.connections.connection import Connection
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Frame
from ramet.core.ports import Exit


class ClientSet:
    """The open connections of one agent, in the order they came."""

    def __init__(self, exit: Exit) -> None:
        self._exit = exit
        self._connections: dict[ClientLink, Connection] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._connections.values()))

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, link: ClientLink) -> Connection:
        """Take a socket in."""
        connection = Connection(link, self._exit)
        self._connections[link] = connection
        return connection

    def remove(self, link: ClientLink) -> Connection | None:
        """Let a socket go; None when it was not there."""
        return self._connections.pop(link, None)

    def of(self, link: ClientLink) -> Connection | None:
        """The connection of a socket."""
        return self._connections.get(link)

    def tagged(self, tag: str | None) -> list[Connection]:
        """The connections with a tag; all of them for None."""
        return [each for each in self if tag is None or tag in each.tags]

    def broadcast(self, frame: Frame, *, exclude: Container[str] = ()) -> None:
        """Send an application message to everybody but those with the excluded ids."""
        self._each(lambda link: link.outbox.push_after(frame), lambda link: link.id not in exclude)

    def broadcast_frame(
        self, frame: Frame, *, only: Callable[[ClientLink], bool] | None = None
    ) -> None:
        """Send an encoded frame, live, to the connections that `only` admits (all without it)."""
        self._each(lambda link: link.outbox.push(frame), only)

    def broadcast_log(
        self, frame: Frame, log: str, *, only: Callable[[ClientLink], bool] | None = None
    ) -> None:
        """Send a live frame of a log (run, chat stream), except where a replay will bring it."""
        links = [
            link
            for link in self._connections
            if log not in link.behind and (only is None or only(link))
        ]
        if links:
            self._exit.release(partial(_push, links, frame))

    def _each(
        self, deliver: Callable[[ClientLink], None], only: Callable[[ClientLink], bool] | None
    ) -> None:
        links = [link for link in self._connections if only is None or only(link)]
        if links:
            self._exit.release(lambda: _for_each(links, deliver))


def _push(links: Iterable[ClientLink], frame: Frame) -> None:
    for link in links:
        link.outbox.push(frame)


def _for_each(links: Iterable[ClientLink], deliver: Callable[[ClientLink], None]) -> None:
    for link in links:
        deliver(link)
