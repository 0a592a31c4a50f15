"""The tables that every agent has, whatever kind it is."""

from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.fibers.schema import FIBER_MIGRATIONS
from ramet.queue.schema import QUEUE_MIGRATIONS
from ramet.schedules.schema import SCHEDULE_MIGRATIONS
from ramet.sub_agents.registry import SUB_AGENT_MIGRATIONS

AGENT_MIGRATIONS = (
    SUB_AGENT_MIGRATIONS,
    AGENT_TOOL_MIGRATIONS,
    SCHEDULE_MIGRATIONS,
    QUEUE_MIGRATIONS,
    FIBER_MIGRATIONS,
)
