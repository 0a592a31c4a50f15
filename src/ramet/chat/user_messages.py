"""`user_message`: what a person says, as the message that programs hand to a chat."""

from collections.abc import Mapping
from typing import Final

from ramet.core.ids import Ids
from ramet.protocol import messages
from ramet.protocol.ui_message import UIMessage

_IDS: Final = Ids()


def user_message(
    text: str, *, id: str | None = None, metadata: Mapping[str, object] | None = None
) -> UIMessage:
    """Make a message of the user, for whatever takes messages.

    Where only the text matters, the text alone will do: `save_messages("hello")`. A message is for
    an id that you know, so that asking again is no second question, and for metadata.

    Args:
        text: What the user says.
        id: Names the message; storing another under the same id replaces it. A new one for None.
        metadata: What pages and your code are to find with it; models are not told.

    Raises:
        InvalidArguments: The text is none, the id is empty, or JSON cannot carry the metadata.
    """
    message_id = _IDS.message_id("user_") if id is None else id
    return messages.user_message(text, id=message_id, metadata=metadata)
