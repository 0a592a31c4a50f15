"""What a parent tells its clients about an agent-tool run, and how each event is framed."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.protocol import types

RunStatus: TypeAlias = Literal[
    "starting", "running", "completed", "error", "aborted", "interrupted"
]
InterruptedReason: TypeAlias = Literal[
    "no-progress",
    "window-exceeded",
    "not-tailable",
    "inspect-timeout",
    "inspect-failed",
    "recovery-deadline",
    "budget-exceeded",
]

HARD_TERMINAL: Final[frozenset[RunStatus]] = frozenset({"completed", "error", "aborted"})
"""Statuses that no later result changes; `interrupted` is soft and can be repaired (AT-058)."""

RUN_FAILED: Final = "The agent tool run failed."
RUN_INTERRUPTED: Final = "The agent tool run was interrupted before it could finish."


class Absent(Enum):
    """The type of a value that is not there, where null is a value too."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The run exists. A preview of `None` is the input null, `ABSENT` is no input (AT-068)."""

    run_id: str
    agent_type: str
    order: int = 0
    input_preview: "JsonValue | Absent" = ABSENT
    display: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One chunk of the child, encoded; `unstored_id` marks one that the child did not keep."""

    run_id: str
    body: str
    unstored_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The run completed; without a summary clients get an empty one (AT-126)."""

    run_id: str
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed; without a text clients get a general one (AT-127)."""

    run_id: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The run was cancelled."""

    run_id: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The parent lost sight of the run; None leaves a key out (AT-129)."""

    run_id: str
    error: str | None = None
    reason: InterruptedReason | None = None
    child_still_running: bool | None = None


RunEvent: TypeAlias = Started | Chunk | Finished | Failed | Aborted | Interrupted


class ChunkEnvelope:
    """Frames the chunks of one run by putting text around the encoded body."""

    __slots__ = ("_event", "_head", "_tail")

    def __init__(self, run_id: str, parent_tool_call_id: str | None, *, replay: bool) -> None:
        self._head = _frame_head(parent_tool_call_id)
        self._event = f',"event":{{"kind":"chunk","runId":{dumps(run_id)},"body":'
        self._tail = "}" + _frame_tail(replay=replay)

    def frame(self, sequence: int, body: str) -> str:
        """Frame one encoded chunk under its number."""
        return f"{self._head}{sequence}{self._event}{dumps(body)}{self._tail}"


def chunk_envelope(run_id: str, parent_tool_call_id: str | None, *, replay: bool) -> ChunkEnvelope:
    """Prepare the frames of one run's chunks."""
    return ChunkEnvelope(run_id, parent_tool_call_id, replay=replay)


def encode_event(
    event: RunEvent, *, sequence: int, parent_tool_call_id: str | None, replay: bool
) -> str:
    """Frame one event of a run (AT-122).

    Args:
        event: What happened.
        sequence: The frame's number within the run; the same live and on replay.
        parent_tool_call_id: The tool call the run stands under; None leaves the key out.
        replay: The frame is sent again from storage.
    """
    tail = _frame_tail(replay=replay)
    return f'{_frame_head(parent_tool_call_id)}{sequence},"event":{dumps(event_json(event))}{tail}'


def event_json(event: RunEvent) -> JsonObject:
    """Give the `event` object as it stands in a frame, without the keys that are absent."""
    match event:
        case Started():
            return _started_json(event)
        case Chunk(run_id=run_id, body=body, unstored_id=unstored_id):
            return _event("chunk", run_id, body=body, unstoredId=unstored_id)
        case Finished(run_id=run_id, summary=summary):
            return _event("finished", run_id, summary=summary or "")
        case Failed(run_id=run_id, error=error):
            return _event("error", run_id, error=error or RUN_FAILED)
        case Aborted(run_id=run_id, reason=reason):
            return _event("aborted", run_id, reason=reason)
        case Interrupted():
            return _event(
                "interrupted",
                event.run_id,
                error=event.error or RUN_INTERRUPTED,
                reason=event.reason,
                childStillRunning=event.child_still_running,
            )


def _started_json(event: Started) -> JsonObject:
    started = _event("started", event.run_id, agentType=event.agent_type)
    if event.input_preview is not ABSENT:
        started["inputPreview"] = event.input_preview
    started["order"] = event.order
    if event.display is not None:
        started["display"] = event.display
    return started


def _event(kind: str, run_id: str, **fields: str | bool | None) -> JsonObject:
    present = {key: value for key, value in fields.items() if value is not None}
    return {"kind": kind, "runId": run_id, **present}


def _frame_head(parent_tool_call_id: str | None) -> str:
    head = f'{{"type":"{types.AGENT_TOOL_EVENT}"'
    if parent_tool_call_id is not None:
        head += f',"parentToolCallId":{dumps(parent_tool_call_id)}'
    return head + ',"sequence":'


def _frame_tail(*, replay: bool) -> str:
    return ',"replay":true}' if replay else "}"
