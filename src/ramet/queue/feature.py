"""The queue of one agent: methods called one after another, each at least once."""

from ramet.core.callbacks import callback_name
from ramet.core.current import CurrentConnection, current, working_for
from ramet.core.deliveries import Deliveries
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonValue
from ramet.core.listing import check_text
from ramet.core.options import RetryOptions
from ramet.core.payloads import dump_payload
from ramet.core.retry import Retrier, complete_retry, dump_retry
from ramet.queue.ports import RESUME_QUEUE, QueuePorts
from ramet.queue.records import QueueItem
from ramet.queue.store import QueueStore, StoredItem

RESUME_MS = 30_000
"""While something is queued the agent is woken no further away than this: what a crash costs."""
ID_LENGTH = 9

_ARGUMENTS = 2
"""A callback gets the payload and the item."""


class Queue:
    """What one agent has queued.

    One loop takes the items in their order. An item is removed after its callback has ended, so a
    crash in between runs it again: **at least once** (kill tests at `queue.executed`). What a crash
    leaves is taken up when the agent is opened (QK-013), and it is opened by a wake-up if nobody
    else does.
    """

    def __init__(self, ports: QueuePorts) -> None:
        self._ports = ports
        self._store = QueueStore(ports.database)
        self._deliveries = Deliveries(
            kind="queue",
            name=str(ports.path),
            agent=ports.agent,
            fence=ports.fence,
            events=ports.events,
            errors=ports.errors,
            retrier=Retrier(clock=ports.clock, ids=ports.ids),
            defaults=ports.options.retry,
        )
        self._flushing = False

    def start_up(self) -> None:
        """Nothing has to be noted before `on_start`."""

    async def resume(self) -> None:
        """Go on with what an earlier instance has left; after `on_start`."""
        await self.woken()

    async def woken(self) -> None:
        """Go on, and be woken again while something is queued; the handler `RESUME_QUEUE`."""
        if self._store.first() is not None:
            self._ports.wake(RESUME_QUEUE, self._ports.clock.now_ms() + RESUME_MS)
            self._flush_soon(None)

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may (D14)."""
        return "the queue is being worked off" if self._flushing else None

    def add(self, method: object, payload: object, *, retry: RetryOptions | None) -> str:
        """Have a method called soon; see `QueueVerbs.queue`."""
        self._ports.fence.check()
        callback = callback_name(self._ports.agent, method, gives=_ARGUMENTS)
        item = StoredItem(
            id=self._ports.ids.url_safe(ID_LENGTH),
            payload=dump_payload(payload, what=f"The payload of {callback}"),
            callback=callback,
            created_at=self._ports.clock.now_ms() // 1000,
            retry=dump_retry(complete_retry(retry, self._ports.options.retry)),
        )
        if not self._flushing:
            # What wakes may be in another file than the item, so it is written first (D6).
            self._ports.wake(RESUME_QUEUE, self._ports.clock.now_ms() + RESUME_MS)
        self._store.add(item)
        failpoint("queue.stored")
        self._deliveries.emit("create", item)
        found = current()
        self._flush_soon(found.connection if found else None)
        return item.id

    def get(self, id: str) -> QueueItem | None:
        """One item; None when there is none of that id."""
        check_text(id, what="The id of a queued call")
        item = self._store.get(id)
        return None if item is None else item.shown()

    def all(self) -> list[QueueItem]:
        """All items, the next one first."""
        return [item.shown() for item in self._store.all()]

    def matching(self, key: str, value: JsonValue) -> list[QueueItem]:
        """The items whose payload is an object that has a value under a key."""
        return [
            item
            for item in self.all()
            if isinstance(item.payload, dict)
            and key in item.payload
            and _same(item.payload[key], value)
        ]

    def remove(self, id: str) -> bool:
        """Remove an item; False when there is none of that id."""
        check_text(id, what="The id of a queued call")
        self._ports.fence.check()
        return self._store.remove(id)

    def remove_all(self) -> int:
        """Remove all items; returns how many."""
        self._ports.fence.check()
        return self._store.remove_all()

    def remove_of_callback(self, method: object) -> int:
        """Remove the items that call one method; returns how many."""
        self._ports.fence.check()
        name = method if isinstance(method, str) else getattr(method, "__name__", "")
        return self._store.remove_of_callback(name)

    def _flush_soon(self, connection: CurrentConnection | None) -> None:
        """Start the loop unless it runs; it works for the connection that started it (QU-004)."""
        if self._flushing or self._store.first() is None:
            return
        self._flushing = True
        self._ports.background.start(self._flush(connection), name="queue")

    async def _flush(self, connection: CurrentConnection | None) -> None:
        try:
            with working_for(self._ports.agent, connection):
                while (item := self._store.first()) is not None:
                    await self._deliveries.carry_out(item)
                    # Killed here or before, the item is still there and is carried out again.
                    failpoint("queue.executed")
                    self._store.remove(item.id)
                    failpoint("queue.removed")
            self._ports.wake(RESUME_QUEUE, None)
        finally:
            self._flushing = False


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
