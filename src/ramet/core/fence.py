"""What keeps a stopped instance from acting: once it is down, storage, outputs and calls refuse."""

from collections.abc import Callable

from ramet.errors import InstanceGone


class Fence:
    """Stands up while an instance lives; goes down once, before its tasks are ended (D11)."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._reason: str | None = None
        self._callbacks: list[Callable[[], object]] = []

    @property
    def down(self) -> bool:
        """Whether the instance is gone."""
        return self._reason is not None

    def check(self) -> None:
        """Raise `InstanceGone` when the instance is gone."""
        if self._reason is not None:
            raise self.error()

    def error(self) -> InstanceGone:
        """The error that everything behind a fence raises."""
        return InstanceGone(f"The instance of {self._owner} is gone: {self._reason}")

    def on_down(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` when the fence goes down; returns the removal of the callback."""
        self._callbacks.append(callback)

        def remove() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return remove

    def drop(self, reason: str) -> None:
        """Take the fence down; only the first call counts."""
        if self._reason is not None:
            return
        self._reason = reason
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
