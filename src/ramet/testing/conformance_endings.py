"""The rules that a child of agent-tool runs keeps when it is followed, left alone and cancelled."""

from ramet.core.signals import AbortController
from ramet.testing.conformance_probe import (
    NAME,
    TERMINAL,
    ConformanceParent,
    Probe,
    expect,
    numbered,
)


async def tails_to_the_end(probe: Probe) -> None:
    """A tail gives what is stored and what comes, each once, and ends with the run."""
    await probe.start()
    follower = await probe.follow()
    await probe.ended()
    await probe.tail_over(follower)
    stored, seen = numbered(await probe.chunks()), numbered(follower.items)
    expect(seen == stored, _differs(seen, stored))


async def tails_stored_then_live(probe: Probe) -> None:
    """A tail that is opened in the middle of a run has neither a gap nor a chunk twice."""
    before = await probe.under_way()
    whole, rest = await probe.follow(), await probe.follow(after=before[-1].sequence)
    await probe.release()
    ended = await probe.ended()
    expect(ended.status == "completed", f"The released run ended as {ended.status!r}")
    await probe.tail_over(whole)
    await probe.tail_over(rest)
    stored = numbered(await probe.chunks())
    for follower, wanted in ((whole, stored), (rest, stored[len(before) :])):
        seen = numbered(follower.items)
        expect(seen == wanted, _differs(seen, wanted))


async def tails_after_the_end(probe: Probe) -> None:
    """A tail of a run that has ended gives what is stored after a sequence, and ends."""
    await probe.finished()
    stored = numbered(await probe.chunks())
    for after in (-1, 0, len(stored) - 1):
        follower = await probe.follow(after=after)
        await probe.tail_over(follower)
        seen = numbered(follower.items)
        expect(seen == stored[after + 1 :], _differs(seen, stored[after + 1 :]))


async def goes_on_unobserved(probe: Probe) -> None:
    """A reader that leaves takes nothing along: the run and other readers go on."""
    await probe.under_way()
    leaving, staying = await probe.follow(), await probe.follow()
    client = await probe.harness.connect(ConformanceParent, NAME)
    await client.close()
    leaving.leave()
    await probe.expect_running()
    await probe.release()
    ended = await probe.ended()
    expect(ended.status == "completed", f"Left alone, the run ended as {ended.status!r}")
    await probe.tail_over(staying)
    stored, seen = numbered(await probe.chunks()), numbered(staying.items)
    expect(seen == stored, _differs(seen, stored))


async def can_be_cancelled(probe: Probe) -> None:
    """A run that is cancelled ends as aborted, and keeps what it has given."""
    stored = await probe.under_way()
    await (await probe.child()).cancel("enough")
    ended = await probe.ended()
    expect(ended.status == "aborted", f"The cancelled run ended as {ended.status!r}")
    kept = numbered(await probe.chunks())[: len(stored)]
    expect(kept == stored, "Cancelling took chunks away that were stored")


async def ends_tails_when_cancelled(probe: Probe) -> None:
    """The tails of a run that is cancelled end."""
    await probe.under_way()
    follower = await probe.follow()
    await (await probe.child()).cancel("enough")
    await probe.tail_over(follower)


async def can_be_cancelled_at_once(probe: Probe) -> None:
    """A run that is cancelled right after its start ends, and stays ended."""
    await probe.start(slow=True)
    await (await probe.child()).cancel("at once")
    ended = await probe.ended()
    expect(ended.status == "aborted", f"Cancelled at once, the run ended as {ended.status!r}")
    await probe.release()
    await probe.harness.advance(1)
    expect(await probe.inspected() == ended, "A run that was cancelled at once went on")


async def can_be_cancelled_twice(probe: Probe) -> None:
    """A second cancel changes nothing."""
    await probe.under_way()
    child = await probe.child()
    await child.cancel("enough")
    ended = await probe.ended()
    await child.cancel("really")
    await probe.harness.settle()
    expect(await probe.inspected() == ended, "A second cancel changed how the run has ended")


async def can_be_cancelled_before_the_start(probe: Probe) -> None:
    """A cancel before the start is no error, and does not keep the run from starting."""
    await (await probe.child()).cancel("too early")
    ended = await probe.finished()
    expect(ended.run_id == "run-1", "A cancel before the start has spoilt the run")


async def stays_ended(probe: Probe) -> None:
    """A cancel after the end changes nothing."""
    ended, stored = await probe.finished(), await probe.chunks()
    await (await probe.child()).cancel("too late")
    await probe.harness.advance(1)
    expect(await probe.inspected() == ended, "A cancel after the end changed the run")
    expect(await probe.chunks() == stored, "A cancel after the end changed the chunks")


async def ends_when_its_parent_aborts(probe: Probe) -> None:
    """A parent that aborts its run gets `aborted`, and so does the child."""
    parent, controller = await probe.parent(), AbortController()
    work = parent.run(
        probe.cls, probe.scenario.slow_input, run_id="run-1", signal=controller.signal
    )
    background = parent._ramet.context.background  # noqa: SLF001 - the owner of all tasks
    task = background.start(work, name="conformance run")
    await probe.harness.settle()
    await probe.given()
    controller.abort("enough")

    async def over() -> bool:
        return task.done() and (await probe.inspected()).status in TERMINAL

    await probe.until(over, "The run did not end when its parent aborted it")
    status = (await probe.inspected()).status
    expect(task.result().status == "aborted", f"The parent got {task.result().status!r}")
    expect(status == "aborted", f"The child's run ended as {status!r}")


def _differs(seen: object, wanted: object) -> str:
    return f"The tail gave {_numbers(seen)}, where {_numbers(wanted)} are stored"


def _numbers(items: object) -> list[int]:
    return [each.sequence for each in items] if isinstance(items, list) else []
