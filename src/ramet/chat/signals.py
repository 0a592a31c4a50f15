"""A child's progress and milestones as chunks."""

from collections.abc import Iterator

from ramet.agent_tools.records import Milestone, Progress
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks


def progress_chunk(signal_id: str, progress: Progress) -> JsonObject:
    """The transient chunk of a progress signal."""
    return chunks.progress(
        signal_id,
        dict(
            _given(
                fraction=progress.fraction,
                message=progress.message,
                phase=progress.phase,
                data=progress.data,
            )
        ),
    )


def milestone_chunk(milestone: Milestone) -> JsonObject:
    """The chunk of a milestone, with all its fields."""
    return chunks.milestone(
        {
            "name": milestone.name,
            "sequence": milestone.sequence,
            "at": milestone.at,
            **dict(
                _given(
                    fraction=milestone.fraction,
                    message=milestone.message,
                    phase=milestone.phase,
                    data=milestone.data,
                )
            ),
        }
    )


def _given(**fields: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    return ((key, value) for key, value in fields.items() if value is not None)
