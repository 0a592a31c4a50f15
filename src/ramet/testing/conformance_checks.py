"""The rules that a child of agent-tool runs keeps: what it tells of its runs, and its chunks."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ramet.agent_tools.children import CHUNKS, INSPECT, START, TAIL, check_adapter
from ramet.agent_tools.records import Inspection, Progress, StoredChunk
from ramet.core.json import loads_object
from ramet.protocol.run_events import Absent
from ramet.testing.conformance_probe import (
    NAME,
    TERMINAL,
    ConformanceParent,
    Probe,
    expect,
    fail,
    numbered,
)

Need: TypeAlias = Literal["slow", "release", "failing", "tail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule with the test of it."""

    name: str
    rule: str
    """What a child has to do, in one sentence."""
    run: Callable[[Probe], Awaitable[object]]
    needs: frozenset[Need] = frozenset()


async def has_the_methods(probe: Probe) -> None:
    """The adapter is there, with the parameters that parents use."""
    check_adapter(probe.cls)
    wanted = {START: {"run_id"}, CHUNKS: {"after_sequence"}, TAIL: {"after_sequence"}}
    for method, names in wanted.items():
        found = getattr(probe.cls, method, None)
        if found is None:
            continue
        parameters = inspect.signature(found).parameters
        any_name = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        missing = set() if any_name else names - set(parameters)
        expect(not missing, f"{method} takes no keyword {', '.join(missing)}")


async def knows_no_unknown_run(probe: Probe) -> None:
    """A run that nobody started is unknown, beside a known one and in a fresh child."""
    await probe.finished()
    for instance in ("run-1", "run-2"):
        stranger = await probe.child("run-2", instance=instance)
        expect(await stranger.inspect() is None, f"{INSPECT} gave something for an unknown run")
        expect(await stranger.chunks(-1) == [], f"{CHUNKS} gave chunks of an unknown run")
        await stranger.cancel("nobody runs")
        expect(await stranger.inspect() is None, "Cancelling an unknown run made one")


async def starts_with_an_inspection(probe: Probe) -> None:
    """What a start gives is the inspection of that run."""
    begun = await probe.start()
    expect(begun.run_id == "run-1", f"The start gave the run {begun.run_id!r}, not 'run-1'")
    later = await probe.inspected()
    expect(later.run_id == "run-1", f"The inspection is of {later.run_id!r}, not of 'run-1'")
    await probe.ended()


async def starts_once(probe: Probe) -> None:
    """A run id names one run, however often it is started."""
    first, second = await asyncio.gather(probe.start(), probe.start())
    expect(first.started_at == second.started_at, "Two starts at once began two runs")
    await probe.harness.advance(1)
    ended, stored = await probe.ended(), await probe.chunks()
    await probe.harness.advance(1)
    again = await probe.start()
    await probe.harness.advance(1)
    expect(again == ended, f"A start after the end gave {again}, not {ended}")
    expect(await probe.inspected() == ended, "A start after the end changed the run")
    expect(await probe.chunks() == stored, "A start after the end gave more chunks")
    await probe.finished("run-2")
    twice, once = len(numbered(stored)), len(numbered(await probe.chunks("run-2")))
    expect(twice == once, f"Started twice at once, the run gave {twice} chunks; alone it is {once}")


async def tells_all_fields(probe: Probe) -> None:
    """Inspections have the fields of `Inspection`, of their types, at every moment."""
    _check_fields(await probe.start())
    _check_fields(await probe.inspected())
    ended = await probe.ended()
    _check_fields(ended)
    await probe.harness.advance(1)
    expect(await probe.inspected() == ended, "The inspection of an ended run has changed")


async def numbers_chunks_from_0(probe: Probe) -> None:
    """Chunks are JSON objects with a type, numbered from 0 without a gap."""
    await probe.finished()
    _check_numbers(await probe.chunks())


async def reads_after_a_sequence(probe: Probe) -> None:
    """`after_sequence` leaves out that chunk and those before it."""
    await probe.finished()
    stored = numbered(await probe.chunks())
    for after in range(-1, len(stored) + 1):
        found = numbered(await probe.chunks(after=after))
        expect(
            found == stored[after + 1 :],
            f"After {after} came the sequences {[each.sequence for each in found]}, "
            f"not {[each.sequence for each in stored[after + 1 :]]}",
        )


async def reports_a_failure(probe: Probe) -> None:
    """A run that fails ends as an error with a text; asking for it raises nothing."""
    child = await probe.child()
    await child.start(probe.scenario.failing_input)
    ended = await probe.ended()
    expect(ended.status == "error", f"The failing run ended as {ended.status!r}, not as 'error'")
    expect(ended.error, "The failing run has no error text")
    _check_fields(ended)
    _check_numbers(await probe.chunks())


async def serves_its_parent(probe: Probe) -> None:
    """A parent gets the result, and its clients see every stored chunk once, in order."""
    client = await probe.harness.connect(ConformanceParent, NAME)
    parent = await probe.parent()
    work = parent.run(probe.cls, probe.scenario.input, run_id="run-1")
    background = parent._ramet.context.background  # noqa: SLF001 - the owner of all tasks
    task = background.start(work, name="conformance run")

    async def over() -> bool:
        return task.done()

    await probe.until(over, "The parent's run did not end", moving=True)
    result, ended = task.result(), await probe.inspected()
    no_output = isinstance(ended.output, Absent)
    expect(
        (result.status, result.summary or "", result.output)
        == (ended.status, ended.summary or "", None if no_output else ended.output),
        f"The parent got {result}, the child tells {ended}",
    )
    expect(result.status == "completed", f"The parent's run ended as {result.status!r}")
    events = [frame["event"] for frame in client.of_type("agent-tool-event")]
    kinds = [event.get("kind") for event in events if isinstance(event, dict)]
    expect(kinds[:1] == ["started"], f"The clients saw {kinds}")
    expect(kinds[-1:] == ["finished"], f"The clients saw {kinds}")
    bodies = [
        str(event.get("body"))
        for event in events
        if isinstance(event, dict) and event.get("kind") == "chunk"
    ]
    stored = [item.body for item in numbered(await probe.chunks())]
    shown = [body for body in bodies if body in stored]
    expect(shown == stored, f"The clients saw {len(shown)} of {len(stored)} chunks, or in disorder")


async def keeps_runs_apart(probe: Probe) -> None:
    """Runs at the same time have chunks, errors and ends of their own."""
    alone = await probe.finished("run-0")
    await asyncio.gather(*(probe.start(run_id) for run_id in ("run-1", "run-2", "run-3")))
    for run_id in ("run-1", "run-2", "run-3"):
        ended = await probe.ended(run_id)
        expect(ended.run_id == run_id, f"The inspection of {run_id!r} is of {ended.run_id!r}")
        expect(ended.status == alone.status, f"Beside others a run ended as {ended.status!r}")
        _check_numbers(await probe.chunks(run_id))
        expect(
            len(numbered(await probe.chunks(run_id))) == len(numbered(await probe.chunks("run-0"))),
            "Runs at the same time have other chunks than one alone",
        )


async def survives_a_crash(probe: Probe) -> None:
    """What a run had stored when the process died is there in the next one."""
    ended, stored = await probe.finished(), await probe.chunks()
    await probe.harness.crash()
    await probe.harness.restart()
    expect(await probe.inspected() == ended, "After a crash the ended run is told differently")
    expect(await probe.chunks() == stored, "After a crash the chunks are not the same")
    expect(await probe.start() == ended, "After a crash the ended run was begun anew")


async def survives_a_crash_under_way(probe: Probe) -> None:
    """A run that a crash cuts stays known, keeps its chunks and is not begun anew."""
    stored = await probe.under_way()
    before = await probe.inspected()
    await probe.harness.crash()
    await probe.harness.restart()
    after = await probe.inspected()
    _check_fields(after)
    expect(after.started_at == before.started_at, "After a crash the run was begun anew")
    again = await probe.start(slow=True)
    expect(again.started_at == before.started_at, "A start after a crash began the run anew")
    await probe.harness.settle()
    kept = numbered(await probe.chunks())[: len(stored)]
    expect(kept == stored, f"After a crash {len(kept)} of {len(stored)} chunks are the same")


def _check_fields(found: Inspection) -> None:
    started, completed, over = found.started_at, found.completed_at, found.status in TERMINAL
    _expect_type("started_at", started, int)
    expect(started > 0, f"started_at is {started}: it is milliseconds since the epoch")
    if over:
        _expect_type("completed_at", completed, int)
        expect(completed is None or completed >= started, "completed_at lies before started_at")
    else:
        expect(completed is None, f"completed_at is set while the run is {found.status!r}")
    for name in ("request_id", "stream_id", "summary", "error"):
        value = getattr(found, name)
        expect(value is None or isinstance(value, str), f"{name} is {value!r}: a text or None")
    expect(
        found.progress is None or isinstance(found.progress, Progress),
        f"progress is {found.progress!r}: a Progress or None",
    )
    numbers = [getattr(each, "sequence", None) for each in found.milestones]
    expect(numbers == list(range(len(numbers))), "milestones are Milestone records from 0 on")


def _expect_type(name: str, value: object, kind: type) -> None:
    is_kind = isinstance(value, kind) and not isinstance(value, bool)
    expect(is_kind, f"{name} is {value!r}: it has to be of type {kind.__name__}")


def _check_numbers(items: list[StoredChunk]) -> None:
    """Check the numbers and the bodies of a run's items."""
    last = -1
    for item in items:
        if item.kind == "chunk":
            last += 1
        if item.sequence != last:
            numbers = [each.sequence for each in items]
            fail(f"The sequences are {numbers}: chunks count from 0 without a gap")
        chunk = loads_object(str(item.body))
        expect(
            chunk is not None and isinstance(chunk.get("type"), str),
            f"The body {item.body!r} is no JSON object with a type",
        )
