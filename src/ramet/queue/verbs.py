"""What an agent can queue: the methods that `Agent` gains from this feature."""

from collections.abc import Callable
from typing import overload

from ramet.core.json import JsonValue
from ramet.core.options import RetryOptions
from ramet.queue.feature import Queue
from ramet.queue.records import QueueItem

_ALL = str(object())
"""Stands for no id; compared by identity, so that no text is taken for it."""


class QueueVerbs:
    """The queue methods of an agent."""

    _ramet_queue: Queue

    async def queue(
        self,
        method: Callable[..., object] | str,
        payload: object = None,
        *,
        retry: RetryOptions | None = None,
    ) -> str:
        """Have a method called soon with `(payload, item)`, as far as it takes arguments.

        Calls run one after another in the order in which they were queued, each at least once: what
        a crash leaves is called when the agent is opened again. One that fails for good goes to
        `on_error` and holds up no other. Returns the id of the item.

        Raises:
            MethodNotFound: This agent has no such method.
            InvalidArguments: `method` is something else, such as a function.
            NotJson: JSON cannot carry the payload.
            InvalidOptions: `retry` does not fit together with the options of the class.
        """
        return self._ramet_queue.add(method, payload, retry=retry)

    async def dequeue(self, id: str) -> bool:
        """Remove a queued call; False when there is none of that id. A running one goes on."""
        return self._ramet_queue.remove(id)

    async def dequeue_all(self) -> int:
        """Remove all queued calls; returns how many there were."""
        return self._ramet_queue.remove_all()

    async def dequeue_all_by_callback(self, method: Callable[..., object] | str) -> int:
        """Remove the queued calls of one method; returns how many there were."""
        return self._ramet_queue.remove_of_callback(method)

    @overload
    async def get_queue(self) -> list[QueueItem]: ...

    @overload
    async def get_queue(self, id: str) -> QueueItem | None: ...

    async def get_queue(self, id: str = _ALL) -> list[QueueItem] | QueueItem | None:
        """All queued calls, the next one first; with an id that one, or None without it."""
        return self._ramet_queue.all() if id is _ALL else self._ramet_queue.get(id)

    async def get_queues(self, key: str, value: JsonValue) -> list[QueueItem]:
        """The queued calls whose payload is an object with this value under this key."""
        return self._ramet_queue.matching(key, value)
