"""What users say about turns that are lost with a process: budgets, and what to do with one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ramet.protocol.ui_message import UIMessage

RecoveryKind: TypeAlias = Literal["retry", "continue"]
"""Whether a lost turn is run again from its question, or goes on with what it had said."""
ExhaustedReason: TypeAlias = Literal[
    "out_of_memory",
    "work_budget_exceeded",
    "no_progress_timeout",
    "recovery_aborted",
    "max_attempts_exceeded",
    "stable_timeout",
    "recovery_error",
]
"""Why a turn was given up."""

TERMINAL_MESSAGE: Final = "The answer was interrupted and could not be completed."
_MOST_ATTEMPTS: Final = 10
_STABLE_TIMEOUT: Final = 10.0
_NO_PROGRESS_TIMEOUT: Final = 300.0
_HOOK_TIMEOUT: Final = 30.0
_MOST_WORK: Final = 1000
_MOST_OOM_RETRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRecoveryContext:
    """A lost turn, as it is shown to those who decide about it."""

    incident_id: str
    request_id: str
    """The request whose answer was cut off."""
    recovery_root: str
    """The turn that all of this began with."""
    kind: RecoveryKind
    attempt: int
    """Counted from 1; begins anew after progress."""
    max_attempts: int
    messages: Sequence[UIMessage]
    """The transcript."""
    partial: UIMessage | None
    """What there is of the answer."""
    created_at: int
    """When the turn was accepted, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRecoveryExhausted:
    """A turn that was given up."""

    context: ChatRecoveryContext
    reason: ExhaustedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRecoveryDecision:
    """What `on_chat_recovery` wants done with a lost turn."""

    persist: bool = True
    """Whether what there is of the answer is kept; results of tools always are."""
    proceed: bool = True
    """Whether the turn goes on; else it ends with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRecovery:
    """How hard lost turns are tried to be brought to their end (CR-002).

    Numbers that make no sense fall back to the defaults. It is read before `on_start`, so it has to
    be set in the class or its `__init__`.
    """

    max_attempts: int = _MOST_ATTEMPTS
    """Attempts without progress in between."""
    stable_timeout: float = _STABLE_TIMEOUT
    """Seconds that an attempt waits for other turns to end."""
    no_progress_timeout: float = _NO_PROGRESS_TIMEOUT
    """Seconds without anything new, over all attempts."""
    max_recovery_work: int = _MOST_WORK
    """Pieces of new content that all attempts together may bring."""
    max_oom_retries: int = _MOST_OOM_RETRIES
    """How often the turn may run out of memory."""
    hook_timeout: float = _HOOK_TIMEOUT
    """Seconds that `on_chat_recovery` may take; infinity for ever."""
    terminal_message: str = TERMINAL_MESSAGE
    """What clients are told of a turn that was given up."""
    should_keep_recovering: Callable[[ChatRecoveryContext], bool] | None = None
    """Asked from the second attempt on; False gives the turn up. Not a coroutine function."""
    on_exhausted: Callable[[ChatRecoveryExhausted], Awaitable[object] | object] | None = None
    """Told of a turn that was given up; at least once."""

    def __post_init__(self) -> None:
        defaults = {
            "stable_timeout": _STABLE_TIMEOUT,
            "no_progress_timeout": _NO_PROGRESS_TIMEOUT,
            "max_recovery_work": _MOST_WORK,
            "max_oom_retries": _MOST_OOM_RETRIES,
        }
        for name, default in defaults.items():
            if not getattr(self, name) >= 0:
                object.__setattr__(self, name, default)
        if not self.hook_timeout > 0:
            object.__setattr__(self, "hook_timeout", _HOOK_TIMEOUT)
        attempts = self.max_attempts if self.max_attempts >= 0 else _MOST_ATTEMPTS
        object.__setattr__(self, "max_attempts", max(1, attempts))


def resolved(given: object) -> ChatRecovery | None:
    """What an agent's `chat_recovery` means; None when lost turns are not taken up (D4)."""
    if isinstance(given, ChatRecovery):
        return given
    return None if given is False or given is None else ChatRecovery()
