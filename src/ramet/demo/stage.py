"""What the demo's agents share in one process: the model, the corpus and the folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic_ai.models import Model

from ramet.demo.corpus import Corpus
from ramet.demo.folder import Folder
from ramet.demo.tasks import Task
from ramet.errors import NotRunning


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The surroundings of the demo's agents."""

    model: Model
    model_label: str
    """The model as the page names it."""
    offline: bool
    """Whether the model works by rule, without a network."""
    corpus: Corpus
    """What researchers search and read."""
    folder: Folder
    """What planners inspect, and where builds run."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """What builds may run."""


class Staged:
    """An agent of the demo: finds what the process was set up with."""

    _stage: ClassVar[Stage | None] = None

    @staticmethod
    def set_stage(stage: Stage) -> None:
        """Set the process up; before the first agent is opened."""
        Staged._stage = stage

    @property
    def stage(self) -> Stage:
        """What the process was set up with."""
        if Staged._stage is None:
            raise NotRunning("The demo is not set up: start it with `ramet demo`")
        return Staged._stage
