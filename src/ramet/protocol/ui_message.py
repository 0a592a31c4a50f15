"""The message that chats are made of, as its type: the AI SDK's `UIMessage`, as JSON has it."""

from typing import (
    Any,
    Literal,
    NotRequired,  # pydantic takes no other before Python 3.12
    TypeAlias,
)

from typing_extensions import TypedDict

from ramet.core.json import JsonObject

UIRole: TypeAlias = Literal["system", "user", "assistant"]

UIPart: TypeAlias = dict[str, Any]
"""One part of a message: a dict with a `type`, and the keys that parts of that type have.

`{"type": "text", "text": …}`, `{"type": "reasoning", "text": …}`, `{"type": "file", "url": …}`,
`{"type": "tool-<name>", "toolCallId": …, "state": …, "input": …, "output": …}`, `"data-<name>"`.

It is a plain dict and no union of `TypedDict`s, since the kinds are open: no type checker can tell
from a `type` that may be any text which keys there are, so each `part["text"]` would have to be
narrowed first, by hand. `ramet.text_of` and `ramet.tool_calls` read the common kinds.
"""

UIChunk: TypeAlias = dict[str, Any]
"""A piece of an answer that streams: a dict with a `type`, whose kinds are as open as of parts."""


class UIMessage(TypedDict):
    """A message of a chat, with the same keys as in the browser.

    A literal dict with these keys is one, and so is what JSON gives; `ramet.user_message` makes
    one of a text. What an application adds beside these keys is kept.
    """

    id: str
    role: UIRole
    parts: list[UIPart]
    """What was said and done, in order."""
    metadata: NotRequired[Any]
    """What goes with it, such as why it finished; most messages have none."""


def as_message(decoded: JsonObject) -> UIMessage:
    """Give a decoded object the type of a message: whoever wrote it down has checked that it is."""
    untyped: Any = decoded
    message: UIMessage = untyped
    return message
