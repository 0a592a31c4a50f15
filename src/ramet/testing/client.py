"""An in-memory client that speaks the wire, for tests without a socket."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ramet.connections.link import ClientLink
from ramet.connections.outbox import Close
from ramet.core.json import dumps, loads_object
from ramet.host.host import Host

Frame: TypeAlias = dict[str, Any]
"""A frame of the wire, as JSON has it."""


class TestClient:
    """A connected client: sends frames and keeps every frame that it was sent."""

    __test__ = False

    def __init__(self, host: Host, link: ClientLink, settle: Callable[[], Awaitable[None]]) -> None:
        self.link = link
        self._host = host
        self._settle = settle
        self.frames: list[Frame] = []
        """Every JSON frame received, in order."""
        self.texts: list[str] = []
        """The same frames as they came, with those that are no JSON objects."""
        self.closed: Close | None = None
        """How the server closed the connection; None while it is open."""
        self.reading = True
        """Set to False to stop taking frames, as a stalled client does."""

    @property
    def id(self) -> str:
        """The connection id."""
        return self.link.id

    async def send(self, frame: Frame | str | bytes) -> None:
        """Send a frame and let the agent work until it has nothing left to do."""
        message = frame if isinstance(frame, str | bytes) else dumps(frame)
        self._host.receive(self.link, message)
        await self._settle()

    def read(self) -> bool:
        """Take the frames that wait; whether there were any."""
        if not self.reading:
            return False
        took = False
        while self.closed is None and (batch := self.link.outbox.take_now()):
            took = True
            for item in batch:
                self._take(item)
        return took

    async def wait_for(self, wanted: Callable[[Frame], bool]) -> Frame:
        """The first frame, received already or now, that is wanted.

        Raises:
            AssertionError: Nothing moves any more and no such frame came.
        """
        await self._settle()
        found = next((frame for frame in self.frames if wanted(frame)), None)
        assert found is not None, f"No such frame among {[f.get('type') for f in self.frames]}"
        return found

    def of_type(self, frame_type: str) -> list[Frame]:
        """The frames received so far of one type."""
        return [frame for frame in self.frames if frame.get("type") == frame_type]

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection from the client's side."""
        self._host.disconnect(self.link, code, reason)
        self.closed = self.closed or Close(code, reason)
        await self._settle()

    def _take(self, item: str | bytes | Close) -> None:
        if isinstance(item, Close):
            self.closed = item
            self._host.disconnect(self.link, item.code, item.reason)
            return
        text = item if isinstance(item, str) else item.decode(errors="replace")
        self.texts.append(text)
        frame = loads_object(text)
        if frame is not None:
            self.frames.append(frame)
