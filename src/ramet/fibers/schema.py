"""The tables of fibers."""

from ramet.fibers.store import (
    CREATE_FACET_RUNS,
    CREATE_FIBERS,
    CREATE_FIBERS_INDEX,
    CREATE_RUNS,
)
from ramet.storage import Database, Migration


def _create(database: Database) -> None:
    for statement in (CREATE_RUNS, CREATE_FIBERS, CREATE_FIBERS_INDEX, CREATE_FACET_RUNS):
        database.run(statement)


FIBER_MIGRATIONS = (Migration(component="agent:fibers", number=1, apply=_create),)
