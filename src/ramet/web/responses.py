"""Turns what an agent or a hook answered into something that can be sent to the client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.responses import Response as StarletteResponse
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ramet.core.http import Response

Answer: TypeAlias = Response | StarletteResponse
ClientGone: TypeAlias = Callable[[], Awaitable[None]]


def status_of(answer: Answer) -> int:
    """The HTTP status of an answer."""
    return answer.status if isinstance(answer, Response) else answer.status_code


def sendable(
    answer: Answer, *, headers: Mapping[str, str], client_gone: ClientGone
) -> StarletteResponse:
    """An answer ready to be sent, with `headers` on top of its own."""
    response = answer if isinstance(answer, StarletteResponse) else _converted(answer, client_gone)
    for name, value in headers.items():
        if name == "vary":
            response.headers.add_vary_header(value)
        else:
            response.headers[name] = value
    return response


def _converted(answer: Response, client_gone: ClientGone) -> StarletteResponse:
    content = answer.content
    if isinstance(content, bytes | str):
        media_type = "text/plain" if isinstance(content, str) else None
        return StarletteResponse(
            content, status_code=answer.status, headers=answer.headers, media_type=media_type
        )
    return StreamedAnswer(answer, content=content, client_gone=client_gone)


class StreamedAnswer(StreamingResponse):
    """A body that is sent as it comes, until it ends or the client leaves."""

    def __init__(
        self, answer: Response, *, content: AsyncIterator[bytes], client_gone: ClientGone
    ) -> None:
        super().__init__(content, status_code=answer.status, headers=answer.headers)
        self._content = content
        self._client_gone = client_gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and the pieces; the iterator is closed in any case."""
        head = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await _deliver(send, {"type": "http.response.start", **head})
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send_pieces(send))
                watching = tasks.create_task(self._until_gone(sending))
                sending.add_done_callback(lambda _: watching.cancel())
        finally:
            close = getattr(self._content, "aclose", None)
            if close is not None:
                await close()

    async def _send_pieces(self, send: Send) -> None:
        async for piece in self._content:
            if not await _deliver(send, _piece(piece, more=True)):
                return
        await _deliver(send, _piece(b"", more=False))

    async def _until_gone(self, sending: asyncio.Task[None]) -> None:
        await self._client_gone()
        sending.cancel()


async def _deliver(send: Send, message: Message) -> bool:
    """Send a message; False when there is nobody left to take it."""
    try:
        await send(message)
    except OSError:
        return False
    return True


def _piece(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
