"""The table of schedules in an agent's database, as numbered schema changes."""

from ramet.schedules.store import create_schedules
from ramet.storage import Migration

SCHEDULE_MIGRATIONS: tuple[Migration, ...] = (
    Migration(component="agent:schedules", number=1, apply=create_schedules),
)
