"""The messages of a chat as the client knows them."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from ramet.core.json import JsonValue
from ramet.protocol.messages import parts_of
from ramet.protocol.tool_parts import tool_call_id
from ramet.protocol.ui_message import UIMessage, as_message


class Transcript:
    """The messages as the server sent them last, with what this client has added since."""

    def __init__(self) -> None:
        self.messages: tuple[UIMessage, ...] = ()
        self.known = False
        """Whether the server has said what there is, on the connection that is open now."""

    def replace(self, messages: object) -> None:
        """Take what the server says there is; anything else changes nothing."""
        if isinstance(messages, list):
            self.messages = tuple(as_message(each) for each in messages if isinstance(each, dict))
            self.known = True

    def add(self, messages: Sequence[UIMessage]) -> None:
        """Append what is asked; messages that are there already take their new form."""
        for message in messages:
            self.put(message)

    def put(self, message: UIMessage) -> None:
        """Put a message in the place of its former self, else at the end."""
        at = self._place(message.get("id"))
        kept = list(self.messages)
        kept[at : at + 1] = [message]
        self.messages = tuple(kept)

    def take_back(self, message_ids: Collection[str]) -> None:
        """Remove what was added and not taken by the server."""
        self.messages = tuple(each for each in self.messages if each.get("id") not in message_ids)

    def update(self, message: JsonValue) -> None:
        """Replace one message, found by its id, else by a tool call that both have."""
        if not isinstance(message, dict):
            return
        new = as_message(message)
        at = self._place(new.get("id"))
        if at < len(self.messages):
            self.put(new)
            return
        calls = _calls(new)
        for own in self.messages:
            if calls & _calls(own):
                self.put({**new, "id": own.get("id", "")})
                return

    def answer_to(self, message_ids: Sequence[str]) -> UIMessage | None:
        """The assistant's message right after one of these questions."""
        for question, answer in pairwise(self.messages):
            if question.get("id") in message_ids and answer.get("role") == "assistant":
                return answer
        return None

    def _place(self, message_id: str | None) -> int:
        ids = [each.get("id") for each in self.messages]
        return ids.index(message_id) if message_id in ids else len(ids)


def _calls(message: UIMessage) -> set[str]:
    found = (tool_call_id(part) for part in parts_of(message))
    return {call for call in found if call is not None}
