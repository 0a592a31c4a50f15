"""Carries out stored calls as code of their agent: the method, its retries, what is reported."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ramet.core.callbacks import Callback, find_callback, run_callback
from ramet.core.fence import Fence
from ramet.core.json import JsonObject, JsonValue, NotJson, loads
from ramet.core.options import RetryOptions
from ramet.core.ports import ErrorHook, Events
from ramet.core.retry import Retrier, load_retry

_log = logging.getLogger("ramet.agent")


class Shown(Protocol):
    """What a method is given beside its payload."""

    @property
    def payload(self) -> JsonValue:
        """What was stored for the method."""
        ...


class StoredCall(Protocol):
    """A row that names a method and holds what to give it."""

    @property
    def id(self) -> str:
        """The row's id."""
        ...

    @property
    def callback(self) -> str:
        """The name of the method."""
        ...

    @property
    def payload(self) -> str | None:
        """JSON text."""
        ...

    @property
    def retry(self) -> str | None:
        """How it is retried, as `dump_retry` writes it."""
        ...

    @property
    def internal(self) -> bool:
        """Whether it names a handler of ramet's own instead of a method."""
        ...

    def shown(self) -> Shown:
        """The row as users see it, made anew."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """The calls of one kind that one agent gets."""

    kind: str
    """How its events begin: "schedule" or "queue"."""
    name: str
    """Whose calls they are, for the log."""
    agent: object
    fence: Fence
    events: Events
    errors: ErrorHook
    retrier: Retrier
    defaults: RetryOptions
    internal: Mapping[str, Callable[..., Awaitable[object]]] = field(default_factory=dict)
    first_event: str | None = None
    """Emitted when a method is about to be called for the first time."""

    async def carry_out(self, call: StoredCall) -> None:
        """Call the method and return when it has succeeded or failed for good.

        A method that is gone is logged, a failure goes to `on_error`.

        Raises:
            InstanceGone: The instance ended meanwhile; nothing is known of the call.
        """
        callback = self._find(call)
        if callback is None:
            _log.error(
                "%s: the %s %s is dropped, there is no method %r any more",
                self.name,
                self.kind,
                call.id,
                call.callback,
            )
            return
        try:
            loads("null" if call.payload is None else call.payload)
        except NotJson as error:
            self._failed(call, error, attempts=0)
            return
        if self.first_event is not None:
            self.emit(self.first_event, call)
        await self._attempt(call, callback)

    def emit(self, event: str, call: StoredCall, more: JsonObject | None = None) -> None:
        """Report an event of a call that users know of."""
        if not call.internal:
            payload: JsonObject = {"callback": call.callback, "id": call.id}
            self.events.emit(f"{self.kind}:{event}", payload | (more or {}))

    async def _attempt(self, call: StoredCall, callback: Callback) -> None:
        options = load_retry(call.retry) or self.defaults
        attempts = 0

        async def once(attempt: int) -> None:
            nonlocal attempts
            attempts = attempt
            if attempt > 1:
                counted: JsonObject = {"attempt": attempt, "maxAttempts": options.max_attempts}
                self.emit("retry", call, counted)
            shown = call.shown()
            await run_callback(callback, (shown.payload, shown))

        try:
            await self.retrier.run(once, options, should_retry=lambda *_: not self.fence.down)
        except Exception as error:  # noqa: BLE001 - whatever a callback raises is its own failure
            self.fence.check()
            self._failed(call, error, attempts=attempts)

    def _find(self, call: StoredCall) -> Callback | None:
        if call.internal:
            return self.internal.get(call.callback)
        return find_callback(self.agent, call.callback)

    def _failed(self, call: StoredCall, error: Exception, *, attempts: int) -> None:
        text = str(error) or type(error).__name__
        self.emit("error", call, {"error": text, "attempts": attempts})
        self.errors.report(error)
