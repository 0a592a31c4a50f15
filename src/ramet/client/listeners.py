"""Functions of the program that are called when something happens, each taken off again by name."""

import inspect
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from ramet.client.checked import checked_listener

T = TypeVar("T")

_log = logging.getLogger("ramet.client")


class Listeners(Generic[T]):
    """Calls every listener in the order in which they came; one that raises stops nobody."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._listeners: dict[object, Callable[[T], object]] = {}

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Call `listener` from now on; gives the function that ends that.

        Raises:
            InvalidArguments: It cannot be called, or is async.
        """
        key = object()
        self._listeners[key] = checked_listener(listener)

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    def tell(self, value: T) -> None:
        """Call them all."""
        for listener in tuple(self._listeners.values()):
            try:
                given = listener(value)
                if inspect.iscoroutine(given):
                    given.close()
                    _log.error("A listener of %s is async: nobody waits for it", self._what)
            except Exception:  # noqa: BLE001 - a fault of one listener must not end the connection
                _log.exception("A listener of %s failed", self._what)

    def __bool__(self) -> bool:
        return bool(self._listeners)
