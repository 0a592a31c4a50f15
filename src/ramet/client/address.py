"""The URLs of one agent, made of a server's URL and the names that lead to the agent."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from ramet.errors import InvalidAgentName, InvalidArguments, InvalidOptions
from ramet.protocol.names import kebab
from ramet.protocol.url import SubAddress, check_agent_name, encode_segment

_SOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP_SCHEMES = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    """Where one agent is reached."""

    socket_url: str
    """The WebSocket, with the query and the id of the connection."""
    transcript_url: str
    """The stored messages of a chat agent, over HTTP."""
    readable: str
    """What errors call the agent."""


def address_of(
    url: str,
    steps: Sequence[tuple[str, str]],
    *,
    prefix: str,
    query: Mapping[str, str | None],
    connection_id: str,
) -> AgentAddress:
    """Put together the URLs of an agent.

    Args:
        url: Where the server is: `http://…`, `https://…`, `ws://…` or `wss://…`, with the path
            under which the application is mounted, if any.
        steps: Class name and name of the root agent, then of each sub-agent on the way down.
        prefix: What the server puts before the agents; `agents` unless it was told otherwise.
        query: What the hooks of the server see; a value of None is left out.
        connection_id: Names the connection, on each reconnect the same.

    Raises:
        InvalidOptions: The URL is not that of a server.
        InvalidAgentName: A name that no agent can have, or a class without a name.
        InvalidArguments: A class or a name is no text, or a step is no pair of them.
    """
    base = _server(url)
    for step in steps:
        _check(step)
    (root_class, root_name), *below = steps
    segments = [
        *(encode_segment(segment) for segment in prefix.split("/") if segment),
        encode_segment(kebab(root_class)),
        encode_segment(root_name),
        *(SubAddress(cls_segment=kebab(cls), name=name).path for cls, name in below),
    ]
    path = "/".join([base.path.rstrip("/"), *segments])
    asked = {key: value for key, value in query.items() if value is not None}
    socket_query = urlencode({**asked, "_pk": connection_id})
    http = base._replace(scheme=_HTTP_SCHEMES[base.scheme])
    return AgentAddress(
        socket_url=urlunsplit(base._replace(path=path, query=socket_query)),
        transcript_url=urlunsplit(
            http._replace(path=f"{path}/get-messages", query=urlencode(asked))
        ),
        readable="/".join(f"{class_name}:{name}" for class_name, name in steps)
        + f" at {urlunsplit(http)}",
    )


def _server(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        known = parts.scheme in _SOCKET_SCHEMES and bool(parts.hostname)
        _ = parts.port
    except ValueError as error:
        raise InvalidOptions(f"{url!r} is not the URL of a server: {error}") from error
    if not known:
        raise InvalidOptions(
            f"{url!r} is not the URL of a server: write http://host:port, or https, ws or wss"
        )
    return SplitResult(_SOCKET_SCHEMES[parts.scheme], parts.netloc, parts.path.rstrip("/"), "", "")


def _check(step: object) -> None:
    match step:
        case (str(class_name), str(name)):
            _check_names(class_name, name)
        case _:
            raise InvalidArguments(
                "An agent is reached by its class and its name, which are texts, and by "
                f"sub=[(class, name), …], not by {reprlib.repr(step)}"
            )


def _check_names(class_name: str, name: str) -> None:
    if not class_name:
        raise InvalidAgentName("The class name of an agent must not be empty.")
    reason = check_agent_name(name)
    if reason is not None:
        raise InvalidAgentName(reason)
