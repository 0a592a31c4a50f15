"""HTTP bodies that agents give piece by piece: made by the agent's own task, as they are asked for.

An open body keeps its agent in memory (D14), and ends with it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from ramet.core.http import Response
from ramet.host.instance import Instance


def kept_open(instance: Instance, response: Response) -> Response:
    """A response whose body, if it is made piece by piece, is tied to the instance that gave it."""
    if isinstance(response.content, bytes | str):
        return response
    return replace(response, content=HeldBody(instance, response.content))


class HeldBody(AsyncIterator[bytes]):
    """The pieces of a body; none is made before it is asked for.

    It ends with `InstanceGone` when the instance does. Whoever has it must close it.
    """

    def __init__(self, instance: Instance, pieces: AsyncIterator[bytes]) -> None:
        self._fence = instance.fence
        self._pieces = pieces
        self._piece: bytes | None = None
        self._asked = asyncio.Event()
        self._told = asyncio.Event()
        self._release = instance.held("an HTTP body is open")
        self._task = instance.tasks.run(self._pump(), name="HTTP body")
        self._task.add_done_callback(self._ended)

    async def __anext__(self) -> bytes:
        self._asked.set()
        while self._piece is None and not self._task.done():
            self._told.clear()
            await self._told.wait()
        self._fence.check()
        if self._piece is not None:
            piece, self._piece = self._piece, None
            return piece
        if not self._task.cancelled():
            self._task.result()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ask for no more pieces; the agent's iterator is closed."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _pump(self) -> None:
        try:
            await self._asked.wait()
            async for piece in self._pieces:
                self._asked.clear()
                self._piece = piece
                self._told.set()
                await self._asked.wait()
        finally:
            close = getattr(self._pieces, "aclose", None)
            if close is not None:
                await close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # taken note of: there may be nobody left who asks for a piece
        self._release()
        self._told.set()
