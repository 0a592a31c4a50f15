"""What is kept on disk to continue an answer once a page has answered its tool calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ramet.core.json import JsonObject, JsonValue, dumps, loads_object
from ramet.storage import Database
from ramet.storage.key_value import KeyValue

ASKED_KEY: Final = "cf_chat:awaiting_client"
WISH_KEY: Final = "cf_chat:continuation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaiting:
    """An answer that asks a page for something, and what its own question came with."""

    message_id: str
    message_ids: Sequence[str] = ()
    """The user messages that it answers."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    client_tools: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A page wants an answer to go on, once all its calls are answered."""

    message_id: str
    client_tools: Sequence[JsonObject] | None = None
    """The tools that the page has now; None when it did not say."""


class ContinuationStore:
    """Reads and writes both; there is at most one of each."""

    def __init__(self, database: Database) -> None:
        self._values = KeyValue(database)

    def keep_awaiting(self, awaiting: Awaiting) -> None:
        """Remember what an answer that asks a page was asked with."""
        stored = {
            "messageId": awaiting.message_id,
            "messageIds": [*awaiting.message_ids],
            "body": dict(awaiting.body),
            "clientTools": [*awaiting.client_tools],
        }
        self._values.put(ASKED_KEY, dumps(stored))

    def forget_awaiting(self) -> None:
        """Forget it: the last answer asks nobody."""
        if self._values.has(ASKED_KEY):
            self._values.delete(ASKED_KEY)

    def awaited(self) -> str | None:
        """The answer that asks a page, if there is one."""
        stored = loads_object(self._values.get(ASKED_KEY) or "") or {}
        message_id = stored.get("messageId")
        return message_id if isinstance(message_id, str) else None

    def awaiting(self, message_id: str) -> Awaiting:
        """What an answer was asked with."""
        stored = loads_object(self._values.get(ASKED_KEY) or "") or {}
        if stored.get("messageId") != message_id:
            return Awaiting(message_id=message_id)
        body, ids = stored.get("body"), stored.get("messageIds")
        return Awaiting(
            message_id=message_id,
            message_ids=[str(each) for each in ids] if isinstance(ids, list) else (),
            body=body if isinstance(body, dict) else {},
            client_tools=_tools(stored.get("clientTools")) or (),
        )

    def keep_wish(self, wish: Wish) -> None:
        """Remember that an answer is to go on; tools that were named before stay."""
        known, tools = self.wish(), wish.client_tools
        if tools is None and known is not None and known.message_id == wish.message_id:
            tools = known.client_tools
        stored = {"messageId": wish.message_id, "clientTools": tools}
        self._values.put(WISH_KEY, dumps(stored))

    def newest_tools(self, message_id: str, asked: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """The tools that an answer goes on with: those a page has named since it was asked."""
        wish = self.wish()
        if wish is None or wish.message_id != message_id or wish.client_tools is None:
            return asked
        return wish.client_tools

    def forget_wish(self) -> None:
        """Forget it: the answer goes on, or never will."""
        self._values.delete(WISH_KEY)

    def forget_wish_for(self, message_id: str) -> None:
        """Forget it if it is for that answer, which is not to go on."""
        wish = self.wish()
        if wish is not None and wish.message_id == message_id:
            self.forget_wish()

    def wish(self) -> Wish | None:
        """The answer that is to go on, if there is one."""
        text = self._values.get(WISH_KEY)
        stored = None if text is None else loads_object(text)
        if stored is None:
            return None
        tools = _tools(stored.get("clientTools"))
        return Wish(message_id=str(stored.get("messageId")), client_tools=tools)

    def clear(self) -> None:
        """Forget both: the chat was cleared."""
        self._values.delete(ASKED_KEY)
        self._values.delete(WISH_KEY)


def _tools(stored: JsonValue) -> Sequence[JsonObject] | None:
    return [tool for tool in stored if isinstance(tool, dict)] if isinstance(stored, list) else None
