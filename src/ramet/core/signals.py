"""Cancellation that can be handed around: a controller aborts, a signal tells."""

from collections.abc import Callable


class AbortSignal:
    """Tells whether something was cancelled, and why; made by an `AbortController`."""

    def __init__(self) -> None:
        self._aborted = False
        self._reason: object = None
        self._listeners: dict[int, Callable[[object], object]] = {}
        self._next_key = 0

    @property
    def aborted(self) -> bool:
        """Whether the controller has aborted."""
        return self._aborted

    @property
    def reason(self) -> object:
        """What `abort` was given; None before."""
        return self._reason

    @property
    def listener_count(self) -> int:
        """How many listeners wait for the abort (AT-180 pins that none is left behind)."""
        return len(self._listeners)

    def reason_text(self) -> str:
        """The reason in words: an exception's message, else its string form, else "cancelled"."""
        if self._reason is None:
            return "cancelled"
        return str(self._reason) or "cancelled"

    def add_listener(self, listener: Callable[[object], object]) -> Callable[[], None]:
        """Call `listener(reason)` once on abort, at once if that has been; returns its removal."""
        if self._aborted:
            listener(self._reason)
            return _nothing
        key = self._next_key
        self._next_key += 1
        self._listeners[key] = listener

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    def _abort(self, reason: object) -> None:
        if self._aborted:
            return
        self._aborted = True
        self._reason = reason
        listeners = list(self._listeners.values())
        self._listeners.clear()
        for listener in listeners:
            listener(reason)


class AbortController:
    """Owns one `AbortSignal`: `AbortController().signal` is given out, `abort()` kept."""

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, reason: object = None) -> None:
        """Abort the signal; only the first call counts."""
        self.signal._abort(reason)  # noqa: SLF001 - the controller is the signal's owner


def _nothing() -> None:
    return None
