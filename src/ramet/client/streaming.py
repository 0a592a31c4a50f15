"""A call whose answer comes item by item."""

from collections.abc import Awaitable, Callable
from typing import Self

from ramet.client.buffer import Buffer
from ramet.client.settled import Settled
from ramet.core.json import AnyJson, JsonValue
from ramet.errors import ClientClosed


class StreamingCall:
    """Iterate over it for the items; `result` gives the last value. It is sent once.

    A connection that breaks ends it with `ConnectionLost`: what was missed does not come again.
    """

    def __init__(
        self,
        items: Buffer[JsonValue],
        answer: Settled[JsonValue],
        *,
        begin: Callable[[], Awaitable[None]],
        forget: Callable[[], None],
    ) -> None:
        self._items = items
        self._answer = answer
        self._begin = begin
        self._forget = forget
        self._begun = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyJson:
        await self._send_once()
        return await self._items.next()

    async def result(self) -> AnyJson:
        """The value that the stream ended with; items that nobody has read are dropped.

        Raises:
            RemoteCallFailed: The method failed.
            ConnectionLost: The connection broke before the end.
        """
        if not self._items.read:
            self._items.discard()
        await self._send_once()
        return await self._answer.wait()

    def close(self) -> None:
        """Take no more of it. The method goes on: the wire has no way to stop a call."""
        self._forget()
        self._items.discard()
        self._items.end()
        self._answer.fail(ClientClosed("The stream was closed before its end"))

    async def _send_once(self) -> None:
        if not self._begun:
            self._begun = True
            await self._begin()
