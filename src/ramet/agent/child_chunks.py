"""Reads what a child of this agent has stored of a run, without opening the child (D21)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ramet.agent.context import AgentContext
from ramet.agent_tools.records import StoredChunk
from ramet.core.paths import AgentPath
from ramet.storage import Database, Schema, is_current

RunReader: TypeAlias = Callable[[Database, str, int, int], Sequence[StoredChunk]]
"""`read_stored_run(database, run_id, after_sequence, limit)`, a static method of chat agents."""


class ChildChunks:
    """The stored chunks of children: a live one's by its own connection, else from its file."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context

    def read(
        self, path: AgentPath, run_id: str, *, after: int, limit: int
    ) -> Sequence[StoredChunk] | None:
        """The next chunks after an index; None when the child has to be asked itself."""
        cls = self._context.classes.class_of(path.leaf.class_name)
        reader: RunReader | None = getattr(cls, "read_stored_run", None)
        if reader is None:
            return None
        live = self._context.live_database(path)
        if live is not None:
            return reader(live, run_id, after, limit)
        stored = self._context.files.open_existing(path)
        if stored is None:
            return ()
        try:
            schema: Schema = getattr(cls, "ramet_schema")()  # noqa: B009 - a class known by its name
            return reader(stored, run_id, after, limit) if is_current(stored, schema) else None
        finally:
            stored.close()
