"""A value or an error that comes once and may be waited for by any number, or by nobody."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Settled(Generic[T]):
    """The first value or error that it is given stays."""

    def __init__(self) -> None:
        self._done = asyncio.Event()
        self._value: T | None = None
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether it has come."""
        return self._done.is_set()

    def succeed(self, value: T) -> None:
        """Give the value."""
        if not self.done:
            self._value = value
            self._done.set()

    def fail(self, error: Exception) -> None:
        """Give the error that everybody who waits is to have."""
        if not self.done:
            self._error = error
            self._done.set()

    async def wait(self) -> T:
        """The value, when it is there; raises the error."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        value: T = self._value  # type: ignore[assignment] # T may be None itself
        return value
