"""What is stored of a run that was let go of: how it reports back, and how far that has come."""

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ramet.core.json import JsonObject, JsonValue, dumps, loads_or_raw
from ramet.storage import Row

SlotName: TypeAlias = Literal["finish", "give-up"]
"""The two deliveries of a detached run: its end, and that its parent waits no longer (AT-251)."""
MilestoneMode: TypeAlias = Literal["narrate", "react"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneWishes:
    """The milestones that the chat is to be told of."""

    names: tuple[str, ...]
    mode: MilestoneMode = "narrate"
    noticed: tuple[str, ...] = ()
    """Those that it was told of."""

    def waits_for(self, name: str) -> bool:
        """Whether the chat is still to be told of a milestone of that name (AT-277)."""
        return name in self.names and name not in self.noticed

    def without(self, name: str) -> "MilestoneWishes":
        """The wishes once the chat was told of a milestone."""
        return replace(self, noticed=(*self.noticed, name))

    def text(self) -> str:
        """The wishes as they are stored (AT-031)."""
        stored: JsonObject = {"names": [*self.names], "mode": self.mode}
        if self.noticed:
            stored["noticed"] = [*self.noticed]
        return dumps(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One delivery of a run."""

    claimed_at: int | None = None
    """When somebody last took it on, in milliseconds since the epoch."""
    delivered_at: int | None = None
    """When it was made; None while it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detachment:
    """How a run reports back."""

    on_finish: str | None = None
    """The method that is called with its end."""
    notify_source: str | None = None
    max_budget_at: int | None = None
    """The moment after which it is given up; None for never."""
    no_progress_ms: int | None = None
    """The silence after which it is given up, once it has given a sign; 0 and None for never."""
    milestones: MilestoneWishes | None = None
    last_progress_at: int | None = None
    """When its last progress or milestone came."""
    class_gone_since: int | None = None
    """When it was found that its child's class is not registered any more; None while it is."""
    finish: Slot = field(default_factory=Slot)
    give_up: Slot = field(default_factory=Slot)

    def slot(self, name: SlotName) -> Slot:
        """One of the two deliveries."""
        return self.finish if name == "finish" else self.give_up


def detachment_of(row: Row) -> Detachment:
    """Read the columns of a detached run."""
    return Detachment(
        on_finish=row["detached_on_finish"],
        notify_source=row["detached_notify_source"],
        max_budget_at=row["detached_max_budget_at"],
        no_progress_ms=row["detached_no_progress_budget_ms"],
        milestones=_wishes(loads_or_raw(row["detached_on_milestones"])),
        last_progress_at=row["last_progress_at"],
        class_gone_since=row["class_gone_since"],
        finish=Slot(claimed_at=row["finish_claimed_at"], delivered_at=row["finish_delivered_at"]),
        give_up=Slot(
            claimed_at=row["give_up_claimed_at"], delivered_at=row["give_up_delivered_at"]
        ),
    )


def _wishes(stored: JsonValue) -> MilestoneWishes | None:
    """The wishes of a column; a bare list of names is to be narrated (AT-031)."""
    if isinstance(stored, list):
        stored = {"names": stored}
    names = _texts(stored.get("names")) if isinstance(stored, dict) else ()
    if not isinstance(stored, dict) or not names:
        return None
    return MilestoneWishes(
        names=names,
        mode="react" if stored.get("mode") == "react" else "narrate",
        noticed=_texts(stored.get("noticed")),
    )


def _texts(stored: JsonValue) -> tuple[str, ...]:
    return (
        tuple(each for each in stored if isinstance(each, str)) if isinstance(stored, list) else ()
    )
