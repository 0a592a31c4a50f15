"""A plain agent as parent, asked by rpc, HTTP and schedule; and who may see its runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.agent_tools.records import Progress
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.json import JsonObject, loads_object
from ramet.protocol.run_reducer import apply_agent_tool_event
from ramet.protocol.run_state import AgentToolState
from ramet.testing import Ending, Gate, Harness, ScriptedChild, TestClient
from tests.integration.agent_tools.children import events
from tests.integration.agent_tools.conftest import event_of, kinds, numbers

Worker = ScriptedChild.script(
    "Worker", ["a", "b"], ending=Ending(summary="worked", output={"n": 2})
)
Long = ScriptedChild.script("Long", ["x" * 1000] * 500, ending=Ending(summary="long"))
gate = Gate()
SlowWorker = ScriptedChild.script(
    "SlowWorker", ["a", Progress(fraction=0.5), gate, "b"], ending=Ending(summary="at last")
)


class Desk(ramet.Agent[None]):
    """Has its work done by a child, whoever asks."""

    @ramet.rpc
    async def work(self, run_id: str) -> str:
        result = await self.run_agent_tool(Worker, input="rpc", run_id=run_id)
        return result.summary or ""

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        result = await self.run_agent_tool(Worker, input={"path": request.path}, run_id="of-http")
        return ramet.Response(result.summary or "", status=200)

    async def later(self, run_id: str) -> None:
        await self.run_agent_tool(Worker, input="schedule", run_id=run_id)

    @ramet.rpc
    async def slow(self) -> str:
        result = await self.run_agent_tool(SlowWorker, input="slow", run_id="slow")
        return result.summary or ""


class Guarded(Desk):
    """Shows a run to those who are let in, as long as they are."""

    let_in: ClassVar[set[str]] = set()
    raises: ClassVar[bool] = False

    def __init__(self) -> None:
        self.errors: list[str] = []

    def can_view_agent_tool_run(self, connection: ramet.Connection, run: ramet.RunInfo) -> bool:
        if self.raises:
            raise ValueError("who knows")
        return connection.query.get("who") in self.let_in

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(str(error))


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Guarded.let_in, Guarded.raises = {"staff"}, False
    async with Harness(
        agents=[Desk, Guarded], sub_agents=[Worker, SlowWorker, Long], data_dir=tmp_path
    ) as started:
        yield started


def page(client: TestClient) -> AgentToolState:
    """What the page of a client shows."""
    state = AgentToolState()
    for frame in events(client.frames):
        state = apply_agent_tool_event(state, frame, now_ms=0)
    return state


@pytest.mark.behaviour("AT-001", "AT-154", "AT-043")
async def test_runs_of_rpc_http_and_schedule_are_shown_as_unbound(harness: Harness) -> None:
    client = await harness.connect(Desk, "d")
    await client.send({"type": "rpc", "id": "1", "method": "work", "args": ["of-rpc"]})
    answer = await harness.request(Desk, "d", request=ramet.Request(path="/report"))
    desk = await harness.agent(Desk, "d")
    await desk.schedule(5, "later", "of-schedule")
    await harness.advance(5)

    (reply,) = client.of_type("rpc")
    assert (reply["success"], reply["result"]) == (True, "worked")
    assert (answer.status, answer.content) == (200, "worked")
    assert [run.run_id for run in desk.list_agent_tool_runs(status="completed")] == [
        "of-rpc",
        "of-http",
        "of-schedule",
    ]
    assert all("parentToolCallId" not in frame for frame in events(client.frames))
    assert [run.parent_tool_call_id for run in desk.list_agent_tool_runs()] == [None] * 3
    shown = page(client)
    assert {run.run_id for run in shown.unbound_runs} == {"of-rpc", "of-http", "of-schedule"}
    assert shown.runs_by_tool_call_id == {}
    assert {run.status for run in shown.unbound_runs} == {"completed"}
    late = await harness.connect(Desk, "d")
    assert {run.run_id for run in page(late).unbound_runs} == {"of-rpc", "of-http", "of-schedule"}


@pytest.mark.behaviour("AT-113", "D12", "D13")
async def test_a_run_outlives_the_client_that_asked_for_it(harness: Harness) -> None:
    asking = await harness.connect(Desk, "d")
    await asking.send({"type": "rpc", "id": "1", "method": "slow", "args": []})
    await asking.close()
    watching = await harness.connect(Desk, "d")
    assert kinds(watching) == ["started", "chunk", "chunk"]
    gate.open()
    await harness.settle()

    assert kinds(watching)[-1] == "finished"
    (run,) = (await harness.agent(Desk, "d")).list_agent_tool_runs()
    assert run.status == "completed"


@pytest.mark.behaviour("AT-134", "D22")
async def test_each_client_sees_only_what_it_may_live_and_in_the_replay(harness: Harness) -> None:
    staff = await harness.connect(Guarded, "g", query={"who": "staff"})
    guest = await harness.connect(Guarded, "g", query={"who": "guest"})
    await guest.send({"type": "rpc", "id": "1", "method": "work", "args": ["r"]})
    late_staff = await harness.connect(Guarded, "g", query={"who": "staff"})
    late_guest = await harness.connect(Guarded, "g", query={"who": "guest"})

    assert kinds(staff) == ["started", "chunk", "chunk", "finished"]
    assert kinds(late_staff) == ["started", "chunk", "chunk", "finished"]
    assert events(guest.frames) == events(late_guest.frames) == []
    assert guest.of_type("rpc")[0]["result"] == "worked", "it asked, and is answered"
    assert late_guest.link.behind == set()


@pytest.mark.behaviour("D21", "D22")
async def test_who_is_let_in_no_more_is_sent_no_more_of_a_replay_either(harness: Harness) -> None:
    guarded = await harness.agent(Guarded, "g")
    await guarded.work("r")
    slow = await harness.connect(Guarded, "g", query={"who": "staff"})
    slow.frames.clear()
    slow.link.behind.add("run:r")
    Guarded.let_in = set()
    await harness.evict(Guarded, "g", force=True)
    await slow.send({"type": "hello"})

    assert events(slow.frames) == []
    later = await harness.connect(Guarded, "g", query={"who": "staff"})
    assert events(later.frames) == []


@pytest.mark.behaviour("D21", "D22")
async def test_a_page_that_may_look_no_more_gets_no_further_page_of_a_replay(
    harness: Harness,
) -> None:
    guarded = await harness.agent(Guarded, "g")
    await guarded.run_agent_tool(Long, run_id="long")
    link = ClientLink(
        id="slow", request=ramet.Request(query={"who": "staff"}), outbox=Outbox(limit_bytes=2**22)
    )
    await harness.host.connect(harness.path(Guarded, "g"), link)
    first: list[object] = []
    for _ in range(3):
        first += link.outbox.take_now()
        await harness.settle()
    assert 10 < len([frame for frame in first if "agent-tool-event" in str(frame)]) < 500
    assert link.behind == {"run:long"}
    Guarded.let_in = set()

    assert link.outbox.take_now() == ()
    assert link.behind == set()


async def test_a_filter_that_raises_hides_the_run_and_does_not_fail_it(harness: Harness) -> None:
    Guarded.raises = True
    client = await harness.connect(Guarded, "g", query={"who": "staff"})
    guarded = await harness.agent(Guarded, "g")
    assert await guarded.work("r") == "worked"
    await harness.settle()

    assert events(client.frames) == []
    assert set(guarded.errors) == {"who knows"}
    Guarded.raises = False
    late = await harness.connect(Guarded, "g", query={"who": "staff"})
    assert kinds(late)[-1] == "finished"
    assert numbers(late) == [0, 1, 2, 3]


async def test_where_a_run_is_can_be_asked_while_it_goes_on_and_afterwards(
    harness: Harness,
) -> None:
    desk = await harness.agent(Desk, "d")
    assert await desk.inspect_agent_tool("slow") is None
    await desk.work("r")
    found = await desk.inspect_agent_tool("r")
    assert found is not None
    assert found.result is not None
    assert found.child is not None
    assert (found.run.status, found.result.output, found.result.summary) == (
        "completed",
        {"n": 2},
        "worked",
    )
    assert (found.child.status, found.child_error) == ("completed", None)


@pytest.mark.behaviour("AT-333", "AT-339")
async def test_the_child_of_an_unbound_run_can_be_opened(harness: Harness) -> None:
    desk = await harness.agent(Desk, "d")
    outside = await harness.connect(Desk, "d")
    await asyncio.gather(desk.work("r"), desk.work("r"))
    await harness.settle()
    inside = await harness.connect(Desk, "d", [(Worker, "r")])

    assert events(inside.frames) == []
    bodies: list[JsonObject] = [
        loads_object(str(event_of(frame).get("body"))) or {} for frame in events(outside.frames)
    ]
    assert [body.get("delta") for body in bodies if "delta" in body] == ["a", "b"]
