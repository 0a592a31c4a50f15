"""Checks the arguments of calls about runs, so that a wrong one gets one sentence at once."""

from collections.abc import Sequence
from typing import Final, get_args

from ramet.core.listing import statuses
from ramet.core.signals import AbortSignal
from ramet.errors import InvalidArguments
from ramet.protocol.run_events import RunStatus

_STATUSES: Final = frozenset[str](get_args(RunStatus))


def check_id(name: str, value: object) -> None:
    """Refuse what cannot be an id.

    Raises:
        InvalidArguments: It is no text, is empty, or holds half a surrogate pair.
    """
    if not isinstance(value, str) or not value:
        raise InvalidArguments(f"{name} must be a text that is not empty, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(f"{name} must be valid Unicode, not {value!r}") from error


def check_signal(signal: object) -> None:
    """Refuse what cannot be aborted; raises `InvalidArguments`."""
    if signal is not None and not isinstance(signal, AbortSignal):
        raise InvalidArguments(f"signal must be a ramet.AbortSignal, not {signal!r}")


def asked_statuses(status: RunStatus | Sequence[RunStatus] | None) -> list[str] | None:
    """The statuses that are asked for; None for all. Raises `InvalidArguments` for an unknown."""
    return None if status is None else sorted(statuses(status, _STATUSES))
