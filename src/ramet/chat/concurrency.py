"""Decides what becomes of a question that is sent while another is answered (TQ-016 … TQ-020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from ramet.core.json import JsonObject
from ramet.errors import InvalidOptions
from ramet.protocol.messages import parts_of, text_of, with_parts
from ramet.protocol.ui_message import UIMessage

QUIET_SECONDS: Final = 0.75
JOIN: Final = "\n\n"

_NAMES: Final = ("queue", "latest", "merge", "drop")


@dataclass(frozen=True, slots=True)
class Debounce:
    """Answer the newest of several overlapping questions, once none has come for a while."""

    quiet: float | timedelta = QUIET_SECONDS
    """Seconds without a new question; what is no duration counts as 0.75."""

    @property
    def seconds(self) -> float:
        """The quiet period in seconds."""
        quiet: object = self.quiet
        seconds = quiet.total_seconds() if isinstance(quiet, timedelta) else quiet
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            return QUIET_SECONDS
        return float(seconds) if math.isfinite(seconds) and seconds >= 0 else QUIET_SECONDS


MessageConcurrency: TypeAlias = Literal["queue", "latest", "merge", "drop"] | Debounce
"""What becomes of questions that overlap.

`queue`: all are answered in order. `latest`: only the newest of those that wait. `merge`: those
that wait are answered together. `drop`: the new one is given back. `Debounce`: like `latest`, after
a quiet period.
"""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Answer it after those before it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Give it back: it is not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """It takes the place of the questions that wait."""

    merges: bool = False
    """Whether it is answered together with them."""
    quiet: float = 0.0
    """Seconds that it waits for a newer one."""


Admission: TypeAlias = Enqueue | Drop | Supersede


def checked_policy(value: object) -> MessageConcurrency:
    """A policy as it was set on an agent class.

    Raises:
        InvalidOptions: There is no such policy.
    """
    if isinstance(value, Debounce):
        return value
    match value:
        case "queue" | "latest" | "merge" | "drop":
            return value
    raise InvalidOptions(
        f"message_concurrency is one of {', '.join(map(repr, _NAMES))} or a Debounce, not {value!r}"
    )


def admission_of(policy: MessageConcurrency, *, overlaps: bool) -> Admission:
    """What becomes of a question; `overlaps`: another one is running or waiting."""
    if not overlaps:
        return Enqueue()
    match policy:
        case "queue":
            return Enqueue()
        case "drop":
            return Drop()
        case "latest":
            return Supersede()
        case "merge":
            return Supersede(merges=True)
        case Debounce():
            return Supersede(quiet=policy.seconds)


def merged_question(questions: Sequence[UIMessage]) -> UIMessage:
    """Several questions as one, under the id of the last: their texts, then all other parts."""
    texts = [text for message in questions if (text := text_of(message))]
    others = [part for each in questions for part in parts_of(each) if part.get("type") != "text"]
    joined: list[JsonObject] = [{"type": "text", "text": JOIN.join(texts)}] if texts else []
    return with_parts(questions[-1], [*joined, *others])
