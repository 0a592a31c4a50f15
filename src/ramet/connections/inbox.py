"""Sorts a client's frames to the features that asked for them; nothing here waits (D13, D25)."""

from collections.abc import Callable
from typing import TypeVar

from ramet.connections.connection import Connection
from ramet.protocol import frames, types
from ramet.protocol.incoming import Application, Incoming, Malformed, parse_frame

Kind = TypeVar("Kind", bound=Incoming)


class Inbox:
    """One handler for each kind of frame; what nobody takes goes to the application."""

    def __init__(self, application: Callable[[Connection, str], None]) -> None:
        self._application = application
        self._handlers: dict[type, Callable[[Connection, object], None]] = {}

    def on(self, kind: type[Kind], handler: Callable[[Connection, Kind], None]) -> None:
        """Hand frames of a kind to `handler`, which starts tasks for what takes long."""

        def checked(connection: Connection, frame: object) -> None:
            if isinstance(frame, kind):
                handler(connection, frame)

        self._handlers[kind] = checked

    def receive(self, connection: Connection, text: str) -> None:
        """Take one text frame."""
        frame = parse_frame(text)
        if isinstance(frame, Malformed):
            _refuse(connection, frame)
            return
        handler = self._handlers.get(type(frame))
        if handler is None or isinstance(frame, Application):
            self._application(connection, text)
        else:
            handler(connection, frame)


def _refuse(connection: Connection, frame: Malformed) -> None:
    """Answer a frame of a known type with wrong fields; the connection stays."""
    if frame.type == types.STATE:
        connection.send_frame(frames.state_error(frame.reason))
    elif frame.type == types.CHAT_REQUEST and frame.id is not None:
        connection.send_frame(
            frames.chat_response(
                frame.id, body=frame.reason, done=True, error=True, outcome="error"
            )
        )
    else:
        connection.send_frame(frames.ramet_error(frame.reason))
