"""The tables of agent-tool runs in a parent's database, as numbered schema changes."""

from ramet.agent_tools.frame_store import create_frames
from ramet.agent_tools.run_store import (
    add_class_gone,
    add_input_digest,
    create_runs,
    index_by_status,
    index_outstanding,
)
from ramet.storage import Database, Migration


def _first(database: Database) -> None:
    create_runs(database)
    create_frames(database)


AGENT_TOOL_MIGRATIONS: tuple[Migration, ...] = (
    Migration(component="agent:agent_tools", number=1, apply=_first),
    Migration(component="agent:agent_tools", number=2, apply=index_outstanding),
    Migration(component="agent:agent_tools", number=3, apply=index_by_status),
    Migration(component="agent:agent_tools", number=4, apply=add_class_gone),
    Migration(component="agent:agent_tools", number=5, apply=add_input_digest),
)
