"""Turns agent-tool events into what a client knows of the runs, without changing what it had."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from ramet.core.json import JsonObject, JsonValue, dumps, loads_object, text_at
from ramet.protocol import chunks, types
from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.run_events import ABSENT, Absent
from ramet.protocol.run_state import AgentToolState, RunMilestone, RunProgress, RunState

FrameIdentity: TypeAlias = tuple[str, str, str]


def apply_agent_tool_event(
    state: AgentToolState, message: object, *, now_ms: int
) -> AgentToolState:
    """Give the state after a frame; the same object when the frame changes nothing (AT-141 … 163).

    Only `started` makes a run; other events of a run that never started are dropped. The same
    frame applied again doubles its text: drop repeated ones by `frame_identity` first.

    Args:
        state: What was known before; it stays as it is.
        message: A decoded frame or its text. Foreign frames and what is no frame are ignored.
        now_ms: The client's time in milliseconds since the epoch, for ephemeral progress.
    """
    frame = _event_frame(message)
    event = _event_of(frame)
    if frame is None or event is None:
        return state
    run = state.runs_by_id.get(str(event["runId"]))
    if event.get("kind") == "started":
        changed = _started(run, event, text_at(frame, "parentToolCallId"))
    elif run is None:
        return state
    else:
        changed = _after(run, event, now_ms)
    return state if changed is None or changed is run else state.with_run(changed)


def frame_identity(message: object) -> FrameIdentity | None:
    """Give what tells a frame from all others of its kind; None when it is no run event.

    A client applies only the first of frames with one identity, live or replayed. Chunks are told
    apart by number, progress and milestones by their own ids, other events by what they say.
    """
    frame = _event_frame(message)
    event = _event_of(frame)
    if frame is None or event is None:
        return None
    identity = _chunk_identity(frame, event) if event.get("kind") == "chunk" else None
    return (
        text_at(frame, "parentToolCallId") or "",
        str(event["runId"]),
        identity or f"event:{dumps(event)}",
    )


def _event_frame(message: object) -> Mapping[str, JsonValue] | None:
    frame = loads_object(message) if isinstance(message, str) else message
    if not isinstance(frame, Mapping) or frame.get("type") != types.AGENT_TOOL_EVENT:
        return None
    return frame


def _event_of(frame: Mapping[str, JsonValue] | None) -> JsonObject | None:
    event = frame.get("event") if frame is not None else None
    if not isinstance(event, dict) or not isinstance(event.get("runId"), str):
        return None
    return event


def _chunk_identity(frame: Mapping[str, JsonValue], event: JsonObject) -> str:
    sequence, body, unstored = (
        frame.get("sequence"),
        text_at(event, "body"),
        event.get("unstoredId"),
    )
    if isinstance(unstored, str):
        return f"unstored:{unstored}"
    kind = chunks.kind_of_body(body or "")
    chunk = loads_object(body) if body and kind != "chunk" else None
    if chunk is not None and kind == "progress":
        signal_id = chunk.get("id")
        return f"progress:{signal_id}" if signal_id else f"progress:{sequence}:{body}"
    if chunk is not None:
        data = chunk.get("data")
        number = data.get("sequence") if isinstance(data, dict) else None
        return f"milestone:{number}" if number is not None else f"seq:{sequence}"
    return f"seq:{sequence}"


def _started(
    run: RunState | None, event: JsonObject, parent_tool_call_id: str | None
) -> RunState | None:
    agent_type, display = event.get("agentType"), event.get("display")
    if not isinstance(agent_type, str) or (run is not None and run.status != "running"):
        return None
    return replace(
        run or RunState(run_id=str(event["runId"]), agent_type=agent_type),
        agent_type=agent_type,
        parent_tool_call_id=parent_tool_call_id,
        input_preview=event.get("inputPreview", ABSENT),
        order=_number(event, "order") or 0,
        display=display if isinstance(display, dict) else None,
    )


def _after(run: RunState, event: JsonObject, now_ms: int) -> RunState:
    kind = event.get("kind")
    if kind == "chunk":
        return _after_chunk(run, event, now_ms)
    end = _ENDS.get(kind) if isinstance(kind, str) else None
    return end(run, event) if end is not None else run


def _finished(run: RunState, event: JsonObject) -> RunState:
    return replace(
        run,
        status="completed",
        summary=text_at(event, "summary"),
        error=None,
        reason=None,
        child_still_running=None,
    )


def _failed(run: RunState, event: JsonObject) -> RunState:
    error = text_at(event, "error")
    return replace(run, status="error", error=error, reason=None, child_still_running=None)


def _aborted(run: RunState, event: JsonObject) -> RunState:
    error = text_at(event, "reason")
    return replace(run, status="aborted", error=error, reason=None, child_still_running=None)


def _interrupted(run: RunState, event: JsonObject) -> RunState:
    still_running = event.get("childStillRunning")
    return replace(
        run,
        status="interrupted",
        error=text_at(event, "error"),
        reason=text_at(event, "reason"),
        child_still_running=still_running if isinstance(still_running, bool) else None,
    )


def _after_chunk(run: RunState, event: JsonObject, now_ms: int) -> RunState:
    chunk = loads_object(text_at(event, "body") or "")
    if chunk is None:
        return run
    run = replace(run, parts=tuple(apply_chunk_to_parts(run.parts, chunk)))
    data = chunk.get("data")
    if isinstance(data, dict) and chunks.is_progress(chunk.get("type")):
        return replace(run, progress=_progress(data, now_ms))
    if isinstance(data, dict) and chunks.is_milestone(chunk.get("type")):
        return _after_milestone(run, data, now_ms)
    return run


def _progress(data: JsonObject, now_ms: int) -> RunProgress:
    return RunProgress(
        fraction=_number(data, "fraction"),
        message=text_at(data, "message"),
        phase=text_at(data, "phase"),
        data=_value(data, "data"),
        at=now_ms,
    )


def _after_milestone(run: RunState, data: JsonObject, now_ms: int) -> RunState:
    name, at = text_at(data, "name"), _number(data, "at")
    if name is None:
        return run
    passed = RunMilestone(
        name=name,
        sequence=_number(data, "sequence") or 0,
        at=now_ms if at is None else at,
        data=_value(data, "data"),
    )
    if any(known.sequence == passed.sequence for known in run.milestones):
        return run
    ordered = tuple(sorted([*run.milestones, passed], key=lambda one: one.sequence))
    run = replace(run, milestones=ordered)
    if run.progress is not None and passed.at < run.progress.at:
        return run
    snapshot = RunProgress(
        fraction=_number(data, "fraction"),
        message=text_at(data, "message"),
        phase=text_at(data, "phase"),
        milestone=name,
        at=passed.at,
    )
    return replace(run, progress=snapshot)


def _number(fields: Mapping[str, JsonValue], key: str) -> float | None:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _value(fields: Mapping[str, JsonValue], key: str) -> "JsonValue | Absent":
    return fields.get(key, ABSENT)


_ENDS: Final[Mapping[str, Callable[[RunState, JsonObject], RunState]]] = {
    "finished": _finished,
    "error": _failed,
    "aborted": _aborted,
    "interrupted": _interrupted,
}
