"""Sends a stored answer to one client, page by page as it takes them, until it has caught up."""

from collections.abc import Callable, Sequence

from ramet.chat.live_turn import log_key
from ramet.chat.stream_log import StoredStream
from ramet.chat.stream_reader import StreamReader
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Frame
from ramet.errors import InstanceGone
from ramet.protocol import frames


class ChatReplay:
    """The cursor of one client in one stream; until it is done live chunks are left out (D21)."""

    def __init__(
        self,
        link: ClientLink,
        stream: StoredStream,
        reader: StreamReader,
        *,
        caught_up: Callable[[], Sequence[str]],
    ) -> None:
        """Begin at the reader's place.

        Args:
            link: The client.
            stream: What it is sent.
            reader: Reads the stream.
            caught_up: Gives the frames that end the replay; called in the step that the client is
                sent live frames again.
        """
        self._link = link
        self._stream = stream
        self._reader = reader
        self._caught_up = caught_up
        self._done = False
        self._envelope = frames.ChatChunkEnvelope(
            stream.request_id, continuation=stream.continuation, replay=True
        )

    def next_page(self) -> Sequence[Frame]:
        """The next stored frames; after the last comes the frame that ends the replay."""
        if self._done:
            return ()
        try:
            return self._page()
        except InstanceGone:
            self._done = True
            return ()

    def _page(self) -> Sequence[Frame]:
        page: list[Frame] = [
            self._envelope.frame(item.sequence, item.body)
            if item.kind == "chunk"
            else self._unnumbered(item.body)
            for item in self._reader.next_page()
        ]
        if self._reader.at_end:
            self._done = True
            self._link.behind.discard(log_key(self._stream.stream_id))
            page.extend(self._caught_up())
        return page

    def _unnumbered(self, body: str) -> str:
        return frames.chat_response(
            self._stream.request_id,
            body=body,
            done=False,
            continuation=self._stream.continuation,
            replay=True,
        )
