"""Warnings that are given once for each class of agent, however often there is cause."""

import logging
from weakref import WeakKeyDictionary

_GIVEN: WeakKeyDictionary[type, set[str]] = WeakKeyDictionary()


def warn_once(log: logging.Logger, cls: type, text: str) -> None:
    """Log a warning unless this process has given it for this class before."""
    given = _GIVEN.setdefault(cls, set())
    if text not in given:
        given.add(text)
        log.warning("%s: %s", cls.__name__, text)
