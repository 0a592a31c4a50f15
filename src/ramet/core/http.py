"""Requests and responses as agents see them; the web edge converts to and from these."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ramet.core.json import JsonValue, loads
from ramet.core.paths import AgentPath

LEAST_STATUS = 200
MOST_STATUS = 599
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

Body: TypeAlias = Callable[[], AsyncIterator[bytes]]


async def _no_body() -> AsyncIterator[bytes]:
    empty: tuple[bytes, ...] = ()
    for piece in empty:
        yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request, or the one that opened a WebSocket.

    Header names are lower case. `path` is the decoded part that the addressed agent was not found
    by ("/get-messages"); `query` holds the last value of each parameter.
    """

    method: str = "GET"
    url: str = ""
    path: str = "/"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body_stream: Body = _no_body

    def replace(self, **changes: object) -> "Request":
        """A copy with some fields changed; to change the body give `body_stream`."""
        return replace(self, **changes)  # type: ignore[arg-type] # names are checked at run time

    def stream(self) -> AsyncIterator[bytes]:
        """The body, piece by piece; it can be read once."""
        return self.body_stream()

    async def body(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.stream()])

    async def json(self) -> JsonValue:
        """The whole body as JSON; raises `ramet.NotJson` when it is not."""
        return loads(await self.body())


@dataclass(frozen=True, slots=True)
class Response:
    """What an agent answers over HTTP.

    `content` may be bytes, text, or an async iterator of bytes that is sent as it comes.
    """

    content: bytes | str | AsyncIterator[bytes] = b""
    status: int = field(default=200, kw_only=True)
    """From 200 to 599; anything else is a `ValueError`."""
    headers: Mapping[str, str] | None = field(default=None, kw_only=True)
    """Names and values of one line each, else a `ValueError`."""

    def __post_init__(self) -> None:
        """Refuse here what no server could send, so that the traceback shows who made it."""
        if not LEAST_STATUS <= self.status <= MOST_STATUS:
            raise ValueError(f"The status of a Response is 200 to 599, not {self.status!r}")
        for name, value in (self.headers or {}).items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"The header {name!r} of a Response cannot be sent: {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a request is meant for, as access hooks are told."""

    cls: type
    """The agent class."""
    name: str
    """The agent's own name."""
    path: AgentPath
    """Where it stands."""

    @property
    def class_name(self) -> str:
        """The name the class is registered under."""
        return self.path.leaf.class_name


Verdict: TypeAlias = Request | Response | None
"""What an access hook says: None goes on, a Request goes on changed, a Response refuses."""

BeforeHook: TypeAlias = Callable[[Request, Target], Verdict | Awaitable[Verdict]]
