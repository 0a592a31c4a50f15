"""Trying again what has failed: how long to wait is computed here, the waiting is the clock's."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ramet.core.clock import Clock
from ramet.core.ids import Ids
from ramet.core.json import dumps, loads_object
from ramet.core.options import RetryOptions
from ramet.errors import InvalidOptions

T = TypeVar("T")

ShouldRetry: TypeAlias = Callable[[Exception, int], bool]
"""Given the error and the number of the next attempt, says whether to make it."""

_LARGEST_EXPONENT = 1_000
"""Two to this power is still a number; the delay has long reached its maximum by then."""


def delay_bound_ms(attempt: int, *, base_delay: float, max_delay: float) -> float:
    """What the delay after a failed attempt (counted from 1) stays below, in milliseconds."""
    return min(2.0 ** min(attempt, _LARGEST_EXPONENT) * base_delay, max_delay) * 1000


def delay_ms(attempt: int, chance: float, *, base_delay: float, max_delay: float) -> int:
    """The delay after a failed attempt, for a random number in [0, 1) (RT-002)."""
    return int(chance * delay_bound_ms(attempt, base_delay=base_delay, max_delay=max_delay))


def whole_attempts(attempts: float) -> int:
    """A count of attempts without its fraction (RT-005).

    Raises:
        InvalidOptions: Not one attempt is left, or there is no end to them.
    """
    if not (math.isfinite(attempts) and attempts >= 1):
        raise InvalidOptions(f"attempts must be a finite number, 1 or more, not {attempts!r}")
    return math.floor(attempts)


def complete_retry(options: object, defaults: RetryOptions) -> RetryOptions | None:
    """The options given for one item with what they leave out taken from the class.

    Raises:
        InvalidOptions: They do not fit together, or are no `RetryOptions` (RT-004).
    """
    if options is None:
        return None
    if not isinstance(options, RetryOptions):
        raise InvalidOptions(f"retry must be RetryOptions, not {options!r}")
    return options.over(defaults)


def dump_retry(options: RetryOptions | None) -> str | None:
    """Options in the form in which schedules and queue items store them, in milliseconds."""
    if options is None:
        return None
    return dumps(
        {
            "maxAttempts": options.max_attempts,
            "baseDelayMs": options.base_delay * 1000,
            "maxDelayMs": options.max_delay * 1000,
        }
    )


def load_retry(stored: str | None) -> RetryOptions | None:
    """Read what `dump_retry` wrote; None when nothing or nothing usable is stored."""
    match loads_object(stored) if stored else None:
        case {
            "maxAttempts": int(attempts),
            "baseDelayMs": int(base) | float(base),
            "maxDelayMs": int(most) | float(most),
        }:
            try:
                return RetryOptions(
                    max_attempts=attempts, base_delay=base / 1000, max_delay=most / 1000
                )
            except InvalidOptions:
                return None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """Runs something again and again until it succeeds or its attempts are used up."""

    clock: Clock
    ids: Ids

    async def run(
        self,
        call: Callable[[int], Awaitable[T]],
        options: RetryOptions,
        *,
        should_retry: ShouldRetry | None = None,
    ) -> T:
        """Run `call` with the number of the attempt, from 1; raises its last error (RT-001).

        Cancellation is never retried. `should_retry` is asked before each further attempt.
        """
        return await self.run_up_to(
            options.max_attempts,
            call,
            base_delay=options.base_delay,
            max_delay=options.max_delay,
            should_retry=should_retry,
        )

    async def run_up_to(
        self,
        attempts: float,
        call: Callable[[int], Awaitable[T]],
        *,
        base_delay: float,
        max_delay: float,
        should_retry: ShouldRetry | None = None,
    ) -> T:
        """Like `run`, with the options one by one; a fraction of an attempt is left out."""
        last = whole_attempts(attempts)
        attempt = 1
        while True:
            try:
                return await call(attempt)
            except Exception as error:
                if attempt >= last:
                    raise
                if should_retry is not None and not should_retry(error, attempt + 1):
                    raise
            chance = self.ids.uniform(0, 1)
            wait_ms = delay_ms(attempt, chance, base_delay=base_delay, max_delay=max_delay)
            await self.clock.sleep(wait_ms / 1000)
            attempt += 1
