"""Where an agent stands: the classes and names from its root down to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ramet.core.json import JsonValue


@dataclass(frozen=True, slots=True)
class PathStep:
    """One agent among its siblings: its class name and its own name."""

    class_name: str
    name: str


@dataclass(frozen=True, slots=True)
class AgentPath:
    """The steps from a root agent down to one agent, root first; never empty."""

    steps: tuple[PathStep, ...]

    @classmethod
    def of(cls, *steps: tuple[str, str]) -> "AgentPath":
        """Build a path from (class name, name) pairs, root first."""
        return cls(tuple(PathStep(class_name, name) for class_name, name in steps))

    @classmethod
    def from_json(cls, stored: JsonValue) -> "AgentPath":
        """Read a path in the form that `to_json` gives.

        Raises:
            ValueError: It is something else.
        """
        match stored:
            case [_, *_]:
                return cls(tuple(_step(pair) for pair in stored))
        raise ValueError(f"{stored!r} is not the path of an agent")

    @property
    def leaf(self) -> PathStep:
        """The agent itself."""
        return self.steps[-1]

    @property
    def root(self) -> "AgentPath":
        """The path of the top-level agent above this one (itself, for a root)."""
        return AgentPath(self.steps[:1])

    @property
    def parent(self) -> "AgentPath | None":
        """The path of the agent right above; None for a root."""
        return AgentPath(self.steps[:-1]) if len(self.steps) > 1 else None

    @property
    def is_root(self) -> bool:
        """Whether nothing is above this agent."""
        return len(self.steps) == 1

    def child(self, class_name: str, name: str) -> "AgentPath":
        """The path of a sub-agent of this agent."""
        return AgentPath((*self.steps, PathStep(class_name, name)))

    def contains(self, other: "AgentPath") -> bool:
        """Whether `other` is this agent or lies below it; compared by steps, never by text."""
        return other.steps[: len(self.steps)] == self.steps

    def lineage(self) -> Iterable["AgentPath"]:
        """Every path from the root down to this one, both included."""
        return (AgentPath(self.steps[: depth + 1]) for depth in range(len(self.steps)))

    def renamed(self, names: Mapping[str, str]) -> "AgentPath":
        """The path with today's class name in every step whose class had another one before."""
        if not any(step.class_name in names for step in self.steps):
            return self
        steps = ((names.get(step.class_name, step.class_name), step.name) for step in self.steps)
        return AgentPath.of(*steps)

    def to_json(self) -> JsonValue:
        """The form in which a path is stored: a list of [class name, name] pairs."""
        return [[step.class_name, step.name] for step in self.steps]

    def __str__(self) -> str:
        return "/".join(f"{step.class_name}:{step.name}" for step in self.steps)


def _step(stored: JsonValue) -> PathStep:
    match stored:
        case [str(class_name), str(name)]:
            return PathStep(class_name, name)
    raise ValueError(f"{stored!r} is not a step of an agent's path")
