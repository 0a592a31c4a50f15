"""A client's socket as the host keeps it: it outlives the instance that it talks to."""

from dataclasses import dataclass, field

from ramet.connections.outbox import Outbox
from ramet.core.http import Request
from ramet.core.json import JsonValue


@dataclass(slots=True, kw_only=True, eq=False)
class ClientLink:
    """One open socket with what is attached to it (compared by identity: ids may repeat)."""

    id: str
    """The connection id the client gave (`_pk`), else one made for it. Two sockets may share it."""
    request: Request
    """The request that opened the socket."""
    outbox: Outbox
    tags: tuple[str, ...] = ()
    readonly: bool = False
    silent: bool = False
    """Whether identity, state and MCP frames are kept from it."""
    state: JsonValue = None
    """What the agent attached with `Connection.set_state`."""
    behind: set[str] = field(default_factory=set)
    """Logs (runs, chat streams) whose replay has not caught up: their live frames are left out."""
