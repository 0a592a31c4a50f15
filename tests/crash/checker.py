"""Compares what clients saw before a crash with what they are given after it; no input or output.

Everything but transient progress has to be there again, under the same numbers, in order and once;
each request and each run has an end, and the end is true: nothing completed that was not recorded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.crash.disk import AgentKey, Disk, StoredAgent
from tests.crash.seen import RunFrame, Seen, ShownChunk

_EVENT_OF_STATUS = {
    "completed": "finished",
    "error": "error",
    "aborted": "aborted",
    "interrupted": "interrupted",
}
_LOST = ("error", "aborted")
"""The run and the turn of a child that was killed, once it was opened again."""
_HARD = frozenset({"finished", "error", "aborted"})
"""Ends that are never followed by another one."""
_SHOWN = 80


def chat_findings(before: Iterable[Seen], after: Seen) -> Iterator[str]:
    """What is wrong with the answers as they are given after a crash."""
    for seen in before:
        for request_id, chunks in seen.chunks.items():
            yield from _order(f"request {request_id} before the crash", chunks)
            given = after.chunks.get(request_id, [])
            yield from _lost_chunks(request_id, chunks, given)
        for request_id in seen.ends:
            was, now = seen.outcome(request_id), after.outcome(request_id)
            if was != now:
                yield f"request {request_id} had ended {was} and is now {now}"
    for request_id, chunks in after.chunks.items():
        yield from _order(f"request {request_id} after the crash", chunks)
        if not after.ends.get(request_id):
            yield f"request {request_id} never ends: a spinner"
    for request_id, ends in after.ends.items():
        if len(ends) > 1:
            yield f"request {request_id} ends {len(ends)} times"


def run_findings(before: Iterable[Seen], after: Seen) -> Iterator[str]:
    """What is wrong with the runs as they are given after a crash."""
    for seen in before:
        for run_id, frames in seen.runs.items():
            yield from _run_order(f"run {run_id} before the crash", frames)
            hard = [frame.kind for frame in frames if frame.kind in _HARD]
            if len(hard) > 1:
                yield f"run {run_id} had ended {len(hard)} times before the crash: {hard}"
            yield from _lost_frames(run_id, frames, after.runs.get(run_id, []))
    for run_id, frames in after.runs.items():
        yield from _run_order(f"run {run_id} after the crash", frames)
        if frames[0].kind != "started":
            yield f"run {run_id} begins with {frames[0].kind}"
        ends = [frame for frame in frames if frame.terminal]
        if len(ends) != 1:
            yield f"run {run_id} has {len(ends)} ends"
        elif not frames[-1].terminal:
            yield f"run {run_id} goes on after its end with {frames[-1].kind}"


def truth_findings(key: AgentKey, disk: Disk, after: Seen) -> Iterator[str]:
    """What is not true of what an agent's clients are given, by what was on disk after the kill."""
    stored = disk.agent(key)
    for request_id, recorded in stored.outcomes.items():
        outcome = after.outcome(request_id)
        if outcome != (recorded or "aborted"):
            yield f"request {request_id} ended {outcome}, but {recorded} was recorded"
        given = [chunk.body for chunk in after.chunks.get(request_id, []) if chunk.seq is not None]
        if given != stored.chunks.get(request_id, []):
            yield f"request {request_id} is given {len(given)} chunks, not what is stored"
    for run_id, (agent_type, status) in stored.runs.items():
        child = disk.agent((*key, (agent_type, run_id)))
        yield from _run_truth(run_id, true_end(status, child, run_id), after)
        yield from _run_chunks(run_id, child, after)


def registration_findings(disk: Disk) -> Iterator[str]:
    """Which runs under way have no child that the gate lets anybody reach (D19)."""
    for key, stored in disk.agents.items():
        for run_id, (agent_type, status) in stored.runs.items():
            if status not in _EVENT_OF_STATUS and (agent_type, run_id) not in stored.children:
                yield f"{key}: run {run_id} is {status}, but its child is not registered"


def rest_findings(disk: Disk) -> Iterator[str]:
    """What is not over on a disk although everybody has had the time for it."""
    for key, stored in disk.agents.items():
        open_turns = [request for request, outcome in stored.outcomes.items() if outcome is None]
        if open_turns:
            yield f"{key}: turns without an outcome: {open_turns}"
        open_runs = [run for run, (_, how) in stored.runs.items() if how not in _EVENT_OF_STATUS]
        if open_runs:
            yield f"{key}: runs without an end: {open_runs}"
        open_work = [run for run, child in stored.child_runs.items() if not child.sealed]
        if open_work:
            yield f"{key}: work for a parent that is not sealed: {open_work}"
        if stored.waiting:
            yield f"{key}: rows that are left: {stored.waiting}"


def true_end(status: str, child: StoredAgent, run_id: str) -> str:
    """How a run has ended, by its row and by what its child had recorded."""
    if status in _EVENT_OF_STATUS:
        return status
    run = child.child_runs.get(run_id)
    if run is None:
        return "interrupted"
    outcome = child.outcomes.get(run.request_id)
    if run.sealed and (run.status, outcome) != _LOST:
        return run.status
    return "interrupted" if run.sealed else outcome or "interrupted"


def _order(where: str, chunks: Sequence[ShownChunk]) -> Iterator[str]:
    numbers = [chunk.seq for chunk in chunks if chunk.seq is not None]
    begun = numbers[0] if numbers else 0
    if numbers != list(range(begun, begun + len(numbers))):
        yield f"{where}: the chunks come as {numbers}"
    signals = [chunk.body for chunk in chunks if chunk.seq is None and not chunk.transient]
    for body, times in Counter(signals).items():
        if times > 1:
            yield f"{where}: {_short(body)} comes {times} times"


def _lost_chunks(
    request_id: str, seen: Sequence[ShownChunk], given: Sequence[ShownChunk]
) -> Iterator[str]:
    bodies = {chunk.seq: chunk.body for chunk in given if chunk.seq is not None}
    signals = {chunk.body for chunk in given if chunk.seq is None}
    for chunk in seen:
        where = f"request {request_id}: chunk {chunk.seq} {_short(chunk.body)}"
        if chunk.seq is None:
            if chunk.body not in signals and not chunk.transient:
                yield f"{where} was lost"
        elif chunk.seq not in bodies:
            yield f"{where} was lost"
        elif bodies[chunk.seq] != chunk.body:
            yield f"{where} is now {_short(bodies[chunk.seq])}"


def _run_order(where: str, frames: Sequence[RunFrame]) -> Iterator[str]:
    numbers = [frame.number for frame in frames]
    if numbers != sorted(set(numbers)):
        yield f"{where}: the frames come as {numbers}"


def _lost_frames(run_id: str, seen: Sequence[RunFrame], given: Sequence[RunFrame]) -> Iterator[str]:
    events = {frame.number: frame.event for frame in given}
    for frame in seen:
        where = f"run {run_id}: frame {frame.number} {_short(str(frame.event))}"
        if frame.transient:
            now = events.get(frame.number, frame.event)
            if now != frame.event:
                yield f"{where} gave its number to {_short(str(now))}"
        elif frame.number not in events:
            yield f"{where} was lost"
        elif events[frame.number] != frame.event:
            yield f"{where} is now {_short(str(events[frame.number]))}"


def _run_truth(run_id: str, status: str, after: Seen) -> Iterator[str]:
    ends = after.terminals(run_id)
    if not ends:
        yield f"run {run_id} has no end: a spinner"
    elif ends[0].kind != _EVENT_OF_STATUS.get(status):
        yield f"run {run_id} is told as {ends[0].kind}, but it is {status}"


def _run_chunks(run_id: str, child: StoredAgent, after: Seen) -> Iterator[str]:
    run = child.child_runs.get(run_id)
    stored = [] if run is None else child.chunks.get(run.request_id, [])
    signals = {"data-agent-milestone", "data-agent-progress"}
    given = [
        frame.body
        for frame in after.runs.get(run_id, [])
        if frame.body is not None and not any(signal in frame.body for signal in signals)
    ]
    if given != stored:
        yield f"run {run_id} is given {len(given)} chunks of the {len(stored)} that are stored"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
