"""The tables that every chat agent has, on top of those of an agent."""

from ramet.chat.child_runs import create_child_run_tables
from ramet.chat.recovery_store import RECOVERY_MIGRATIONS
from ramet.chat.stream_log import create_stream_tables
from ramet.chat.transcript import create_message_table
from ramet.chat.turn_store import create_turn_table
from ramet.storage import Database, Migration


def _create(database: Database) -> None:
    create_message_table(database)
    create_stream_tables(database)
    create_turn_table(database)
    create_child_run_tables(database)


CHAT_MIGRATIONS = (
    Migration(component="chat", number=1, apply=_create),
    *RECOVERY_MIGRATIONS,
)
"""The first version is complete: later features need no new columns (D7)."""
