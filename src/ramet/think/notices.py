"""Tells a `Think` what becomes of its detached runs, by durable submissions."""

from collections.abc import Callable

from ramet.chat.feature import Chat
from ramet.chat.notices import ChatNotices
from ramet.protocol.ui_message import UIMessage
from ramet.think.submissions import Submissions


class ThinkNotices(ChatNotices):
    """The notices of one `Think`: the key of a submission says what it tells of (AT-272)."""

    def __init__(self, chat: Callable[[], Chat], submissions: Callable[[], Submissions]) -> None:
        super().__init__(chat)
        self._submissions = submissions

    async def ask(self, message: UIMessage, *, noticed: Callable[[], object]) -> None:
        """Submit a question, once for each key; it is answered when no turn runs (AT-273)."""
        key, metadata = str(message["id"]), message["metadata"]
        await self._submissions().submit([message], submission_id=None, key=key, metadata=metadata)
        noticed()
