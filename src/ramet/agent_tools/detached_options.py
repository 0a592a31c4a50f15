"""What a caller asks for when it lets go of a run: `Detached` with its parts."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ramet.agent_tools.detachment import MilestoneMode
from ramet.core.durations import Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Has a chat agent told of the end of a run."""

    source: str | None = None
    """Says where the run came from, in the metadata of the message and in `RunInfo`."""


@dataclass(frozen=True, slots=True)
class Milestones:
    """Has a chat agent told of milestones of a run, each once."""

    names: Sequence[str]
    """The milestones that count; others are not told."""
    _: KW_ONLY
    mode: MilestoneMode = "narrate"
    """"narrate" adds a message to the chat, "react" a question that the agent answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """How a run that nobody waits for reports back, and how long it may take."""

    on_finish: object = None
    """The method of the agent that is called with `(run, result)`, bound or by its name."""
    max_budget: Duration | None = None
    """Seconds after which the run is given up; infinity for never, None as the class says."""
    no_progress_budget: Duration | None = None
    """Seconds of silence after which a run that has reported is given up; 0 for never."""
    notify: bool | Notify = False
    """Whether the chat is told of the end, without `on_finish`; only chat agents."""
    on_milestones: Sequence[str] | Milestones = ()
    """The milestones that the chat is told of; refused for others than chat agents."""
