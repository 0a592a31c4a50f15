"""What an agent can do with its clients: the methods that `Agent` gains from this feature."""

from collections.abc import Container

from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.connections.outbox import Frame
from ramet.core.json import dumps


class ClientVerbs:
    """The client methods of an agent."""

    _ramet_clients: ClientSet

    def get_connections(self, tag: str | None = None) -> list[Connection]:
        """The open connections, those with a tag only when one is given."""
        return self._ramet_clients.tagged(tag)

    def broadcast(self, message: object, exclude: Container[str] = ()) -> None:
        """Send a message to every client but those whose connection ids are excluded.

        Text and bytes go as they are, anything else as JSON. Clients of sub-agents are not reached.
        """
        frame: Frame = message if isinstance(message, str | bytes) else dumps(message)
        self._ramet_clients.broadcast(frame, exclude=exclude)
