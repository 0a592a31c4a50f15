"""Eviction, by the real thing: what blocks it, and that nobody notices it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ramet
from ramet.connections.link import ClientLink
from ramet.connections.outbox import Outbox
from ramet.core.json import JsonObject
from ramet.errors import InstanceGone
from ramet.testing import Harness, TestClient
from tests.integration.agent_tools.children import HandChild, Parent, events

LOG: list[str] = []
GATES: dict[str, asyncio.Event] = {}


class Board(ramet.Agent[JsonObject]):
    """Has state, attachments, schedules, a queue and bodies that it makes piece by piece."""

    initial_state = {"count": 0}

    def get_connection_tags(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> list[str]:
        return ["guest"]

    def should_connection_be_readonly(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> bool:
        return "readonly" in request.query

    def on_connect(self, connection: ramet.Connection, request: ramet.Request) -> None:
        connection.set_state({"seen": 1})

    def on_message(self, connection: ramet.Connection, message: str | bytes) -> None:
        LOG.append(f"message {message!s}")
        connection.send({"tags": list(connection.tags), "state": connection.state})

    def on_close(self, connection: ramet.Connection, code: int, reason: str) -> None:
        LOG.append(f"close {code} {reason} {connection.state}")

    async def on_request(self, request: ramet.Request) -> ramet.Response:
        return ramet.Response(self.pieces())

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            yield b"one"
            await gate("body").wait()
            yield b"two"
        finally:
            LOG.append("body closed")

    @ramet.rpc
    def increment(self) -> int:
        count = int(str(self.state["count"])) + 1
        self.set_state({"count": count})
        return count

    async def note(self, text: str) -> None:
        LOG.append(text)

    async def note_slowly(self, text: str) -> None:
        LOG.append(f"{text} begins")
        await gate(text).wait()
        LOG.append(text)

    async def call_slowly(self) -> str:
        await gate("call").wait()
        return "called"

    async def below(self, name: str) -> None:
        await self.sub_agent(Below, name)

    async def drop(self, name: str) -> None:
        await self.delete_sub_agent(Below, name)


class Below(Board):
    """The same, below another."""


class Asker(Parent):
    """Starts a run when it is asked to."""

    async def ask(self) -> str:
        return (await self.run_agent_tool(HandChild, input="bees", run_id="r")).status


class Plain(ramet.Agent[None]):
    """Does not mind who leaves."""


def gate(name: str) -> asyncio.Event:
    return GATES.setdefault(name, asyncio.Event())


@pytest.fixture(autouse=True)
def fresh() -> None:
    LOG.clear()
    GATES.clear()


@pytest.fixture
async def h(tmp_path: Path) -> AsyncIterator[Harness]:
    agents = [Board, Plain, Parent, Asker]
    async with Harness(agents=agents, sub_agents=[Below, HandChild], data_dir=tmp_path) as harness:
        yield harness


def live(h: Harness, cls: type, name: str = "a") -> bool:
    return h.host.instances.live(h.path(cls, name)) is not None


async def refused(h: Harness, cls: type, reason: str) -> None:
    with pytest.raises(ramet.RametError, match=reason):
        await h.evict(cls, "a")
    assert live(h, cls)


def rpc(number: int) -> JsonObject:
    return {"type": "rpc", "id": str(number), "method": "increment", "args": []}


@pytest.mark.behaviour("D14", "SA-027")
async def test_a_connected_client_sees_the_same_frames_with_and_without_an_eviction(
    h: Harness,
) -> None:
    seen = []
    for name, evicted in (("a", False), ("b", True)):
        client = await h.connect(Board, name)
        other = await h.connect(Board, name)
        for number in range(3):
            await client.send(rpc(number))
            await client.send(f"hello {number}")
            if evicted:
                await h.evict(Board, name)
                assert not live(h, Board, name)
        frames = [*client.frames[1:], *other.frames[1:]]
        tags = [frame.pop("tags") for frame in frames if "tags" in frame]
        assert tags == [[client.id, "guest"]] * 3
        seen.append(frames)
    assert seen[0] == seen[1]


@pytest.mark.behaviour("D14", "SA-027")
async def test_what_is_attached_to_a_connection_outlives_the_instance(h: Harness) -> None:
    client = await h.connect(Board, "a", query={"readonly": "1"})
    await h.evict(Board, "a")
    (connection,) = [c async for c in _reopened(h, client)]
    assert connection.readonly
    assert connection.state == {"seen": 1}
    assert connection.tags == (client.id, "guest")
    await client.send({"type": "cf_agent_state", "state": {"count": 9}})
    assert client.of_type("cf_agent_state_error")


async def _reopened(h: Harness, client: TestClient) -> AsyncIterator[ramet.Connection]:
    await client.send("hello")
    for connection in (await h.agent(Board, "a")).get_connections("guest"):
        yield connection


@pytest.mark.behaviour("D14")
async def test_frames_that_come_while_the_agent_opens_again_are_taken_in_order(h: Harness) -> None:
    client = await h.connect(Board, "a")
    await h.evict(Board, "a")
    for number in range(5):
        h.host.receive(client.link, f"{number}")
    await h.settle()
    assert [f"message {number}" for number in range(5)] == LOG


@pytest.mark.behaviour("D14")
async def test_an_evicted_agent_hears_of_a_client_that_leaves(h: Harness) -> None:
    client = await h.connect(Board, "a")
    await h.evict(Board, "a")
    await client.close(1000, "bye")
    assert LOG == ["close 1000 bye {'seen': 1}"]
    assert len((await h.agent(Board, "a")).get_connections()) == 0


@pytest.mark.behaviour("D14")
async def test_what_a_client_sent_before_it_left_is_taken_by_the_agent_that_opens_again(
    h: Harness,
) -> None:
    client = await h.connect(Board, "a")
    await h.evict(Board, "a")
    h.host.receive(client.link, "last words")
    await client.close()
    assert LOG == ["message last words", "close 1000  {'seen': 1}"]


@pytest.mark.behaviour("D14")
async def test_an_agent_that_does_not_mind_is_not_opened_for_a_client_that_leaves(
    h: Harness,
) -> None:
    client = await h.connect(Plain, "a")
    await h.evict(Plain, "a")
    await client.close()
    assert not live(h, Plain)


@pytest.mark.behaviour("D14")
async def test_the_socket_of_an_evicted_sub_agent_is_closed_when_that_is_deleted(
    h: Harness,
) -> None:
    await h.stub(Board, "a").below("x")
    client = await h.connect(Board, "a", [(Below, "x")])
    await h.evict(Board, "a", sub=[(Below, "x")])
    await h.stub(Board, "a").drop("x")
    await h.settle()
    assert client.closed is not None
    assert client.closed.reason == "Sub-agent deleted"
    await client.send("hello")
    assert not h.host.files.file_of(h.path(Board, "a", [(Below, "x")])).exists()


@pytest.mark.behaviour("D14", "D18")
async def test_the_sockets_of_evicted_agents_are_closed_when_the_host_stops(h: Harness) -> None:
    client = await h.connect(Board, "a")
    await h.evict(Board, "a")
    await h.host.stop()
    client.read()
    assert client.closed is not None
    assert client.closed.code == 1001


@pytest.mark.behaviour("D14")
async def test_a_root_stays_while_a_sub_agent_is_open(h: Harness) -> None:
    await h.stub(Board, "a").below("x")
    await refused(h, Board, "a sub-agent of it is open")
    await h.evict(Board, "a", sub=[(Below, "x")])
    await h.evict(Board, "a")
    assert len(h.host.instances) == 0


@pytest.mark.behaviour("D14")
async def test_a_call_that_is_awaited_keeps_its_agent(h: Harness) -> None:
    call = asyncio.get_running_loop().create_task(h.stub(Board, "a").call_slowly())
    await h.settle()
    await refused(h, Board, "a call from another agent is running")
    gate("call").set()
    assert await call == "called"
    await h.evict(Board, "a")


@pytest.mark.behaviour("D14")
async def test_an_open_http_body_keeps_its_agent_until_it_was_read(h: Harness) -> None:
    body = await _body(h)
    assert await anext(body) == b"one"
    await refused(h, Board, "an HTTP body is open")
    gate("body").set()
    assert [piece async for piece in body] == [b"two"]
    assert LOG == ["body closed"]
    await h.evict(Board, "a")


@pytest.mark.behaviour("D14")
async def test_an_http_body_that_nobody_wants_lets_its_agent_go(h: Harness) -> None:
    body = await _body(h)
    await _close(body)
    await h.evict(Board, "a")
    body = await _body(h)
    await anext(body)
    await _close(body)
    assert LOG == ["body closed"]
    await h.evict(Board, "a")


@pytest.mark.behaviour("D11", "D14")
async def test_an_http_body_ends_with_its_instance(h: Harness) -> None:
    body = await _body(h)
    await anext(body)
    reading = asyncio.get_running_loop().create_task(_next(body))
    await h.settle()
    await h.evict(Board, "a", force=True)
    with pytest.raises(InstanceGone):
        await reading
    assert LOG == ["body closed"]


async def test_an_error_of_an_http_body_reaches_who_reads_it(tmp_path: Path) -> None:
    class Broken(Board):
        async def pieces(self) -> AsyncIterator[bytes]:
            yield b"one"
            raise ValueError("torn")

    async with Harness(agents=[Broken], data_dir=tmp_path) as other:
        body = (await other.request(Broken, "a")).content
        assert isinstance(body, AsyncIterator)
        assert await anext(body) == b"one"
        with pytest.raises(ValueError, match="torn"):
            await anext(body)
        await other.evict(Broken, "a")


async def _body(h: Harness) -> AsyncIterator[bytes]:
    content = (await h.request(Board, "a")).content
    assert isinstance(content, AsyncIterator)
    return content


async def _next(body: AsyncIterator[bytes]) -> bytes:
    return await anext(body)


async def _close(body: AsyncIterator[bytes]) -> None:
    close = getattr(body, "aclose", None)
    assert close is not None
    await close()


@pytest.mark.behaviour("D6", "D14")
async def test_an_agent_evicted_before_its_schedule_is_due_runs_it(h: Harness) -> None:
    agent = await h.agent(Board, "a")
    client = await h.connect(Board, "a")
    await agent.schedule(60, agent.note, "rung")
    await h.evict(Board, "a")
    await h.advance(61)
    assert LOG == ["rung"]
    await client.send("hello")
    assert client.frames[-1]["state"] == {"seen": 1}


@pytest.mark.behaviour("D11", "D14")
async def test_a_schedule_that_is_being_carried_out_is_carried_out_again_after_force(
    h: Harness,
) -> None:
    agent = await h.agent(Board, "a")
    await agent.schedule(60, agent.note_slowly, "rung")
    await h.advance(61)
    await refused(h, Board, "a schedule is being carried out|a scheduled callback is running")
    await h.evict(Board, "a", force=True)
    gate("rung").set()
    await h.advance(120)
    assert LOG == ["rung begins", "rung begins", "rung"]


@pytest.mark.behaviour("D11", "D14")
async def test_a_queued_message_blocks_eviction_and_outlives_force(h: Harness) -> None:
    agent = await h.agent(Board, "a")
    await agent.queue(agent.note_slowly, "first")
    await agent.queue(agent.note, "second")
    await h.settle()
    await refused(h, Board, "queue")
    await h.evict(Board, "a", force=True)
    gate("first").set()
    await h.stub(Board, "a").note("open")
    await h.settle()
    assert [each for each in LOG if each != "open"] == [
        "first begins",
        "first begins",
        "first",
        "second",
    ]


@pytest.mark.behaviour("D11", "D14")
async def test_a_waiter_is_told_when_its_agent_is_evicted_by_force(h: Harness) -> None:
    call = asyncio.get_running_loop().create_task(h.stub(Board, "a").call_slowly())
    await h.settle()
    await h.evict(Board, "a", force=True)
    with pytest.raises(InstanceGone):
        await call
    gate("call").set()
    assert await h.stub(Board, "a").call_slowly() == "called"


@pytest.mark.behaviour("D14")
async def test_a_child_that_was_evicted_after_its_end_is_read_when_the_client_reconnects(
    h: Harness,
) -> None:
    seen = []
    for evicted in (False, True):
        name = "evicted" if evicted else "kept"
        parent = await h.agent(Parent, name)
        run = asyncio.get_running_loop().create_task(
            parent.run_agent_tool(HandChild, input="bees", run_id="r")
        )
        await h.settle()
        child = await h.agent(Parent, name, [(HandChild, "r")])
        child_agent: object = child
        assert isinstance(child_agent, HandChild)
        child_agent.say("one", "two")
        child_agent.milestone("half", 1)
        child_agent.end(summary="done")
        await h.settle()
        assert (await run).status == "completed"
        if evicted:
            await h.evict(Parent, name, sub=[(HandChild, "r")])
            await h.evict(Parent, name)
        client = await h.connect(Parent, name)
        seen.append(events(client.frames))
    assert seen[0]
    assert seen[0] == seen[1]


@pytest.mark.behaviour("D14")
async def test_a_parent_evicted_between_two_runs_of_its_child_numbers_on(h: Harness) -> None:
    client = await h.connect(Parent, "a")
    for number in (1, 2):
        parent = await h.agent(Parent, "a")
        run = asyncio.get_running_loop().create_task(
            parent.run_agent_tool(HandChild, input="bees", run_id=f"r{number}")
        )
        await h.settle()
        with pytest.raises(ramet.RametError, match="an agent-tool run is under way"):
            await h.evict(Parent, "a")
        child: object = await h.agent(Parent, "a", [(HandChild, f"r{number}")])
        assert isinstance(child, HandChild)
        child.say(f"word {number}")
        child.end(summary="done")
        await h.settle()
        assert (await run).status == "completed"
        await h.evict(Parent, "a", sub=[(HandChild, f"r{number}")])
        await h.evict(Parent, "a")
    live_events = events(client.frames)
    again = await h.connect(Parent, "a")
    replayed = events(again.frames)
    assert [e["event"] for e in live_events] == [e["event"] for e in replayed]
    assert [e["sequence"] for e in live_events] == [e["sequence"] for e in replayed]


@pytest.mark.behaviour("D11", "D14")
async def test_a_parent_evicted_by_force_amid_a_run_loses_and_doubles_nothing(h: Harness) -> None:
    client = await h.connect(Asker, "a")
    run = asyncio.get_running_loop().create_task(h.stub(Asker, "a").ask())
    await h.settle()
    child: object = await h.agent(Asker, "a", [(HandChild, "r")])
    assert isinstance(child, HandChild)
    child.say("one")
    await h.settle()
    await h.evict(Asker, "a", force=True)
    with pytest.raises(InstanceGone):
        await run
    await h.agent(Asker, "a")
    await h.settle()
    again: object = await h.agent(Asker, "a", [(HandChild, "r")])
    assert isinstance(again, HandChild)
    assert again is not child
    assert again.status() == "running"
    again.say("two")
    again.end(summary="done")
    await h.settle()
    fresh_client = await h.connect(Asker, "a")
    rows = h.rows(Asker, "a", "SELECT status FROM cf_agent_tool_runs")
    assert rows == [{"status": "completed"}]
    numbered = {str(e["sequence"]): e["event"] for e in events(client.frames)}
    assert len(numbered) == len(events(fresh_client.frames))
    assert numbered == {str(e["sequence"]): e["event"] for e in events(fresh_client.frames)}
    assert all(numbered[str(e["sequence"])] == e["event"] for e in events(client.frames))


@pytest.mark.behaviour("D14", "D15")
async def test_agents_that_are_busy_stay_open_beyond_the_limit_until_they_are_done(
    tmp_path: Path,
) -> None:
    options = ramet.HostOptions(max_open_agents=2, idle_timeout=1000)
    async with Harness(agents=[Board], data_dir=tmp_path, options=options) as h:
        loop = asyncio.get_running_loop()
        calls = [loop.create_task(h.stub(Board, f"a{n}").call_slowly()) for n in range(5)]
        await h.settle()
        assert len(h.host.instances) == 5
        gate("call").set()
        assert await asyncio.gather(*calls) == ["called"] * 5
        await h.advance(2)
        assert len(h.host.instances) == 2


@pytest.mark.behaviour("D14")
async def test_thousands_of_idle_agents_leave_memory_in_one_look(tmp_path: Path) -> None:
    options = ramet.HostOptions(idle_timeout=60)
    async with Harness(agents=[Plain], data_dir=tmp_path, options=options) as h:
        for number in range(550):
            await h.agent(Plain, f"a{number}")
        assert len(h.host.instances) == 550
        await h.advance(76)
        assert len(h.host.instances) == 0


@pytest.mark.behaviour("D14")
async def test_who_asks_for_an_agent_gets_one_that_was_not_evicted_meanwhile(
    tmp_path: Path,
) -> None:
    options = ramet.HostOptions(max_open_agents=1)
    async with Harness(agents=[Board], data_dir=tmp_path, options=options) as h:
        loop = asyncio.get_running_loop()
        asks = [loop.create_task(h.stub(Board, f"a{n}").note(f"{n}")) for n in range(20)]
        links = [
            ClientLink(id=f"{n}", request=ramet.Request(), outbox=Outbox(limit_bytes=2**20))
            for n in range(20)
        ]
        greeted = [
            loop.create_task(h.host.connect(h.path(Board, f"a{n}"), link))
            for n, link in enumerate(links)
        ]
        await asyncio.gather(*asks, *greeted)
        assert sorted(LOG, key=int) == [f"{n}" for n in range(20)]
