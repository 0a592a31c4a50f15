"""What is answered when a request cannot be served: a status, or the close of a WebSocket."""

import logging
from dataclasses import dataclass
from typing import assert_never

from ramet.connections.outbox import Close
from ramet.core.ids import Ids
from ramet.core.public_errors import public_text
from ramet.errors import AddressError, InstanceGone, InvalidAgentName, NotRunning
from ramet.web.addressing import BadName, NotOurs, UnknownAgent, UnknownSub, Unresolved

BAD_REQUEST = 400
FORBIDDEN = 403
NOT_FOUND = 404
SERVER_ERROR = 500
UNAVAILABLE = 503

SETUP_FAILED = 1011
_MAX_REASON_BYTES = 123
_CLIENT_ERRORS = range(400, 500)

_log = logging.getLogger("ramet.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is not served."""

    status: int
    text: str
    """What an HTTP client reads."""
    reason: str | None = None
    """What a WebSocket is closed with, if that is not the text."""

    @property
    def close(self) -> Close:
        """The close of a refused WebSocket: final for clients at 4xxx, to be retried at 1011."""
        final = self.status in _CLIENT_ERRORS
        code = 4000 + self.status if final else SETUP_FAILED
        return Close(code, close_reason(self.reason or self.text))


def refusal_of(unresolved: Unresolved) -> Refusal:
    """The refusal of a path that leads to no agent."""
    match unresolved:
        case NotOurs():
            return Refusal(status=NOT_FOUND, text="Not found")
        case UnknownAgent():
            return Refusal(status=BAD_REQUEST, text="Invalid request")
        case BadName(reason=reason):
            return Refusal(status=BAD_REQUEST, text=reason)
        case UnknownSub():
            return Refusal(
                status=NOT_FOUND,
                text="Sub-agent not found",
                reason=rejected(NOT_FOUND, sub_agent=True),
            )
    assert_never(unresolved)


def refusal_for(error: BaseException, ids: Ids) -> Refusal:
    """The refusal for an error that came up while the request was served; logs what is a fault."""
    match error:
        case InvalidAgentName():
            return Refusal(status=BAD_REQUEST, text=str(error))
        case AddressError():
            return Refusal(status=NOT_FOUND, text=str(error))
        case NotRunning() | InstanceGone():
            return Refusal(status=UNAVAILABLE, text=str(error))
    _log.error("A request failed: %s", error, exc_info=error)
    return Refusal(status=SERVER_ERROR, text=public_text(error, ids))


def rejected(status: int, *, sub_agent: bool) -> str:
    """The reason that a WebSocket is closed with after a hook has refused it."""
    return f"{'Sub-agent connection' if sub_agent else 'Connection'} rejected ({status})"


def close_reason(text: str) -> str:
    """A text cut to what a close frame can carry."""
    return text.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
