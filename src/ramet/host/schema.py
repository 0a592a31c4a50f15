"""The tables of the host's own database."""

from ramet.host.pending_deletions import create_deletions
from ramet.host.wakeups import add_set_ms, create_wakeups
from ramet.storage import Migration, Schema

SCHEMA = Schema(
    (
        Migration(component="host", number=1, apply=create_wakeups),
        Migration(component="host", number=2, apply=add_set_ms),
        Migration(component="host", number=3, apply=create_deletions),
    )
)
