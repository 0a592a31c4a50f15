"""The stored chunks of one run in pages: read at once where possible, else asked of the child."""

from collections import deque
from collections.abc import Callable, Sequence

from ramet.agent_tools.children import Child, in_time
from ramet.agent_tools.ports import AgentToolPorts
from ramet.agent_tools.records import StoredChunk

PAGE_BYTES = 64 * 1024
MOST_AT_ONCE = 512


class ChunkPages:
    """Gives the chunks of one run in order; what the child has lost is passed over (AT-137)."""

    def __init__(self, ports: AgentToolPorts, child: Child, *, arrived: Callable[[], None]) -> None:
        """Read the chunks of `child`; `arrived` is called when what it was asked for is there."""
        self._ports = ports
        self._child = child
        self._arrived = arrived
        self._chunks: deque[StoredChunk] = deque()
        self._fetching = False
        self._ended_at: int | None = None

    def take(self, first: int, bound: float) -> Sequence[StoredChunk] | None:
        """The next chunks from index `first` on and below `bound`.

        Empty when there are none; None when they are being fetched.
        """
        while self._chunks and self._chunks[0].sequence < first:
            self._chunks.popleft()
        if not self._chunks and not self._read(first):
            return None
        page: list[StoredChunk] = []
        size = 0
        while self._chunks and self._chunks[0].sequence < bound and size < PAGE_BYTES:
            chunk = self._chunks.popleft()
            size += len(chunk.body)
            page.append(chunk)
        return page

    def _read(self, first: int) -> bool:
        """Read on; False when the child has to be asked, which then is under way."""
        if self._fetching:
            return False
        if self._ended_at == first:
            self._ended_at = None
            return True
        items = self._stored(first - 1)
        if items is None:
            self._fetching = True
            self._ports.background.start(self._fetch(first), name=f"read {self._child.run_id}")
            return False
        self._keep(items, first)
        return True

    def _stored(self, after: int) -> Sequence[StoredChunk] | None:
        try:
            return self._ports.chunks.read(
                self._child.path, self._child.run_id, after=after, limit=MOST_AT_ONCE
            )
        except Exception as error:  # noqa: BLE001 - a file that cannot be read must not stop the replay
            self._ports.errors.report(error)
            return ()

    async def _fetch(self, first: int) -> None:
        try:
            async with in_time(self._ports.clock):
                items = await self._child.chunks(first - 1)
            self._keep(items, first)
        except Exception as error:  # noqa: BLE001 - a child that cannot be read must not stop the replay
            self._ports.fence.check()
            self._ports.errors.report(error)
        self._fetching = False
        if not self._chunks:
            self._ended_at = first
        self._arrived()

    def _keep(self, items: Sequence[StoredChunk], first: int) -> None:
        self._chunks.extend(
            item for item in items if item.kind == "chunk" and item.sequence >= first
        )
