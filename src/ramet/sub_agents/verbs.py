"""What an agent can do with its sub-agents: the methods that `Agent` gains from this feature."""

from typing import TypeVar

from ramet.sub_agents.feature import SubAgents
from ramet.sub_agents.registry import SubAgentInfo

A = TypeVar("A")


class SubAgentVerbs:
    """The sub-agent methods of an agent."""

    _ramet_sub_agents: SubAgents

    async def sub_agent(self, cls: type[A], name: str) -> A:
        """Open a sub-agent, made if it is new, and return a stub that calls its async methods.

        Its `on_start` has run when this returns. What it stores is its own and outlives restarts.

        Raises:
            AgentNotRegistered: The class was not given to `App`, or its URL form is "sub".
            InvalidAgentName: The name is empty, ".", "..", too long or holds NUL.
        """
        return _as_instance(cls, await self._ramet_sub_agents.get(cls, name))

    async def delete_sub_agent(self, cls: type | str, name: str) -> None:
        """Stop a sub-agent and those below it and remove all they stored; harmless when absent."""
        await self._ramet_sub_agents.delete(cls, name)

    def abort_sub_agent(self, cls: type | str, name: str, reason: str = "aborted") -> None:
        """Stop a sub-agent's instance; waiting calls raise `InstanceGone` with the reason.

        What it stored stays; the next access opens it again.
        """
        self._ramet_sub_agents.abort(cls, name, reason)

    def has_sub_agent(self, cls: type | str, name: str) -> bool:
        """Whether the sub-agent was made and not deleted since."""
        return self._ramet_sub_agents.has(cls, name)

    def list_sub_agents(self, cls: type | str | None = None) -> list[SubAgentInfo]:
        """The sub-agents in the order they were made, of one class or of all."""
        return self._ramet_sub_agents.list(cls)

    async def parent_agent(self, cls: type[A]) -> A:
        """A stub of the agent right above this one.

        Raises:
            NotASubAgent: This is a root agent, or the parent is of another class.
        """
        return _as_instance(cls, self._ramet_sub_agents.parent(cls))


def _as_instance(cls: type[A], stub: object) -> A:
    """Give a stub the type of the class it stands for, so that editors know its methods."""
    del cls
    return stub  # type: ignore[return-value] # a stub answers to the async methods of the class
