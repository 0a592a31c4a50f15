"""Checks what a caller asks of a detached run; nothing is written unless all of it is right."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, get_args

from ramet.agent_tools.detached_options import Detached, Milestones, Notify
from ramet.agent_tools.detachment import Detachment, MilestoneMode, MilestoneWishes
from ramet.core.options import AgentOptions
from ramet.errors import InvalidArguments

NOTIFY_FINISH: Final = "_cfDetachedNotifyFinish"
"""The stored name of the callback that tells the chat; users cannot name it (D16)."""

_LONGEST_MS: Final = 2**53
"""A budget above this is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedTerms:
    """What was asked for, checked."""

    on_finish: str | None
    notify_source: str | None
    max_budget_ms: int | None
    no_progress_ms: int | None
    milestones: MilestoneWishes | None

    def begun(self, now: int) -> Detachment:
        """The terms of a run that starts now (AT-230)."""
        budget = self.max_budget_ms
        return Detachment(
            on_finish=self.on_finish,
            notify_source=self.notify_source,
            max_budget_at=None if budget is None else now + budget,
            no_progress_ms=self.no_progress_ms,
            milestones=self.milestones,
        )


def checked_terms(
    asked: object, options: AgentOptions, *, callback: Callable[[object], str], in_chat: bool
) -> DetachedTerms:
    """Check what `detached=` was given (AT-019, AT-231, AT-233, AT-235, D31).

    Args:
        asked: True, or a `Detached`.
        options: The class's, for budgets that are left out.
        callback: Gives the name under which a method of the agent is stored, or raises.
        in_chat: Whether the agent has a chat that can be told something.

    Raises:
        MethodNotFound: `on_finish` names no method of the agent.
        InvalidArguments: Something is of a wrong kind; the message says what.
        ValueError: A budget is negative, zero where it must not be, or not a number.
    """
    wishes = Detached() if asked is True else asked
    if not isinstance(wishes, Detached):
        raise InvalidArguments(f"detached is True, False or a ramet.Detached, not {asked!r}")
    on_finish = None if wishes.on_finish is None else callback(wishes.on_finish)
    source = _source(wishes.notify)
    milestones = _milestones(wishes.on_milestones)
    if on_finish is None and wishes.notify is not False:
        _need_chat("notify", in_chat=in_chat)
        on_finish = NOTIFY_FINISH
    if milestones is not None:
        _need_chat("on_milestones", in_chat=in_chat)
    return DetachedTerms(
        on_finish=on_finish,
        notify_source=source,
        max_budget_ms=_max_budget(wishes.max_budget, options),
        no_progress_ms=_no_progress(wishes.no_progress_budget, options),
        milestones=milestones,
    )


def _need_chat(what: str, *, in_chat: bool) -> None:
    """Refuse a wish that only a chat can fulfil: nothing would ever come of it."""
    if not in_chat:
        raise InvalidArguments(
            f"{what} has a chat told, and this agent has none: use on_finish and on_progress, "
            "or derive it from Think or AIChatAgent"
        )


def _source(notify: object) -> str | None:
    if isinstance(notify, bool):
        return None
    if not isinstance(notify, Notify):
        raise InvalidArguments(f"notify is True, False or a ramet.Notify, not {notify!r}")
    source: object = notify.source
    if source is not None and (not isinstance(source, str) or not source):
        raise InvalidArguments(f"The source of a notice must be a text, not {source!r}")
    return source


def _max_budget(asked: object, options: AgentOptions) -> int | None:
    if asked is None:
        return _milliseconds(options.detached_max_budget)
    seconds = _seconds("max_budget", asked)
    if not seconds > 0:
        raise ValueError(f"max_budget must be a positive number of seconds, not {asked!r}")
    return _milliseconds(seconds)


def _no_progress(asked: object, options: AgentOptions) -> int | None:
    if asked is None:
        return _milliseconds(options.detached_no_progress_budget)
    seconds = _seconds("no_progress_budget", asked)
    if not seconds >= 0:
        raise ValueError(f"no_progress_budget must be zero or more seconds, not {asked!r}")
    return _milliseconds(seconds)


def _seconds(name: str, asked: object) -> float:
    if isinstance(asked, timedelta):
        return asked.total_seconds()
    if isinstance(asked, bool) or not isinstance(asked, int | float):
        raise InvalidArguments(f"{name} is in seconds or a timedelta, not {asked!r}")
    try:
        return float(asked)
    except OverflowError as error:
        raise InvalidArguments(f"{name} is too large a number of seconds") from error


def _milliseconds(seconds: float) -> int | None:
    """Whole milliseconds, rounded up (D33); None for a time that never comes."""
    return math.ceil(seconds * 1000) if seconds * 1000 < _LONGEST_MS else None


def _milestones(asked: object) -> MilestoneWishes | None:
    wishes = asked if isinstance(asked, Milestones) else None
    names: object = wishes.names if wishes else asked
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidArguments(f"on_milestones is a list of names or a Milestones, not {names!r}")
    mode = _mode(wishes.mode if wishes else "narrate")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidArguments(f"A milestone must have a name, not {name!r}")
    return MilestoneWishes(names=tuple(dict.fromkeys(names)), mode=mode) if names else None


def _mode(mode: object) -> MilestoneMode:
    modes: tuple[MilestoneMode, ...] = get_args(MilestoneMode)
    for known in modes:
        if mode == known:
            return known
    raise InvalidArguments(f"The mode of milestones is one of {', '.join(modes)}, not {mode!r}")
