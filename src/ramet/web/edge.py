"""The ASGI application in front of a host: finds the agent, asks the hooks, hands over."""

import inspect
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from ramet.core.clock import Clock
from ramet.core.http import BeforeHook, Request, Response, Target
from ramet.core.paths import AgentPath
from ramet.web.addressing import Address, Addressing, Resolved, prefix_segments, raw_path_of
from ramet.web.origins import Origins
from ramet.web.ports import AgentHost
from ramet.web.refusals import (
    BAD_REQUEST,
    FORBIDDEN,
    Refusal,
    refusal_for,
    refusal_of,
    rejected,
)
from ramet.web.requests import RequestBody, request_of
from ramet.web.responses import Answer, sendable, status_of
from ramet.web.socket import FRAMES_EXTENSION, ClientSocket, send_close

TRANSPORT = "__agents_transport"
_CAPNWEB = "capnweb"

_FOREIGN = Refusal(status=FORBIDDEN, text="Origin not allowed")
_NO_CAPNWEB = Refusal(status=BAD_REQUEST, text="The transport capnweb is not supported")

Judged: TypeAlias = Request | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeOptions:
    """What an application configures about its edge."""

    prefix: str = "agents"
    origins: Origins = field(default_factory=Origins)
    on_before_connect: BeforeHook | None = None
    """Asked before a WebSocket is let through to its agent."""
    on_before_request: BeforeHook | None = None
    """Asked before an HTTP request is let through to its agent."""


class Edge:
    """Serves HTTP and WebSockets for the agents of one host."""

    def __init__(self, host: AgentHost, options: EdgeOptions) -> None:
        self._host = host
        self._options = options
        self._addressing = Addressing(
            prefix=prefix_segments(options.prefix),
            root_class=self._root_class,
            sub_class=host.classes.by_segment,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one WebSocket."""
        root_path = scope.get("root_path", "")
        resolved = self._addressing.resolve(raw_path_of(scope), root_path=root_path)
        if scope["type"] == "websocket":
            await self._serve_socket(resolved, scope, receive=receive, send=send)
        else:
            await self._serve_request(resolved, scope, receive=receive, send=send)

    async def _serve_request(
        self, resolved: Resolved, scope: Scope, *, receive: Receive, send: Send
    ) -> None:
        body = RequestBody(scope, receive)
        answer: Answer
        try:
            answer = await self._answer(resolved, scope, body)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the last place where an error can become an answer
            answer = refused(refusal_for(error, self._host.ids))
        headers = cors_headers(self._options.origins, scope)
        await sendable(answer, headers=headers, client_gone=body.client_gone)(scope, receive, send)

    async def _answer(self, resolved: Resolved, scope: Scope, body: RequestBody) -> Answer:
        if not isinstance(resolved, Address):
            return refused(refusal_of(resolved))
        if scope["method"] == "OPTIONS" and self._options.origins.shared:
            return Response()
        request = request_of(scope, rest=resolved.rest, body=body)
        judged = await self._ask(self._options.on_before_request, resolved.path, request)
        if isinstance(judged, Request):
            judged = await self._host.admit(resolved.path, judged)
        if isinstance(judged, Request):
            judged = await self._host.respond(resolved.path, judged)
        return _checked(judged)

    async def _serve_socket(
        self, resolved: Resolved, scope: Scope, *, receive: Receive, send: Send
    ) -> None:
        await receive()
        admitted: Request | Refusal
        try:
            admitted = await self._admit_socket(resolved, scope)
        except Exception as error:  # noqa: BLE001 - the last place where an error can become a close
            admitted = refusal_for(error, self._host.ids)
        if isinstance(admitted, Refusal) or not isinstance(resolved, Address):
            refusal = admitted if isinstance(admitted, Refusal) else _FOREIGN
            await refuse_socket(refusal, send, clock=self._host.clock)
            return
        await send({"type": "websocket.accept"})
        socket = ClientSocket(self._host, admitted, receive=receive, send=send)
        in_batches = FRAMES_EXTENSION in scope.get("extensions", {})
        await socket.run(resolved.path, in_batches=in_batches)

    async def _admit_socket(self, resolved: Resolved, scope: Scope) -> Request | Refusal:
        if not self._options.origins.allows_socket(
            _header(scope, "origin"), host=_header(scope, "host")
        ):
            return _FOREIGN
        if not isinstance(resolved, Address):
            return refusal_of(resolved)
        request = request_of(scope, rest=resolved.rest)
        if request.query.get(TRANSPORT) == _CAPNWEB:
            return _NO_CAPNWEB
        judged = await self._ask(self._options.on_before_connect, resolved.path, request)
        if not isinstance(judged, Request):
            return _rejection(judged, sub_agent=False)
        judged = await self._host.admit(resolved.path, judged)
        return judged if isinstance(judged, Request) else _rejection(judged, sub_agent=True)

    async def _ask(self, hook: BeforeHook | None, path: AgentPath, request: Request) -> Judged:
        if hook is None:
            return request
        leaf = path.leaf
        target = Target(cls=self._host.classes.class_of(leaf.class_name), name=leaf.name, path=path)
        verdict: object = hook(request, target)
        if inspect.isawaitable(verdict):
            verdict = await verdict
        if verdict is None:
            return request
        return verdict if isinstance(verdict, Request) else _checked(verdict)

    def _root_class(self, segment: str) -> str | None:
        name = self._host.classes.by_segment(segment)
        return name if name is not None and self._host.classes.is_root(name) else None


async def refuse(
    refusal: Refusal, *, asgi: tuple[Scope, Receive, Send], origins: Origins, clock: Clock
) -> None:
    """Answer any request or WebSocket with a refusal."""
    scope, receive, send = asgi
    if scope["type"] == "websocket":
        await receive()
        await refuse_socket(refusal, send, clock=clock)
        return
    response = sendable(
        refused(refusal),
        headers=cors_headers(origins, scope),
        client_gone=RequestBody(scope, receive).client_gone,
    )
    await response(scope, receive, send)


async def refuse_socket(refusal: Refusal, send: Send, *, clock: Clock) -> None:
    """Accept a WebSocket and close it: a browser cannot read why a handshake failed (D20)."""
    await send({"type": "websocket.accept"})
    await send_close(refusal.close, send, clock=clock)


def refused(refusal: Refusal) -> Response:
    """The HTTP answer of a refusal."""
    return Response(refusal.text, status=refusal.status)


def cors_headers(origins: Origins, scope: Scope) -> dict[str, str]:
    """What the answer to an HTTP request says about other origins."""
    asked = _header(scope, "access-control-request-headers")
    return dict(origins.headers(_header(scope, "origin"), asked_headers=asked))


def _rejection(answer: Answer, *, sub_agent: bool) -> Refusal:
    status = status_of(answer)
    return Refusal(status=status, text=rejected(status, sub_agent=sub_agent))


def _checked(answer: object) -> Answer:
    """What a hook or an agent gave, if it is an answer."""
    if isinstance(answer, Response | StarletteResponse):
        return answer
    raise TypeError(f"An answer is a ramet.Response, not {type(answer).__name__}")


def _header(scope: Scope, name: str) -> str | None:
    return HTTPConnection(scope).headers.get(name)
