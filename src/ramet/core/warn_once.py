"""Warnings that are given once for each class of agent, however often there is cause."""

import logging
from weakref import WeakKeyDictionary

_GIVEN: WeakKeyDictionary[type, set[str]] = WeakKeyDictionary()


def warn_once(log: logging.Logger, cls: type, text: str, *, about: str | None = None) -> None:
    """Log a warning unless this process has given it for this class before.

    Args:
        log: Where.
        cls: The class of the agent.
        text: The warning.
        about: What all warnings of one kind share; the text itself when they are all the same.
    """
    given, kind = _GIVEN.setdefault(cls, set()), about or text
    if kind not in given:
        given.add(kind)
        log.warning("%s: %s", cls.__name__, text)
