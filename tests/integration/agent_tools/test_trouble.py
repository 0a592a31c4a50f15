"""Children that hang, chunks that are huge, clients that hardly read: nobody else is held up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import loads_object
from ramet.core.options import HostOptions
from ramet.testing import Ending, Harness, ScriptedChild, TestClient
from ramet.testing.scripted_child import AdapterCall
from ramet.testing.scripted_model import Delay, Gate
from tests.integration.agent_tools.children import events
from tests.integration.agent_tools.conftest import event_of, kinds, numbers

RUNS = "SELECT * FROM cf_agent_tool_runs ORDER BY rowid"
ADAPTER: list[AdapterCall] = ["start", "cancel", "inspect", "chunks", "tail"]
HUGE = 4_000_000
LIMIT = 4 * 2**20

Quick = ScriptedChild.script("Quick", ["a"], ending=Ending(summary="quick"))
Hanging: dict[AdapterCall, type[ScriptedChild]] = {}
"""By the adapter method that never returns; made anew for each test, as gates are."""
Chatter = ScriptedChild.script(
    "Chatter",
    [piece for n in range(300) for piece in (f"{n} " + "x" * 3000, Delay(0.1))],
    ending=Ending(summary="said"),
)
Bulky = ScriptedChild.script("Bulky", ["y" * HUGE, "end"], ending=Ending(summary="bulky"))


class Talker(ramet.AIChatAgent):
    """A child that says one very long word."""

    size: ClassVar[int] = HUGE

    async def on_chat_message(self, turn: Turn) -> AsyncIterator[str]:
        yield "z" * self.size


def hanging(call: AdapterCall) -> type[ScriptedChild]:
    """A child of which one adapter method never returns."""
    return ScriptedChild.script(
        f"Hanging{call.title()}",
        ["a", Gate()] if call == "cancel" else ["a"],
        ending=Ending(summary="never"),
        gates={call: Gate()},
        tail=call != "chunks",
    )


class Boss(ramet.Agent[None]):
    """A parent that notes its errors."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(str(error))


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Talker.size = HUGE
    Hanging.update({call: hanging(call) for call in ADAPTER})
    children = [Quick, Chatter, Bulky, Talker, *Hanging.values()]
    async with Harness(agents=[Boss], sub_agents=children, data_dir=tmp_path) as started:
        yield started


async def begun(harness: Harness, cls: type, run_id: str = "r") -> asyncio.Task[Any]:
    """A run with a caller that waits for it."""
    boss = await harness.agent(Boss, "b")
    run = asyncio.get_running_loop().create_task(boss.run_agent_tool(cls, run_id=run_id))
    await harness.settle()
    return run


def statuses(harness: Harness) -> dict[object, object]:
    """How all runs are."""
    return {row["run_id"]: row["status"] for row in harness.rows(Boss, "b", RUNS)}


def take_one(client: TestClient) -> None:
    """Have a client that has stopped reading take what one write of its socket carries."""
    for item in client.link.outbox.take_now():
        frame = loads_object(item) if isinstance(item, str) else None
        if frame is not None:
            client.frames.append(frame)


@pytest.mark.behaviour("D12", "AT-176")
@pytest.mark.parametrize("call", ADAPTER)
async def test_a_child_that_hangs_keeps_neither_its_caller_nor_its_siblings(
    harness: Harness, call: AdapterCall
) -> None:
    client = await harness.connect(Boss, "b")
    run = await begun(harness, Hanging[call])
    await (await begun(harness, Quick, "quick"))
    await harness.advance(3600)
    assert not run.done(), "nobody has said for how long it may take"
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await harness.advance(20)

    assert statuses(harness) == {"r": "aborted", "quick": "completed"}
    mine = [event_of(f)["kind"] for f in events(client.frames) if event_of(f)["runId"] == "r"]
    assert (mine[0], mine[-1]) == ("started", "aborted")
    boss = await harness.agent(Boss, "b")
    assert await boss.clear_agent_tool_runs() == 2
    await harness.evict(Boss, "b")


@pytest.mark.parametrize("call", ADAPTER)
async def test_after_a_kill_a_child_that_hangs_is_given_up_in_time(
    harness: Harness, call: AdapterCall
) -> None:
    run = await begun(harness, Hanging[call])
    await begun(harness, Quick, "quick")
    await harness.crash()
    run.cancel()
    await harness.restart()
    late = await harness.connect(Boss, "b")
    await harness.advance(140)

    (row,) = [row for row in harness.rows(Boss, "b", RUNS) if row["run_id"] == "r"]
    expected = {
        "start": ("interrupted", "no-progress"),
        "cancel": ("interrupted", "no-progress"),
        "inspect": ("interrupted", "inspect-timeout"),
        "chunks": ("completed", None),
        "tail": ("completed", None),
    }
    assert (row["status"], row["interrupted_reason"]) == expected[call]
    assert kinds(late)[-1] != "started"


async def test_asking_a_child_that_hangs_takes_seconds_and_says_so(harness: Harness) -> None:
    await begun(harness, Hanging["inspect"])
    boss = await harness.agent(Boss, "b")
    looking = asyncio.ensure_future(boss.inspect_agent_tool("r"))
    await harness.advance(10)
    found = await looking
    assert found is not None
    assert (found.run.status, found.child) == ("running", None)
    assert found.child_error == "The child did not answer in 10 seconds."

    await begun(harness, Hanging["cancel"], "c")
    cancelling = asyncio.ensure_future(boss.cancel_agent_tool("c"))
    await harness.advance(10)
    with pytest.raises(TimeoutError, match="The child did not answer in 10 seconds"):
        await cancelling


@pytest.mark.behaviour("D1", "D21")
@pytest.mark.parametrize("child", [Bulky, Talker])
async def test_a_chunk_of_four_million_characters_reaches_everybody(
    harness: Harness, child: type
) -> None:
    live = await harness.connect(Boss, "b")
    stalled = await harness.connect(Boss, "b")
    stalled.reading = False
    await (await begun(harness, child))
    await harness.settle()
    late = await harness.connect(Boss, "b")

    biggest = [max(len(text) for text in client.texts) for client in (live, late)]
    assert biggest[0] - len(',"replay":true') <= biggest[1] - len(',"replay":true')
    assert all(size > HUGE for size in biggest)
    assert numbers(live) == numbers(late) == list(range(len(numbers(live))))
    assert kinds(live)[-1] == kinds(late)[-1] == "finished"
    assert stalled.link.outbox.waiting_bytes < HUGE + LIMIT


@pytest.mark.behaviour("D1")
async def test_a_chunk_over_the_limit_fails_the_run_before_anything_of_it_is_sent(
    harness: Harness,
) -> None:
    Talker.size = LIMIT
    client = await harness.connect(Boss, "b")
    result = await (await begun(harness, Talker))

    assert result.status == "error"
    assert "at most 4194304 are allowed" in str(result.error)
    assert max(len(text) for text in client.texts) < 1000
    assert kinds(client)[-1] == "error"


@pytest.mark.behaviour("D21")
async def test_a_client_that_takes_one_write_a_second_holds_nobody_up_and_misses_nothing(
    harness: Harness,
) -> None:
    slow, quick = await harness.connect(Boss, "b"), await harness.connect(Boss, "b")
    slow.reading = False
    run = await begun(harness, Chatter)
    most = 0
    for _ in range(31):
        await harness.advance(1)
        take_one(slow)
        most = max(most, slow.link.outbox.waiting_bytes)
    assert (await run).status == "completed"
    assert kinds(quick) == ["started", *["chunk"] * 300, "finished"]
    for _ in range(300):
        take_one(slow)

    assert numbers(slow) == list(range(302))
    assert most < LIMIT


@pytest.mark.behaviour("D21")
async def test_a_client_that_stops_reading_is_let_go_and_sees_all_when_it_comes_back(
    tmp_path: Path,
) -> None:
    async with Harness(
        agents=[Boss],
        sub_agents=[Chatter],
        data_dir=tmp_path,
        options=HostOptions(outbox_bytes=100_000),
    ) as harness:
        slow, quick = await harness.connect(Boss, "b"), await harness.connect(Boss, "b")
        slow.reading = False
        run = await begun(harness, Chatter)
        await harness.advance(31)
        assert (await run).status == "completed"
        slow.reading = True
        await harness.settle()
        assert slow.closed is not None
        assert (slow.closed.code, slow.closed.reason) == (1013, "Too slow: reconnect to catch up")

        back = await harness.connect(Boss, "b")
        assert [event_of(f) for f in events(back.frames)] == [
            event_of(f) for f in events(quick.frames)
        ]
