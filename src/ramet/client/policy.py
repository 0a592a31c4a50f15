"""Decides what follows a connection that ended; nothing here has effects."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from ramet.client.options import ClientOptions
from ramet.client.ports import Closing
from ramet.errors import ClientError, ConnectionLost, ConnectionRefused

_FINAL: Final = range(4000, 5000)
_POLICY_VIOLATION: Final = 1008
_TOO_BIG: Final = 1009
_UNKNOWN_CLASS: Final = (4400, "Invalid request")
_GROWTH: Final = 1.5
_JITTER: Final = 0.5
_SAID: Final = {
    1000: "the server closed it",
    1001: "the server is going away, or the agent was deleted",
    1006: "it broke off",
    1011: "the server had an error",
    1012: "the server restarts",
    1013: "this client read too slowly, or the server is busy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Connect again, after so many seconds."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Do not connect again; the error says why."""

    error: ClientError


Verdict: TypeAlias = Retry | GiveUp


def refusal(closing: Closing, readable: str) -> ClientError | None:
    """The error of a close after which coming back is of no use; None when it may help."""
    if closing.code == _TOO_BIG and closing.ours:
        return ConnectionLost(
            f"The connection to {readable} was closed: the server sent a frame that is too large; "
            "raise ClientOptions.max_frame_bytes"
        )
    if closing.code in _FINAL or closing.code == _POLICY_VIOLATION:
        said = closing.reason or "it gave no reason"
        if (closing.code, closing.reason) == _UNKNOWN_CLASS:
            said += ", which means that it has no such class, or only below a parent"
        return ConnectionRefused(
            f"The server refused the connection to {readable}: {said} ({closing.code})",
            code=closing.code,
            reason=closing.reason,
        )
    return None


def why(closing: Closing) -> str:
    """What to tell people of a close."""
    said = closing.reason or _SAID.get(closing.code, "it was closed")
    return f"{said} ({closing.code})"


def next_attempt(failures: int, *, options: ClientOptions, luck: float) -> Retry | None:
    """When to try again after so many failures in a row; None after too many.

    Args:
        failures: The attempts that failed since the connection was good.
        options: The delays and their bounds.
        luck: A random number from 0 to 1, so that many clients do not come back at one moment.
    """
    if failures >= options.max_retries:
        return None
    grown = min(options.max_delay, options.first_delay * _GROWTH ** min(failures, 64))
    return Retry(delay=grown * (1 - _JITTER * luck))
