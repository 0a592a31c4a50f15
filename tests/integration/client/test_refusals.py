"""What a client says that cannot connect: one clear sentence each."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ramet.client import AgentClient, ClientOptions
from ramet.errors import ClientError, ConnectionLost, ConnectionRefused
from tests.integration.client.proxy import HOST, proxied
from tests.integration.web import agents
from tests.support.server import free_port
from tests.unit.web.serving import serving

QUICK = ClientOptions(first_delay=0.01, max_delay=0.02, max_retries=2, connect_timeout=2)


async def refusal(
    url: str,
    *,
    agent: str = "CounterAgent",
    name: str = "c",
    sub: Sequence[tuple[str, str]] = (),
    headers: dict[str, str] | None = None,
    options: ClientOptions = QUICK,
) -> ClientError:
    with pytest.raises(ClientError) as error:
        async with AgentClient(
            url, agent=agent, name=name, sub=sub, headers=headers, options=options
        ):
            pass
    assert str(error.value).count("\n") == 0
    return error.value


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """Something on a port that answers everything with the same bytes and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"


async def test_an_agent_that_is_not_there(address: str) -> None:
    error = await refusal(f"http://{address}", agent="Nobody", name="n")

    assert isinstance(error, ConnectionRefused)
    assert error.code == 4400
    assert str(error) == (
        f"The server refused the connection to Nobody:n at http://{address}: Invalid request, "
        "which means that it has no such class, or only below a parent (4400)"
    )


@pytest.mark.behaviour("D19", "D20")
@pytest.mark.parametrize(
    ("sub", "code"), [(("Researcher", "forbidden"), 4403), (("NoSuchClass", "x"), 4404)]
)
async def test_a_child_that_is_not_to_be_seen(
    address: str, sub: tuple[str, str], code: int
) -> None:
    error = await refusal(f"http://{address}", sub=[sub])

    assert isinstance(error, ConnectionRefused)
    assert (error.code, error.reason) == (code, f"Sub-agent connection rejected ({code - 4000})")


async def test_a_path_under_which_no_agents_are(address: str) -> None:
    error = await refusal(f"http://{address}/elsewhere")

    assert isinstance(error, ConnectionRefused)
    assert "Not found (4404)" in str(error)


@pytest.mark.behaviour("D20")
async def test_a_page_of_another_origin(tmp_path: Path) -> None:
    agents.app.data_dir = tmp_path
    async with serving(agents.app) as address:
        headers = {"Origin": "https://page.example"}
        error = await refusal(f"http://{address}", agent="Parent", headers=headers)

    assert isinstance(error, ConnectionRefused)
    assert "Origin not allowed (4403)" in str(error)


async def test_a_port_where_nobody_listens() -> None:
    url = f"http://{HOST}:{free_port()}"
    error = await refusal(url)

    assert isinstance(error, ConnectionLost)
    assert str(error) == f"Cannot connect to CounterAgent:c at {url}: Connection refused"


async def test_a_host_that_does_not_exist() -> None:
    error = await refusal("http://no-such-host.invalid")

    assert isinstance(error, ConnectionLost)
    assert str(error).startswith("Cannot connect to CounterAgent:c at http://no-such-host.invalid:")


@pytest.mark.parametrize(
    ("answer", "said", "kind"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "it answered with HTTP 404", ConnectionRefused),
        (b"HTTP/1.1 200 OK\r\n\r\n", "it answered with HTTP 200", ConnectionRefused),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answered with HTTP 502", ConnectionLost),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "what answers is no WebSocket server", ConnectionRefused),
        (b"", "", ClientError),
    ],
)
async def test_something_else_that_listens(
    answer: bytes, said: str, kind: type[ClientError]
) -> None:
    async with answering(answer) as url:
        error = await refusal(url)

    assert isinstance(error, kind)
    assert said in str(error)


async def test_a_server_that_says_nothing() -> None:
    hung_up = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        error = await refusal(url, options=ClientOptions(connect_timeout=0.05))
        await hung_up.wait()

    assert str(error) == f"Cannot connect to CounterAgent:c at {url}: no answer within 0.05 s"


async def test_a_server_that_goes_and_does_not_come_back(address: str) -> None:
    async with (
        proxied(address) as proxy,
        AgentClient(
            f"http://{proxy.address}", agent="CounterAgent", name="c", options=QUICK
        ) as client,
    ):
        proxy.admits = False
        proxy.cut()
        with pytest.raises(ConnectionLost):
            await client.call("slow", 1_000)
        with pytest.raises(ConnectionLost, match="did not come back in 2 attempts"):
            await client.call("echo", 1)


async def test_a_frame_that_is_larger_than_this_client_takes(address: str) -> None:
    options = ClientOptions(max_frame_bytes=1_000)
    async with AgentClient(
        f"http://{address}", agent="CounterAgent", name="c", options=options
    ) as client:
        with pytest.raises(ConnectionLost):
            await client.call("echo", "x" * 2_000)
        with pytest.raises(ConnectionLost, match=r"raise ClientOptions\.max_frame_bytes"):
            await client.call("echo", 1)
