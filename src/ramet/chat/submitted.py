"""What a transcript becomes by the list that a client sends (PROTOCOL 4.8)."""

from collections.abc import Collection, Sequence

from ramet.protocol.reconcile import reconcile
from ramet.protocol.ui_message import UIMessage


def replaced(
    incoming: Sequence[UIMessage], stored: Sequence[UIMessage], *, asked: Collection[str]
) -> list[UIMessage]:
    """The transcript when the client's list stands for all of it.

    Questions that wait for their answer stay, although the client may not know of them yet: they
    come before what the client has added.

    Args:
        incoming: The client's list.
        stored: The transcript so far.
        asked: The messages that running and waiting turns answer.
    """
    messages = reconcile(incoming, stored).messages
    listed = {str(message["id"]) for message in messages}
    kept = [
        message
        for message in stored
        if str(message["id"]) in asked and str(message["id"]) not in listed
    ]
    known = {str(message["id"]) for message in stored}
    places = (place for place, message in enumerate(messages) if str(message["id"]) not in known)
    place = next(places, len(messages))
    return [*messages[:place], *kept, *messages[place:]]


def added(incoming: Sequence[UIMessage], stored: Sequence[UIMessage]) -> list[UIMessage]:
    """The messages to store when the server's list is the transcript: never a changed answer."""
    known = {str(message["id"]) for message in stored}
    return [
        message
        for message in reconcile(incoming, stored).changed
        if message["role"] != "assistant" or str(message["id"]) not in known
    ]
