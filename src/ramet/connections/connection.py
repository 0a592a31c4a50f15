"""A client's connection as an agent sees it."""

from collections.abc import Mapping

from ramet.connections.link import ClientLink
from ramet.connections.outbox import Frame
from ramet.core.json import JsonValue, dumps, to_json
from ramet.core.ports import Exit

NORMAL_CLOSE = 1000
LONGEST_REASON = 123
"""Bytes that a close frame has room for (RFC 6455, 5.5)."""
_CLOSE_CODES = frozenset({1000, 1001, 1008, 1011, 1013})


class Connection:
    """One client of one agent; what it carries survives the agent's eviction, not the socket."""

    def __init__(self, link: ClientLink, exit: Exit) -> None:
        self.link = link
        self._exit = exit

    @property
    def id(self) -> str:
        """The id that the client chose, or that was made for it; stable over its reconnects."""
        return self.link.id

    @property
    def uri(self) -> str:
        """The URL that the client connected to."""
        return self.link.request.url

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters that the client connected with."""
        return self.link.request.query

    @property
    def tags(self) -> tuple[str, ...]:
        """The connection's id and what `get_connection_tags` gave."""
        return self.link.tags

    @property
    def readonly(self) -> bool:
        """Whether the client may not change the agent's state; may be set."""
        return self.link.readonly

    @readonly.setter
    def readonly(self, value: bool) -> None:
        self.link.readonly = value

    @property
    def silent(self) -> bool:
        """Whether protocol frames (identity, state, MCP) are kept from the client."""
        return self.link.silent

    @property
    def state(self) -> JsonValue:
        """What `set_state` attached; None at first."""
        return self.link.state

    def set_state(self, value: object) -> None:
        """Attach a JSON value to the connection, in place of the one before."""
        self.link.state = to_json(value)

    def send(self, message: object) -> None:
        """Send a message: text and bytes as they are, anything else as JSON.

        Returns at once; a client too slow to take it is dropped. Frames sent from `on_connect`
        follow the replay of the agent's runs.
        """
        frame: Frame = message if isinstance(message, str | bytes) else dumps(message)
        self._exit.release(lambda: self.link.outbox.push_after(frame))

    def send_frame(self, frame: Frame) -> None:
        """Send an encoded frame at once, ahead of replays."""
        self._exit.release(lambda: self.link.outbox.push(frame))

    def close(self, code: int = NORMAL_CLOSE, reason: str = "") -> None:
        """Close the connection after what was sent already.

        Raises:
            ValueError: The code is none that an application may close with (1000, 1001, 1008, 1011,
                1013, 3000 to 4999), or the reason has more than 123 bytes.
        """
        if code not in _CLOSE_CODES and not 3000 <= code <= 4999:
            raise ValueError(f"{code!r} is no code to close a WebSocket with")
        if len(reason.encode()) > LONGEST_REASON:
            raise ValueError(f"A close reason has at most {LONGEST_REASON} bytes")
        self._exit.release(lambda: self.link.outbox.close(code, reason))
