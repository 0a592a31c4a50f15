"""Checks what programs hand to a client, before anything of it is sent or remembered."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ramet.core.json import JsonObject, JsonValue, to_json_strict
from ramet.errors import InvalidArguments, NotJson
from ramet.protocol.fields import FieldError, required_messages
from ramet.protocol.ui_message import UIMessage

T = TypeVar("T")

_TIMEOUT = "timeout must be a number of seconds that is not negative, not {!r}"


def checked_timeout(timeout: float | None) -> float | None:
    """Seconds to wait, or None; raises `InvalidArguments` for anything else."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise InvalidArguments(_TIMEOUT.format(timeout))
    if math.isnan(timeout) or timeout < 0:
        raise InvalidArguments(_TIMEOUT.format(timeout))
    return timeout


def checked_call(method: str, args: Sequence[object]) -> list[JsonValue]:
    """The arguments of a call as JSON has them.

    Raises:
        InvalidArguments: The method is no text, or JSON cannot carry an argument.
    """
    if not isinstance(method, str):
        raise InvalidArguments(f"The method must be a text, not {method!r}")
    return [_plain(f"Argument {at} of {method!r}", arg) for at, arg in enumerate(args, start=1)]


def checked_messages(asked: Sequence[UIMessage]) -> list[UIMessage]:
    """Messages to ask, as JSON has them.

    Raises:
        InvalidArguments: They are no list of messages, each with an id, a role and parts.
    """
    if not isinstance(asked, list | tuple):
        raise InvalidArguments(f"asked must be a text or a list of messages, not {asked!r}")
    try:
        return required_messages({"asked": _plain("asked", [*asked])}, "asked")
    except FieldError as error:
        raise InvalidArguments(f"These are no messages to ask: {error}") from error


def checked_body(body: Mapping[str, object] | None) -> JsonObject:
    """What goes with a question, as JSON has it; raises `InvalidArguments` if that cannot be."""
    if body is not None and not isinstance(body, Mapping):
        raise InvalidArguments(f"body must be a mapping, not {body!r}")
    plain = _plain("body", {**(body or {})})
    assert isinstance(plain, dict)
    return plain


def checked_listener(listener: Callable[[T], object]) -> Callable[[T], object]:
    """A function that can be called at once.

    Raises:
        InvalidArguments: It cannot be called, or is async: nobody would wait for it.
    """
    if not callable(listener):
        raise InvalidArguments(f"A listener must be a function, not {listener!r}")
    if any(map(inspect.iscoroutinefunction, (listener, getattr(listener, "__call__", None)))):  # noqa: B004 - whether it is async
        raise InvalidArguments(
            f"The listener {listener!r} is async, but is called between two frames and not waited "
            "for: give a plain function, which may start a task"
        )
    return listener


def _plain(what: str, value: object) -> JsonValue:
    try:
        return to_json_strict(value)
    except NotJson as error:
        raise InvalidArguments(f"{what} cannot be sent: {error}") from error
