"""Makes the requests that agents see out of what the server hands over."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Receive, Scope

from ramet.core.http import Request

CONNECTION_ID = "_pk"
_MULTIPLE = {"cookie": "; "}


class RequestBody:
    """The body of one HTTP request, piece by piece, and whether its client is still there."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._started = False
        self._read = asyncio.Event()
        if _has_no_body(scope):
            self._read.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """The pieces as they come; a second reading gives nothing.

        Raises:
            ClientDisconnect: The client went away before it had sent everything.
        """
        if self._started:
            return
        self._started = True
        more = not self._read.is_set()
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if not more:
                self._read.set()
            if piece := message.get("body", b""):
                yield piece

    async def client_gone(self) -> None:
        """Return when the client has gone away; never while its body is still to be read."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            continue


def request_of(scope: Scope, *, rest: str, body: RequestBody | None = None) -> Request:
    """The request of an HTTP or WebSocket scope; `rest` is the path that is left for the agent."""
    connection = HTTPConnection(scope)
    request = Request(
        method=scope.get("method", "GET"),
        url=str(connection.url),
        path=rest,
        query=dict(connection.query_params),
        headers=_headers(connection),
    )
    return request if body is None else request.replace(body_stream=body.stream)


def _headers(connection: HTTPConnection) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in connection.headers.items():
        known = headers.get(name)
        headers[name] = value if known is None else known + _MULTIPLE.get(name, ", ") + value
    return headers


def _has_no_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return not names & {b"content-length", b"transfer-encoding"}
