"""Trying again what has failed, from an agent's own code: `Agent.retry`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, overload

from ramet.core.callbacks import run_callback
from ramet.core.options import RetryOptions
from ramet.core.retry import Retrier, ShouldRetry, complete_retry
from ramet.errors import InvalidArguments

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Runs functions of one agent with its options."""

    retrier: Retrier
    defaults: RetryOptions

    async def run(
        self,
        call: Callable[..., object],
        options: RetryOptions | None,
        *,
        should_retry: ShouldRetry | None,
    ) -> object:
        """Run `call`; see `RetryVerbs.retry`."""
        if not callable(call):
            raise InvalidArguments(f"What is run again is a function, not {call!r}")
        if should_retry is not None and not callable(should_retry):
            raise InvalidArguments(f"should_retry is a function, not {should_retry!r}")
        chosen = complete_retry(options, self.defaults) or self.defaults

        async def once(attempt: int) -> object:
            return await run_callback(call, (attempt,))

        return await self.retrier.run(once, chosen, should_retry=should_retry)


class RetryVerbs:
    """The retry method of an agent."""

    _ramet_retries: Retries

    @overload
    async def retry(
        self,
        fn: Callable[..., Awaitable[T]],
        options: RetryOptions | None = None,
        *,
        should_retry: ShouldRetry | None = None,
    ) -> T: ...

    @overload
    async def retry(
        self,
        fn: Callable[..., T],
        options: RetryOptions | None = None,
        *,
        should_retry: ShouldRetry | None = None,
    ) -> T: ...

    async def retry(
        self,
        fn: Callable[..., object],
        options: RetryOptions | None = None,
        *,
        should_retry: ShouldRetry | None = None,
    ) -> object:
        """Run a function again until it succeeds, with random growing delays in between.

        It is given the number of the attempt, from 1, if it takes an argument; it may be async.
        `should_retry(error, next_attempt)` is asked before each further attempt. What `options`
        leave out comes from the class. Nothing of this is stored.

        Raises:
            InvalidArguments: `fn` or `should_retry` is no function.
            InvalidOptions: The options do not fit together with those of the class.
            Exception: The last error of `fn`.
        """
        return await self._ramet_retries.run(fn, options, should_retry=should_retry)
