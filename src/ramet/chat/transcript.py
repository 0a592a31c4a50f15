"""The messages of one chat, in order, as text in memory and as rows on disk."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ramet.core.clock import Clock
from ramet.core.json import NotJson, dumps, loads
from ramet.protocol.compaction import compact_message
from ramet.protocol.messages import parts_of
from ramet.protocol.tool_parts import tool_call_id
from ramet.protocol.ui_message import UIMessage, as_message
from ramet.storage import Database, Row

_log = logging.getLogger("ramet.chat")

DAMAGED = "[This message was damaged on disk and cannot be read.]"
CALL_KEY = '"toolCallId"'

CREATE = """
CREATE TABLE IF NOT EXISTS cf_ai_chat_agent_messages (
    id TEXT PRIMARY KEY NOT NULL,
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    message TEXT NOT NULL,
    created_at INTEGER NOT NULL
)
"""
CREATE_ORDER = """
CREATE INDEX IF NOT EXISTS cf_ai_chat_agent_messages_position
    ON cf_ai_chat_agent_messages (position)
"""
SELECT_ALL = "SELECT id, role, message FROM cf_ai_chat_agent_messages ORDER BY position"
INSERT = """
INSERT INTO cf_ai_chat_agent_messages (id, position, role, message, created_at)
VALUES (?, ?, ?, ?, ?)
"""
UPDATE = "UPDATE cf_ai_chat_agent_messages SET role = ?, message = ? WHERE id = ?"
MAKE_ROOM = "UPDATE cf_ai_chat_agent_messages SET position = position + 1 WHERE position >= ?"
IS_THERE = "SELECT 1 FROM cf_ai_chat_agent_messages WHERE id = ?"
POSITION_OF = "SELECT position FROM cf_ai_chat_agent_messages WHERE id = ?"
LAST_POSITION = "SELECT max(position) AS last FROM cf_ai_chat_agent_messages"
DELETE = "DELETE FROM cf_ai_chat_agent_messages WHERE id = ?"
CLEAR = "DELETE FROM cf_ai_chat_agent_messages"


def create_message_table(database: Database) -> None:
    """Make the table of messages."""
    database.run(CREATE)
    database.run(CREATE_ORDER)


class Transcript:
    """The messages that are stored; what it gives out may be changed freely by whoever gets it.

    They are read when they are first needed: an agent that is opened for something else does not
    wait for a long chat.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._read: dict[str, str] | None = None
        self._watchers: list[Callable[[], object]] = []
        self._calls: dict[str, tuple[str, frozenset[str]]] = {}
        """By message id: the text that was looked through, and the tool calls in it."""

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, message_id: str) -> bool:
        if self._read is None:
            return self._database.one(IS_THERE, message_id) is not None
        return message_id in self._read

    @property
    def _texts(self) -> dict[str, str]:
        if self._read is None:
            rows = self._database.query(SELECT_ALL)
            self._read = {str(row["id"]): self._readable(row) for row in rows}
        return self._read

    def all(self) -> list[UIMessage]:
        """Every message, in order."""
        return _decoded(self._texts.values())

    def last(self) -> UIMessage | None:
        """The newest message."""
        return _decoded([next(reversed(self._texts.values()))])[0] if self._texts else None

    def until(self, last_id: str | None) -> list[UIMessage]:
        """The messages up to the one with that id; all of them when it is not there."""
        if last_id is None or last_id not in self._texts:
            return self.all()
        texts: list[str] = []
        for message_id, text in self._texts.items():
            texts.append(text)
            if message_id == last_id:
                break
        return _decoded(texts)

    def some(self, ids: Iterable[str]) -> list[UIMessage]:
        """The messages with these ids that are there, in the order of the ids."""
        return _decoded(self._texts[each] for each in ids if each in self._texts)

    def of_call(self, call_id: str) -> UIMessage | None:
        """The newest message that has a tool call."""
        written = dumps(call_id)
        for text in reversed(self._texts.values()):
            if written in text:
                message = _decoded([text])[0]
                if any(tool_call_id(part) == call_id for part in parts_of(message)):
                    return message
        return None

    def json(self) -> str:
        """The whole transcript as the JSON text of an array."""
        return "[" + ",".join(self._texts.values()) + "]"

    def tool_calls(self) -> set[str]:
        """The ids of the tool calls in all messages; only what has changed is looked through."""
        known, self._calls = self._calls, {}
        for message_id, text in self._texts.items():
            if CALL_KEY not in text:
                continue
            entry = known.get(message_id)
            if entry is None or entry[0] is not text:
                calls = (tool_call_id(part) for each in _decoded([text]) for part in parts_of(each))
                entry = (text, frozenset(call for call in calls if call is not None))
            self._calls[message_id] = entry
        return {call for _, calls in self._calls.values() for call in calls}

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Commit the changes of the block together, or none of them when it raises."""
        before = dict(self._texts)
        try:
            with self._database.transaction():
                yield
        except BaseException:
            self._read = before
            raise
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def once_changed(self, watcher: Callable[[], object]) -> None:
        """Call `watcher` after the next change."""
        self._watchers.append(watcher)

    def put(self, message: UIMessage, *, after: str | None = None) -> None:
        """Store a message: in place if its id is known, else behind `after`, else at the end."""
        message_id, text = str(message["id"]), dumps(compact_message(message))
        if message_id in self._texts:
            if self._texts[message_id] != text:
                self._database.run(UPDATE, str(message["role"]), text, message_id)
                self._texts[message_id] = text
            return
        position = self._place_behind(after)
        now = self._clock.now_ms()
        self._database.run(INSERT, message_id, position, str(message["role"]), text, now)
        self._remember(message_id, text, after)

    def replace(self, messages: Sequence[UIMessage]) -> None:
        """Make these the transcript: what is not among them is deleted, their order is kept."""
        wanted = [str(message["id"]) for message in messages]
        unwanted = self._texts.keys() - set(wanted)
        self.delete(unwanted)
        if list(self._texts) != wanted[: len(self._texts)]:
            self.clear()
        for message in messages:
            self.put(message)

    def delete(self, ids: Iterable[str]) -> None:
        """Forget the messages with these ids."""
        for message_id in ids:
            self._database.run(DELETE, message_id)
            self._texts.pop(message_id, None)

    def keep_newest(self, most: int, *, besides: Collection[str]) -> None:
        """Forget the oldest messages until there are at most so many; those named stay."""
        unneeded = [message_id for message_id in self._texts if message_id not in besides]
        self.delete(unneeded[: max(0, len(self._texts) - most)])

    def cut_after(self, last_id: str) -> None:
        """Forget what follows the message with that id; nothing when it is not there."""
        ids = list(self._texts)
        if last_id in self._texts:
            self.delete(ids[ids.index(last_id) + 1 :])

    def clear(self) -> None:
        """Forget every message."""
        self._database.run(CLEAR)
        self._texts.clear()

    def _place_behind(self, after: str | None) -> int:
        if after is not None and after in self._texts and after != next(reversed(self._texts)):
            row = self._database.one(POSITION_OF, after)
            place = int(row["position"]) + 1 if row is not None else 0
            self._database.run(MAKE_ROOM, place)
            return place
        row = self._database.one(LAST_POSITION)
        last = row["last"] if row is not None else None
        return 0 if last is None else int(last) + 1

    def _readable(self, row: Row) -> str:
        """The text of a message; one that is damaged says so in its place, its row is kept."""
        text = str(row["message"])
        try:
            loads(text)
        except NotJson as error:
            _log.error(
                "The message %s in %s cannot be read: %s", row["id"], self._database.path, error
            )
            said = {"type": "text", "text": DAMAGED, "state": "done"}
            return dumps({"id": row["id"], "role": row["role"], "parts": [said]})
        return text

    def _remember(self, message_id: str, text: str, after: str | None) -> None:
        if after is None or after not in self._texts:
            self._texts[message_id] = text
            return
        texts: dict[str, str] = {}
        for known_id, known in self._texts.items():
            texts[known_id] = known
            if known_id == after:
                texts[message_id] = text
        self._read = texts


def _decoded(texts: Iterable[str]) -> list[UIMessage]:
    decoded = loads("[" + ",".join(texts) + "]")
    assert isinstance(decoded, list)
    return [as_message(message) for message in decoded if isinstance(message, dict)]
