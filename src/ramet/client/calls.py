"""Calls of methods over the wire: sent once, answered once, failed when nobody can answer."""

import asyncio
from collections.abc import Sequence

from ramet.client.buffer import Buffer
from ramet.client.checked import checked_call
from ramet.client.link import Link
from ramet.client.options import ClientOptions
from ramet.client.ports import SocketClosed
from ramet.client.settled import Settled
from ramet.client.streaming import StreamingCall
from ramet.core.json import JsonObject, JsonValue, dumps, text_at
from ramet.errors import CallTimedOut, ClientClosed, ClientError, ConnectionLost, RemoteCallFailed
from ramet.protocol import types

_ID_LENGTH = 12
_NO_TEXT = "The server answered with an error and said nothing"


class _Pending:
    """A call that has no answer yet."""

    def __init__(self, call_id: str, method: str, args: Sequence[object]) -> None:
        self.id = call_id
        self.method = method
        given = checked_call(method, args)
        self.text = dumps({"type": types.RPC, "id": call_id, "method": method, "args": given})
        self.answer: Settled[JsonValue] = Settled()
        self.items: Buffer[JsonValue] | None = None
        self.sent = False

    def fail(self, error: Exception) -> None:
        self.answer.fail(error)
        if self.items is not None:
            self.items.end(error)


class Calls:
    """The calls of one client."""

    def __init__(self, link: Link, options: ClientOptions) -> None:
        self._link = link
        self._options = options
        self._pending: dict[str, _Pending] = {}

    async def call(
        self, method: str, args: Sequence[object], *, seconds: float | None
    ) -> JsonValue:
        """Call a method and wait for what it returns, for ever without a number of seconds."""
        pending = self._new(method, args)
        self._pending[pending.id] = pending
        try:
            async with self._options.clock.timeout(seconds):
                await self._send(pending)
                return await pending.answer.wait()
        except TimeoutError as error:
            said = (
                f"gave no answer within {seconds:g} s; it may still run"
                if pending.sent
                else f"was not sent: there was no connection for {seconds:g} s"
            )
            raise CallTimedOut(f"{method!r} {said}") from error
        finally:
            self._pending.pop(pending.id, None)

    def stream(self, method: str, args: Sequence[object]) -> StreamingCall:
        """Make a call whose answer is read item by item; it is sent when reading begins."""
        pending = self._new(method, args)
        items = Buffer[JsonValue](self._options.max_buffered_bytes, f"The stream of {method!r}")
        pending.items = items

        async def begin() -> None:
            self._pending[pending.id] = pending
            try:
                await self._send(pending)
            except ClientError as error:
                forget()
                pending.fail(error)
            except asyncio.CancelledError:
                forget()
                pending.fail(ClientClosed(f"{method!r} was cancelled while it was sent"))
                raise

        def forget() -> None:
            self._pending.pop(pending.id, None)

        return StreamingCall(items, pending.answer, begin=begin, forget=forget)

    def take(self, frame: JsonObject, size: int) -> None:
        """Take an `rpc` frame; one that nobody waits for is dropped."""
        pending = self._pending.get(text_at(frame, "id") or "")
        if pending is None:
            return
        if frame.get("success") is not True:
            pending.fail(RemoteCallFailed(text_at(frame, "error") or _NO_TEXT))
        elif frame.get("done") is not False:
            pending.answer.succeed(frame.get("result"))
            if pending.items is not None:
                pending.items.end()
        else:
            if pending.items is not None:
                pending.items.put(frame.get("result"), size)
            return
        self._pending.pop(pending.id, None)

    def lost(self, error: ClientError) -> None:
        """Fail what was sent on a socket that has gone; what was not sent yet goes on waiting."""
        for pending in tuple(self._pending.values()):
            if pending.sent:
                pending.fail(_unanswered(pending.method, error))
                self._pending.pop(pending.id, None)

    def over(self, error: ClientError) -> None:
        """Fail everything: no socket will come."""
        self.lost(error)
        for pending in self._pending.values():
            pending.fail(error)
        self._pending.clear()

    def _new(self, method: str, args: Sequence[object]) -> _Pending:
        return _Pending(self._options.ids.url_safe(_ID_LENGTH), method, args)

    async def _send(self, pending: _Pending) -> None:
        socket = await self._link.socket()
        pending.sent = True
        try:
            await socket.send(pending.text)
        except SocketClosed as error:
            lost = ConnectionLost("the connection broke while it was sent")
            raise _unanswered(pending.method, lost) from error


def _unanswered(method: str, error: ClientError) -> ConnectionLost:
    return ConnectionLost(f"{method!r} got no answer and may have run: {error}")
