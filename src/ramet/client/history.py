"""Asks a chat agent for its stored messages, over HTTP."""

import asyncio
from collections.abc import Mapping
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ramet.core.json import NotJson, loads
from ramet.errors import ConnectionLost
from ramet.protocol.ui_message import UIMessage, as_message

_NOT_FOUND = 404


async def stored_messages(
    url: str, headers: Mapping[str, str], *, seconds: float
) -> list[UIMessage]:
    """The messages at a `get-messages` URL; none when the server has none to give.

    Raises:
        ConnectionLost: Nobody answers, or not with messages.
    """
    try:
        text = await asyncio.to_thread(_get, Request(url, headers=dict(headers)), seconds)
        messages = loads(text) if text else []
    except HTTPError as error:
        error.close()
        if error.code == _NOT_FOUND:
            return []
        raise ConnectionLost(f"Cannot get the messages from {url}: HTTP {error.code}") from error
    except (URLError, OSError, NotJson) as error:
        raise ConnectionLost(f"Cannot get the messages from {url}: {error}") from error
    if not isinstance(messages, list):
        raise ConnectionLost(f"Cannot get the messages from {url}: the answer is no list")
    return [as_message(message) for message in messages if isinstance(message, dict)]


def _get(request: Request, seconds: float) -> bytes:
    with urlopen(request, timeout=seconds) as answer:
        read: bytes = answer.read()
        return read
