"""Making, reaching, stopping and deleting the agents below one agent."""

from collections.abc import Callable

from ramet.core.paths import AgentPath
from ramet.core.ports import ClassNames, Lifecycles
from ramet.errors import AgentNotRegistered, InvalidAgentName, NotASubAgent
from ramet.protocol.names import kebab
from ramet.protocol.url import check_agent_name
from ramet.sub_agents.registry import SubAgentInfo, SubAgentRegistry

RESERVED_SEGMENT = "sub"


class SubAgents:
    """The sub-agents of one agent."""

    def __init__(
        self,
        path: AgentPath,
        *,
        registry: SubAgentRegistry,
        lifecycles: Lifecycles,
        classes: ClassNames,
        make_stub: Callable[[AgentPath], object],
    ) -> None:
        self._path = path
        self._registry = registry
        self._lifecycles = lifecycles
        self._classes = classes
        self._make_stub = make_stub

    async def get(self, cls: type | str, name: str) -> object:
        """Open a sub-agent, made if it is new, and return a stub of it.

        A new one is registered before it is opened; when its first start fails it is forgotten
        again.
        """
        class_name = self._spawnable(cls, name)
        target = self._path.child(class_name, name)
        added = self._registry.add(class_name, name)
        try:
            await self._lifecycles.open(target)
        except BaseException:
            if added:
                self._registry.remove(class_name, name)
            raise
        return self._make_stub(target)

    async def delete(self, cls: type | str, name: str) -> None:
        """Stop a sub-agent and those below it and remove all they stored; harmless when absent."""
        class_name = self._classes.name_of(cls)
        await self._lifecycles.delete(self._path.child(class_name, name))
        self._registry.remove(class_name, name)

    def abort(self, cls: type | str, name: str, reason: str) -> None:
        """Stop a sub-agent's instance; waiting calls get the reason, what it stored stays."""
        self._lifecycles.abort(self._path.child(self._classes.name_of(cls), name), reason)

    def has(self, cls: type | str, name: str) -> bool:
        """Whether the sub-agent was made and not deleted since."""
        return self._registry.has(self._known_name(cls), name)

    def list(self, cls: type | str | None = None) -> list[SubAgentInfo]:
        """The sub-agents in the order they were made."""
        return self._registry.list(None if cls is None else self._known_name(cls))

    def parent(self, cls: type | str) -> object:
        """A stub of the agent right above.

        Raises:
            NotASubAgent: There is none, or it is of another class.
        """
        above = self._path.parent
        if above is None:
            raise NotASubAgent(f"{self._path} is not a sub-agent: it has no parent")
        expected = self._classes.name_of(cls)
        if above.leaf.class_name != expected:
            raise NotASubAgent(
                f"The parent of {self._path} is a {above.leaf.class_name!r}, not a {expected!r}"
            )
        return self._make_stub(above)

    def _spawnable(self, cls: type | str, name: str) -> str:
        class_name = self._classes.name_of(cls)
        if kebab(class_name) == RESERVED_SEGMENT:
            raise AgentNotRegistered(
                f"The class {class_name!r} cannot be a sub-agent: its URL form is 'sub'"
            )
        reason = check_agent_name(name)
        if reason is not None:
            raise InvalidAgentName(reason)
        return class_name

    def _known_name(self, cls: type | str) -> str:
        """The registered name; a name that nobody registered simply has no sub-agents."""
        try:
            return self._classes.name_of(cls)
        except AgentNotRegistered:
            return cls if isinstance(cls, str) else cls.__name__
