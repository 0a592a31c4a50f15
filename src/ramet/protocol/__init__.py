"""The wire as data: frames, chunks, message parts, run events and their reducer, without I/O."""

from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.run_reducer import apply_agent_tool_event
from ramet.protocol.run_state import AgentToolState, RunMilestone, RunProgress, RunState

__all__ = [
    "AgentToolState",
    "RunMilestone",
    "RunProgress",
    "RunState",
    "apply_agent_tool_event",
    "apply_chunk_to_parts",
]
