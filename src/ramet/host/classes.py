"""The agent classes of one host by their names and URL forms (D16)."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ramet.agent.build import check_agent_class
from ramet.core.options import AgentOptions, resolve_options
from ramet.core.paths import AgentPath
from ramet.errors import AgentNotRegistered, ConfigurationError, DuplicateAgentName
from ramet.protocol.names import kebab


class ClassTable:
    """Which classes there are, and which of them may be roots."""

    def __init__(self, *, roots: Iterable[type], sub_agents: Iterable[type] = ()) -> None:
        self._classes: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._former: dict[str, str] = {}
        self._segments: dict[str, str] = {}
        self._options: dict[type, AgentOptions] = {}
        self._roots: dict[str, type] = {}
        for cls in _listed(roots, "agents"):
            self._roots[self._add(cls)] = cls
        for cls in _listed(sub_agents, "sub_agents"):
            if cls not in self._names:
                self._add(cls)
        self._add_former_names()

    @property
    def roots(self) -> Mapping[str, type]:
        """The classes that clients and other agents may address without a parent."""
        return MappingProxyType(self._roots)

    def is_root(self, name: str) -> bool:
        """Whether the class that has or had that name may be a root."""
        return self._former.get(name, name) in self._roots

    @property
    def renamed(self) -> Mapping[str, str]:
        """The names that classes had before, each with the name of today."""
        return MappingProxyType(self._former)

    def name_of(self, cls: type | str) -> str:
        """The registered name of a class, or of a name it has or had.

        Raises:
            AgentNotRegistered: It was not given to `App`.
        """
        if isinstance(cls, str):
            name = cls if cls in self._classes else self._former.get(cls)
        else:
            name = self._names.get(cls)
        if name is None:
            shown = cls if isinstance(cls, str) else cls.__name__
            raise AgentNotRegistered(
                f"The agent class {shown!r} is not registered: "
                "give it to App(agents=[…]) or App(sub_agents=[…])"
            )
        return name

    def class_of(self, name: str) -> type:
        """The class registered under a name or a former name; raises like `name_of`."""
        return self._classes[self.name_of(name)]

    def by_segment(self, segment: str) -> str | None:
        """The registered name whose URL form is `segment`."""
        return self._segments.get(segment)

    def known_as(self, path: AgentPath) -> Iterator[AgentPath]:
        """The path under today's class names, then under every mix with the former ones (D16)."""
        choices = [
            [(name, step.name) for name in self._names_of(step.class_name)]
            for step in path.renamed(self._former).steps
        ]
        return (AgentPath.of(*steps) for steps in itertools.product(*choices))

    def options_of(self, cls: type) -> AgentOptions:
        """The resolved options of a registered class."""
        return self._options[cls]

    def _names_of(self, name: str) -> tuple[str, ...]:
        cls = self._classes.get(name)
        return (name,) if cls is None else (name, *self._options[cls].former_names)

    def _add(self, cls: type) -> str:
        if not isinstance(cls, type):
            raise ConfigurationError(f"{cls!r} is not a ramet.Agent class")
        check_agent_class(cls)
        options = resolve_options(cls)
        name = options.name or cls.__name__
        segment = kebab(name)
        other = self._segments.get(segment)
        if other is not None and self._classes[other] is not cls:
            raise DuplicateAgentName(
                f"The agent classes {_where(self._classes[other])} and {_where(cls)} share the "
                f"URL form {segment!r}: give one of them options = AgentOptions(name=…)"
            )
        self._classes[name] = cls
        self._names[cls] = name
        self._segments[segment] = name
        self._options[cls] = options
        return name

    def _add_former_names(self) -> None:
        for name, cls in self._classes.items():
            for former in self._options[cls].former_names:
                taken = former in self._classes or self._former.get(former, name) != name
                if taken:
                    raise DuplicateAgentName(
                        f"The former name {former!r} of {_where(cls)} belongs to another class"
                    )
                self._former[former] = name


def _where(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _listed(classes: object, argument: str) -> Iterable[type]:
    if not isinstance(classes, Iterable) or isinstance(classes, type | str):
        shown = classes.__name__ if isinstance(classes, type) else "…"
        raise ConfigurationError(
            f"{argument} is a list of classes, not {classes!r}: write {argument}=[{shown}]"
        )
    return classes
