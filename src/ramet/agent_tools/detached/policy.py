"""What is decided about detached runs, without doing it: cadence, budgets, when to look again."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from ramet.agent_tools.detachment import Slot
from ramet.agent_tools.records import Inspection
from ramet.agent_tools.stored_run import StoredRun

CADENCE: Final = (5, 15, 30, 120)
"""Seconds to the first tick, and from each tick to the next; the last one goes on (AT-020)."""
LEASE_MS: Final = 60_000
"""How long a delivery that was taken on keeps others away (AT-246)."""
GAP_SECONDS: Final = LEASE_MS / 1000
"""How long a delivery may keep the turns of its chat waiting."""
LONGEST_DELIVERY: Final = 3600.0
"""Seconds after which a delivery that has not returned is broken off, and made again."""
HELD_UP: Final = (
    "{what} of the run {run_id!r} has kept the turns of its chat waiting for {seconds:g} seconds: "
    "they go on beside it"
)
BROKEN_OFF: Final = "It has not returned in {seconds:g} seconds"
MANY_RUNS: Final = 50
"""How many detached runs may be under way before that looks like a fault (AT-266)."""
NEVER_BEGUN_MS: Final = 120_000
"""How long a run may be registered without its child knowing of it before it counts as lost."""
CLASS_GONE_MS: Final = 600_000
"""How long a run waits for its child's class to be registered again."""

GiveUp: TypeAlias = Literal["budget-exceeded", "no-progress"]


def next_index(index: int) -> int:
    """Which pause of the cadence follows a tick (AT-239)."""
    return min(max(index, 0) + 1, len(CADENCE) - 1)


def last_signal(run: StoredRun, inspection: Inspection | None, *, now: int) -> int | None:
    """When a run last gave a sign, by its row and its child; None when it never did (AT-257).

    A moment that is still to come tells of a wall clock that was set back, and does not count.
    """
    noted = run.detachment.last_progress_at if run.detachment else None
    moments = [*_signs(inspection), *(() if noted is None else (noted,))]
    return max((moment for moment in moments if moment <= now), default=None)


def only_sign_is_to_come(run: StoredRun, inspection: Inspection | None, *, now: int) -> bool:
    """Whether a run has given signs, but by a clock that was set back since."""
    signs = _signs(inspection)
    return bool(signs) and last_signal(run, inspection, now=now) is None


def is_ahead(run: StoredRun, *, now: int) -> bool:
    """Whether a row tells of something later than now: the wall clock was set back."""
    terms = run.detachment
    if terms is None:
        return False
    moments = (
        run.started_at,
        terms.last_progress_at,
        terms.class_gone_since,
        terms.finish.claimed_at,
        terms.give_up.claimed_at,
    )
    return any(moment is not None and moment > now for moment in moments)


def _signs(inspection: Inspection | None) -> list[int]:
    if inspection is None:
        return []
    progress = inspection.progress
    milestones = [milestone.at for milestone in inspection.milestones]
    return milestones if progress is None else [*milestones, progress.at]


def over_budget(run: StoredRun, inspection: Inspection | None, *, now: int) -> GiveUp | None:
    """Why a run whose child is at work is given up; None while it is not (AT-254 … AT-261)."""
    terms = run.detachment
    if terms is None:
        return None
    if terms.max_budget_at is not None and now >= terms.max_budget_at:
        return "budget-exceeded"
    signal, window = last_signal(run, inspection, now=now), terms.no_progress_ms
    if signal is not None and window and now - signal >= window:
        return "no-progress"
    return None


def was_never_begun(run: StoredRun, inspection: Inspection | None, *, now: int) -> bool:
    """Whether the process that registered a run died before its child heard of it.

    So it is as well with a run that was given up: of a child that knows nothing, nothing will come.
    """
    waited = now - run.started_at
    begun = run.status not in {"starting", "interrupted"}
    return not begun and inspection is None and waited >= NEVER_BEGUN_MS


def class_stays_away(run: StoredRun, *, now: int) -> bool:
    """Whether the class of a run's child has not been registered for so long that it is lost."""
    since = run.detachment.class_gone_since if run.detachment else None
    return since is not None and now - since >= CLASS_GONE_MS


def claimable(slot: Slot, *, now: int) -> bool:
    """Whether a delivery can be taken on now; the store decides it again, atomically."""
    free = slot.claimed_at is None or slot.claimed_at <= now - LEASE_MS
    return slot.delivered_at is None and free


def next_tick_ms(runs: Iterable[StoredRun], *, index: int, now: int) -> int:
    """When to look again: by the cadence, or before if a budget or a lease ends sooner."""
    soonest, latest = now + CADENCE[0] * 1000, now + CADENCE[index] * 1000
    moments = [moment for run in runs for moment in _ends(run) if moment > now]
    return min([latest, *(max(moment, soonest) for moment in moments)])


def _ends(run: StoredRun) -> Iterable[int]:
    """The moments at which something becomes due of a run, as far as its row tells."""
    terms = run.detachment
    if terms is None:
        return
    for slot in (terms.finish, terms.give_up):
        if slot.claimed_at is not None and slot.delivered_at is None:
            yield slot.claimed_at + LEASE_MS
    if terms.class_gone_since is not None:
        yield terms.class_gone_since + CLASS_GONE_MS
    if run.status not in {"starting", "running"}:
        return
    if terms.max_budget_at is not None:
        yield terms.max_budget_at
    if terms.last_progress_at is not None and terms.no_progress_ms:
        yield terms.last_progress_at + terms.no_progress_ms
