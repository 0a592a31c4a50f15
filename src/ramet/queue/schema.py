"""The table of the queue in an agent's database, as numbered schema changes."""

from ramet.queue.store import create_queue
from ramet.storage import Migration

QUEUE_MIGRATIONS: tuple[Migration, ...] = (
    Migration(component="agent:queue", number=1, apply=create_queue),
)
