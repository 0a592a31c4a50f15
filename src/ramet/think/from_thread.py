"""For synchronous tools and answers, which run in threads: what they may ask of their agent."""

import asyncio

from ramet.agent_tools.verbs import AgentToolVerbs
from ramet.core.current import current_agent
from ramet.core.threads import calling_loop
from ramet.errors import NoCurrentAgent


def report_progress(
    *,
    fraction: float | None = None,
    message: str | None = None,
    phase: str | None = None,
    milestone: str | None = None,
    data: object = None,
    persist: bool = False,
) -> str:
    """Do what the agent's `report_progress` does, from a synchronous tool or answer; waits for it.

    Raises:
        NoCurrentAgent: The code runs in no thread of an agent.
        RuntimeError: The code runs in the event loop: await the agent's own `report_progress`.
        ValueError: The fraction is not finite, the milestone has no name, or the data is not JSON.
    """
    agent, loop = current_agent(), calling_loop()
    if not isinstance(agent, AgentToolVerbs) or loop is None:
        raise NoCurrentAgent(
            "ramet.from_thread was used outside of an agent: use it in a synchronous tool"
        )
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the one question that cannot raise
        raise RuntimeError("In async code await the agent's own `report_progress` instead")
    reported = agent.report_progress(
        fraction=fraction,
        message=message,
        phase=phase,
        milestone=milestone,
        data=data,
        persist=persist,
    )
    return asyncio.run_coroutine_threadsafe(reported, loop).result()
