"""Builds the live instance of an agent class inside the surroundings that a host gives."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from ramet.agent.agent import Agent
from ramet.agent.context import AgentContext
from ramet.agent.runtime import AgentRuntime
from ramet.core.current import working_for
from ramet.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class BuiltAgent:
    """A new instance: the user's object and the runtime that moves it; not started yet."""

    agent: Agent[object]
    runtime: AgentRuntime


def build_agent(
    context: AgentContext, *, before_init: Callable[[BuiltAgent], object]
) -> BuiltAgent:
    """Make the user's object with its features in place, then run its `__init__`.

    `before_init` is called in between, for whoever has to know the agent before its code runs.
    """
    cls = check_agent_class(context.cls)
    agent = cls.__new__(cls)
    runtime = cls._runtime_type(
        context,
        agent,
        rpc_table=cls._ramet_rpc_table,
        overridden=lambda name: overrides(cls, name),
    )
    agent._bind(runtime)
    built = BuiltAgent(agent, runtime)
    before_init(built)
    with working_for(agent):
        agent.__init__()  # type: ignore[misc] # the second half of construction, once the name is known
    return built


def overrides(cls: type, name: str) -> bool:
    """Whether a class has its own version of a method of `Agent`."""
    return inspect.getattr_static(cls, name) is not inspect.getattr_static(Agent, name)


def check_agent_class(cls: type) -> type[Agent[object]]:
    """The class as an agent class; raises `ConfigurationError` when it is none."""
    if not issubclass(cls, Agent):
        raise ConfigurationError(f"{cls.__name__} is not a ramet.Agent")
    return cls
