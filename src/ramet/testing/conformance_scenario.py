"""What a conformance check needs to know of a child: inputs, and how to steer its runs."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final


class NotGiven:
    """The type of an input that a scenario does not have."""

    def __repr__(self) -> str:
        """As it reads in a signature."""
        return "NOT_GIVEN"


NOT_GIVEN: Final = NotGiven()

Step = Callable[[], Awaitable[object] | object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildScenario:
    """What the runs of a child are asked; checks that need what is not given are skipped."""

    input: object = "go"
    """What a run is asked that completes by itself."""
    slow_input: object = NOT_GIVEN
    """What a run is asked that gives at least one chunk and then goes on until `release`."""
    release: Step | None = None
    """Lets slow runs go on to their end; may be async."""
    failing_input: object = NOT_GIVEN
    """What a run is asked that fails."""
    prepare: Step | None = None
    """Sets the stage before each check, in the event loop of the check; may be async."""
    sub_agents: Iterable[type] = ()
    """The classes of children that the child has itself."""
    timeout: float = 5.0
    """Seconds of real time that a run may take, and a check may wait."""
