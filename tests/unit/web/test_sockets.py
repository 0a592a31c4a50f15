"""WebSockets through the edge, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from ramet.connections.link import ClientLink
from ramet.core.http import Request, Response, Target
from ramet.core.options import HostOptions
from ramet.core.paths import AgentPath
from ramet.errors import InstanceGone, SubAgentNotFound
from ramet.web.edge import Edge, EdgeOptions
from ramet.web.origins import Origins
from ramet.web.socket_protocol import SocketProtocol
from tests.unit.web.fake_host import FakeHost
from tests.unit.web.serving import running, serving

ROOM = "/agents/chat-agent/room"
PAGE = "https://page.example"


@asynccontextmanager
async def opened(
    host: FakeHost,
    path: str = ROOM,
    *,
    options: EdgeOptions | None = None,
    origin: str | None = None,
) -> AsyncIterator[ClientConnection]:
    async with (
        serving(Edge(host, options or EdgeOptions())) as address,
        connect(
            f"ws://{address}{path}", additional_headers={"Origin": origin} if origin else {}
        ) as client,
    ):
        yield client


async def closing(
    host: FakeHost,
    path: str = ROOM,
    *,
    options: EdgeOptions | None = None,
    origin: str | None = None,
) -> tuple[int, str]:
    """How the server closes a socket that it accepted."""
    async with opened(host, path, options=options, origin=origin) as client:
        return await until_closed(client)


async def everything(client: ClientConnection) -> None:
    while True:
        await client.recv()


async def until_closed(client: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed) as closed:
        await everything(client)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


async def test_a_client_is_greeted_by_the_agent_it_addressed() -> None:
    host = FakeHost()
    async with opened(host, f"{ROOM}/sub/researcher/r?_pk=mine&token=t") as client:
        assert await client.recv() == "hello from ChatAgent:room/Researcher:r"

    (link,) = host.links
    assert link.id == "mine"
    assert link.request.query["token"] == "t"


@pytest.mark.parametrize("query", ["", "?_pk="])
async def test_a_client_without_an_id_is_given_one(query: str) -> None:
    host = FakeHost()
    async with opened(host, ROOM + query) as client:
        await client.recv()

    assert len(host.links[0].id) == 20


async def test_frames_go_both_ways_as_text_or_bytes() -> None:
    host = FakeHost(receiving=lambda link, message: link.outbox.push(message))
    async with opened(host) as client:
        await client.recv()
        messages: list[str | bytes] = ["text é", b"bytes", "x" * 200_000, ""]
        for message in messages:
            await client.send(message)
            assert await client.recv() == message


@pytest.mark.behaviour("D13")
async def test_frames_are_taken_while_the_agent_is_still_opening() -> None:
    may_open = asyncio.Event()

    async def slowly(path: AgentPath, link: ClientLink) -> None:
        await may_open.wait()
        link.outbox.push("open")

    host = FakeHost(greeting=slowly)
    async with opened(host) as client:
        await client.send("early")
        await host.until(lambda: host.received == ["early"])
        may_open.set()
        assert await client.recv() == "open"


async def test_a_client_that_leaves_is_reported_with_its_code_and_reason() -> None:
    host = FakeHost()
    async with opened(host) as client:
        await client.recv()
        await client.close(4321, "done here")
        await host.until(lambda: bool(host.gone))

    assert host.gone == [(4321, "done here")]


async def test_a_connection_that_breaks_is_reported_as_abnormal() -> None:
    host = FakeHost()
    async with opened(host) as client:
        await client.recv()
        client.transport.abort()
        await host.until(lambda: bool(host.gone))

    assert host.gone == [(1006, "")]


async def test_an_agent_may_close_after_its_last_words() -> None:
    def part(link: ClientLink, message: str | bytes) -> None:
        link.outbox.push("last words")
        link.outbox.close(4002, "that was all")

    host = FakeHost(receiving=part)
    async with opened(host) as client:
        await client.recv()
        await client.send("bye?")
        assert await client.recv() == "last words"
        assert await until_closed(client) == (4002, "that was all")
    await host.until(lambda: bool(host.gone))

    assert host.gone == [(4002, "that was all")]


@pytest.mark.behaviour("D20", "SA-025")
@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        ("/agents/nobody/x", 4400, "Invalid request"),
        ("/elsewhere", 4404, "Not found"),
        (f"{ROOM}/sub/nobody/x", 4404, "Sub-agent connection rejected (404)"),
        ("/agents/chat-agent/a%00b", 4400, "An agent name must not contain NUL."),
        (f"{ROOM}?__agents_transport=capnweb", 4400, "The transport capnweb is not supported"),
    ],
)
async def test_an_address_that_leads_nowhere_is_accepted_and_closed_for_good(
    path: str, code: int, reason: str
) -> None:
    assert await closing(FakeHost(), path) == (code, reason)


@pytest.mark.behaviour("D20")
@pytest.mark.parametrize(
    ("status", "code"), [(401, 4401), (403, 4403), (404, 4404), (302, 1011), (500, 1011)]
)
async def test_a_refusing_hook_closes_with_the_status_it_gave(status: int, code: int) -> None:
    options = EdgeOptions(on_before_connect=lambda request, target: Response(status=status))

    assert await closing(FakeHost(), options=options) == (code, f"Connection rejected ({status})")


@pytest.mark.behaviour("D20", "SA-023", "SA-024")
async def test_a_refusal_at_a_parent_closes_with_its_status() -> None:
    async def refuse(path: AgentPath, request: Request) -> Response | Request:
        return Response("secret reason", status=403)

    host = FakeHost(admitting=refuse)

    assert await closing(host, f"{ROOM}/sub/researcher/r") == (
        4403,
        "Sub-agent connection rejected (403)",
    )
    assert host.links == []


async def test_a_hook_may_change_the_request_that_the_agent_sees() -> None:
    async def change(request: Request, target: Target) -> Request:
        return request.replace(headers={**request.headers, "x-user": "alice"})

    host = FakeHost()
    async with opened(host, options=EdgeOptions(on_before_connect=change)) as client:
        await client.recv()

    assert host.links[0].request.headers["x-user"] == "alice"


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (SubAgentNotFound("There is no such sub-agent"), 4404, "There is no such sub-agent"),
        (InstanceGone("The instance is gone"), 1011, "The instance is gone"),
        (ValueError("on_start failed " + "é" * 200), 1011, "on_start failed " + "é" * 53),
    ],
)
async def test_an_agent_that_cannot_be_opened_closes_the_connection(
    error: Exception, code: int, reason: str
) -> None:
    async def fail(path: AgentPath, link: ClientLink) -> None:
        raise error

    assert await closing(FakeHost(greeting=fail)) == (code, reason)


async def test_a_hook_that_fails_closes_the_connection() -> None:
    def fail(request: Request, target: Target) -> None:
        raise ValueError("the hook's own words")

    options = EdgeOptions(on_before_connect=fail)

    assert await closing(FakeHost(), options=options) == (1011, "the hook's own words")


@pytest.mark.behaviour("D20")
async def test_a_page_of_another_origin_is_refused_for_good() -> None:
    assert await closing(FakeHost(), origin=PAGE) == (4403, "Origin not allowed")


@pytest.mark.behaviour("D20")
@pytest.mark.parametrize("allowed", ["*", PAGE])
async def test_a_page_of_an_allowed_origin_is_let_in(allowed: str) -> None:
    options = EdgeOptions(origins=Origins((allowed,)))
    async with opened(FakeHost(), options=options, origin=PAGE) as client:
        assert await client.recv() == "hello from ChatAgent:room"


async def test_a_page_of_the_same_origin_is_let_in() -> None:
    async with (
        serving(Edge(FakeHost(), EdgeOptions())) as address,
        connect(
            f"ws://{address}{ROOM}", additional_headers={"Origin": f"http://{address}"}
        ) as client,
    ):
        assert await client.recv() == "hello from ChatAgent:room"


@pytest.mark.behaviour("D25")
async def test_a_frame_above_the_limit_of_the_server_closes_with_1009() -> None:
    host = FakeHost()
    async with (
        serving(Edge(host, EdgeOptions()), max_frame_bytes=1_000_000) as address,
        connect(f"ws://{address}{ROOM}", max_size=None) as client,
    ):
        await client.recv()
        await client.send("x" * 1_000_000)
        await host.until(lambda: bool(host.received))
        await client.send("x" * 3_000_000)
        code, reason = await until_closed(client)
        await host.until(lambda: bool(host.gone))

    assert code == 1009
    assert host.gone == [(1009, reason)]


async def tick() -> None:
    """Let the event loop look at its sockets."""
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)


async def flood(host: FakeHost, *, frame: str, total: int) -> int:
    """Push frames without waiting for anybody; how many there were room for."""
    (link,) = host.links
    pushed = 0
    while pushed < total and not link.outbox.closed:
        link.outbox.push(frame)
        pushed += len(frame)
        await tick()
    return pushed


@pytest.mark.behaviour("D21")
async def test_a_client_that_stops_reading_is_closed_with_1013_without_anybody_waiting() -> None:
    host = FakeHost(options=HostOptions(outbox_bytes=2**20))
    async with opened(host) as client:
        await client.recv()
        client.transport.pause_reading()
        pushed = await flood(host, frame="x" * 50_000, total=50_000_000)
        await host.until(lambda: bool(host.gone))
        client.transport.resume_reading()
        code, _ = await until_closed(client)

    assert pushed < 20_000_000
    assert code == 1013
    assert host.gone == [(1013, "Too slow: reconnect to catch up")]


@pytest.mark.behaviour("D21")
async def test_a_client_that_never_reads_again_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SocketProtocol, "close_seconds", 0.2)
    host = FakeHost(options=HostOptions(outbox_bytes=2**20))
    async with running(Edge(host, EdgeOptions())) as (address, server):
        client = await connect(f"ws://{address}{ROOM}")
        await client.recv()
        client.transport.pause_reading()
        await flood(host, frame="x" * 50_000, total=50_000_000)
        while server.server_state.connections:
            await tick()
        client.transport.abort()

    assert host.gone == [(1013, "Too slow: reconnect to catch up")]


@pytest.mark.behaviour("D21")
async def test_a_stuck_client_does_not_keep_the_server_from_stopping() -> None:
    host = FakeHost()
    async with running(Edge(host, EdgeOptions())) as (address, server):
        client = await connect(f"ws://{address}{ROOM}")
        await client.recv()
        client.transport.pause_reading()
        await flood(host, frame="x" * 50_000, total=3_000_000)
        server.stop()
        await host.until(lambda: bool(host.gone))
        client.transport.abort()

    assert host.gone == [(1012, "")]


async def test_a_client_that_reads_is_sent_everything_in_order() -> None:
    host = FakeHost()
    async with opened(host) as client:
        await client.recv()
        for number in range(20_000):
            host.links[0].outbox.push(f"frame {number} é")
        received = [await client.recv() for _ in range(20_000)]

    assert received == [f"frame {number} é" for number in range(20_000)]
