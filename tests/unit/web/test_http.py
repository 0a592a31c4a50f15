"""HTTP through the edge, over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.responses import JSONResponse

from ramet.core.http import Request, Response, Target
from ramet.core.paths import AgentPath
from ramet.errors import AgentNotRegistered, InstanceGone
from ramet.web.edge import Edge, EdgeOptions
from ramet.web.origins import Origins
from tests.unit.web.fake_host import ChatAgent, FakeHost, Researcher
from tests.unit.web.serving import serving

ROOM = "/agents/chat-agent/room"
PAGE = "https://page.example"
CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST, HEAD, OPTIONS",
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}


async def ask(
    host: FakeHost,
    path: str = ROOM,
    *,
    method: str = "GET",
    options: EdgeOptions | None = None,
    headers: dict[str, str] | None = None,
    content: bytes | AsyncIterator[bytes] | None = None,
) -> httpx.Response:
    async with (
        serving(Edge(host, options or EdgeOptions())) as address,
        httpx.AsyncClient(base_url=f"http://{address}") as client,
    ):
        return await client.request(method, path, headers=headers, content=content)


async def test_a_request_reaches_its_agent_with_the_rest_of_its_path_and_its_body() -> None:
    answer = await ask(FakeHost(), f"{ROOM}/files/a%20b", method="POST", content=b"hello")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "ChatAgent:room POST /files/a b hello"


async def test_an_agent_sees_the_query_the_headers_and_the_url() -> None:
    seen: list[Request] = []

    async def remember(path: AgentPath, request: Request) -> Response:
        seen.append(request)
        return Response()

    await ask(FakeHost(responding=remember), f"{ROOM}?a=1&a=2&b=%20", headers={"X-Token": "t"})

    (request,) = seen
    assert request.query == {"a": "2", "b": " "}
    assert request.headers["x-token"] == "t"
    assert request.url.startswith("http://127.0.0.1:")
    assert request.url.endswith(f"{ROOM}?a=1&a=2&b=%20")


@pytest.mark.behaviour("SA-021")
async def test_a_sub_agent_is_reached_below_its_parent() -> None:
    answer = await ask(FakeHost(), f"{ROOM}/sub/researcher/r%2F1/get-messages")

    assert answer.text == "ChatAgent:room/Researcher:r/1 GET /get-messages"


@pytest.mark.behaviour("SA-025", "D19")
@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/elsewhere", 404, "Not found"),
        ("/agents/nobody/x", 400, "Invalid request"),
        (f"{ROOM}/sub/nobody/x", 404, "Sub-agent not found"),
        ("/agents/chat-agent/a%00b", 400, "An agent name must not contain NUL."),
    ],
)
async def test_an_address_that_leads_nowhere_gets_a_terse_answer(
    path: str, status: int, text: str
) -> None:
    answer = await ask(FakeHost(), path)

    assert (answer.status_code, answer.text) == (status, text)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (AgentNotRegistered("No such class"), 404, "No such class"),
        (InstanceGone("The instance is gone"), 503, "The instance is gone"),
        (ValueError("the user's own words"), 500, "the user's own words"),
    ],
)
async def test_an_error_becomes_a_status_without_a_stack(
    error: Exception, status: int, text: str
) -> None:
    async def fail(path: AgentPath, request: Request) -> Response:
        raise error

    answer = await ask(FakeHost(responding=fail))

    assert (answer.status_code, answer.text) == (status, text)


@pytest.mark.behaviour("D26")
async def test_an_error_of_the_insides_is_not_shown() -> None:
    async def fail(path: AgentPath, request: Request) -> Response:
        raise httpx.ReadTimeout("secret-host.internal timed out")

    answer = await ask(FakeHost(responding=fail))

    assert answer.status_code == 500
    assert answer.text.startswith("Something went wrong inside the server (error ")


@pytest.mark.behaviour("D20")
@pytest.mark.parametrize(
    "path", [ROOM, "/elsewhere", "/agents/nobody/x", f"{ROOM}/sub/nobody/x", f"{ROOM}/refused"]
)
async def test_every_answer_tells_other_origins_that_they_may_read_it(path: str) -> None:
    async def refuse_some(at: AgentPath, request: Request) -> Response | Request:
        return Response(status=403) if request.path == "/refused" else request

    answer = await ask(
        FakeHost(admitting=refuse_some), path, options=EdgeOptions(origins=Origins(("*",)))
    )

    assert {name: answer.headers[name] for name in CORS} == CORS


async def test_a_preflight_is_answered_without_the_agent() -> None:
    options = EdgeOptions(origins=Origins((PAGE,)))
    asked = {"Origin": PAGE, "Access-Control-Request-Headers": "x-token"}

    answer = await ask(FakeHost(), method="OPTIONS", options=options, headers=asked)

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == "x-token"


async def test_without_other_origins_there_are_no_such_headers_and_options_is_for_the_agent() -> (
    None
):
    answer = await ask(FakeHost(), method="OPTIONS", headers={"Origin": PAGE})

    assert answer.text == "ChatAgent:room OPTIONS /"
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_hook_sees_whom_the_request_is_for_and_may_refuse_it() -> None:
    targets: list[Target] = []

    def guard(request: Request, target: Target) -> Response | None:
        targets.append(target)
        return None if request.headers.get("x-token") == "t" else Response("Who?", status=401)

    options = EdgeOptions(on_before_request=guard)
    path = f"{ROOM}/sub/researcher/r"
    refused = await ask(FakeHost(), path, options=options)
    served = await ask(FakeHost(), path, options=options, headers={"x-token": "t"})

    assert (refused.status_code, refused.text) == (401, "Who?")
    assert served.status_code == 200
    assert targets[0].cls is Researcher
    assert targets[0].class_name == "Researcher"
    assert targets[0].name == "r"
    assert targets[0].path.root.leaf.class_name == ChatAgent.__name__


async def test_an_async_hook_may_change_the_request() -> None:
    async def other_body() -> AsyncIterator[bytes]:
        yield b"changed"

    async def change(request: Request, target: Target) -> Request:
        return request.replace(body_stream=other_body)

    answer = await ask(
        FakeHost(), method="POST", content=b"x", options=EdgeOptions(on_before_request=change)
    )

    assert answer.text == "ChatAgent:room POST / changed"


@pytest.mark.behaviour("SA-023")
async def test_a_refusal_at_a_parent_is_given_back_and_the_agent_is_not_asked() -> None:
    async def refuse(path: AgentPath, request: Request) -> Response | Request:
        return Response("Not for you", status=403, headers={"X-Why": "because"})

    async def never(path: AgentPath, request: Request) -> Response:
        raise AssertionError("the agent was asked")

    answer = await ask(FakeHost(admitting=refuse, responding=never))

    assert (answer.status_code, answer.text) == (403, "Not for you")
    assert answer.headers["x-why"] == "because"


async def test_a_starlette_response_is_an_answer_too() -> None:
    options = EdgeOptions(
        on_before_request=lambda request, target: JSONResponse({"ok": True}, status_code=418),  # type: ignore[arg-type, return-value] # not part of the hook's type
        origins=Origins(("*",)),
    )
    answer = await ask(FakeHost(), options=options)

    assert (answer.status_code, answer.json()) == (418, {"ok": True})
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_an_answer_that_is_none_is_a_server_error() -> None:
    options = EdgeOptions(on_before_request=lambda request, target: "no")  # type: ignore[arg-type, return-value] # wrong on purpose
    answer = await ask(FakeHost(), options=options)

    assert answer.status_code == 500


@pytest.mark.behaviour("SA-029")
async def test_a_body_is_read_by_the_agent_while_it_is_still_being_sent() -> None:
    first_seen = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await first_seen.wait()
        yield b" second"

    async def read(path: AgentPath, request: Request) -> Response:
        parts = []
        async for part in request.stream():
            parts.append(part)
            first_seen.set()
        return Response(b"|".join(parts))

    answer = await ask(FakeHost(responding=read), method="POST", content=pieces())

    assert answer.content == b"first| second"


async def test_an_answer_may_be_streamed_and_echo_the_request() -> None:
    async def echo(path: AgentPath, request: Request) -> Response:
        return Response(request.stream(), headers={"Content-Type": "text/x"})

    answer = await ask(FakeHost(responding=echo), method="POST", content=b"there and back")

    assert answer.text == "there and back"
    assert answer.headers["content-type"] == "text/x"


async def test_a_streamed_answer_ends_when_its_client_leaves() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def stream(path: AgentPath, request: Request) -> Response:
        return Response(endless())

    async with (
        serving(Edge(FakeHost(responding=stream), EdgeOptions())) as address,
        httpx.AsyncClient() as client,
        client.stream("GET", f"http://{address}{ROOM}") as answer,
    ):
        assert await anext(answer.aiter_bytes()) == b"first"
        await answer.aclose()
        await closed.wait()


async def test_an_answer_to_head_has_no_body() -> None:
    answer = await ask(FakeHost(), method="HEAD")

    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given_up = asyncio.Event()

    async def read(path: AgentPath, request: Request) -> Response:
        try:
            return Response(await request.body())
        finally:
            given_up.set()

    async with serving(Edge(FakeHost(responding=read), EdgeOptions())) as address:
        host, _, port = address.partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"POST {ROOM} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100\r\n\r\n"
        writer.write(head.encode() + b"only the beginning")
        await writer.drain()
        writer.transport.abort()
        await given_up.wait()

    assert caplog.messages == []
