"""What a client gets for frames that nobody can use; the connection stays (D25)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from ramet.core.json import JsonObject, dumps
from tests.integration.web.agents import app
from tests.integration.web.support import call, next_frame, until_closed
from tests.unit.web.serving import serving

PAGE = "https://page.example"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ClientConnection]:
    app.data_dir = tmp_path
    async with (
        serving(app, max_frame_bytes=1_000_000) as address,
        connect(f"ws://{address}/agents/parent/p", max_size=None) as client,
    ):
        await next_frame(client, "cf_agent_mcp_servers")
        yield client


async def assert_alive(client: ClientConnection) -> None:
    assert (await call(client, "echo", "still here"))["result"] == "still here"


@pytest.mark.behaviour("D25")
async def test_a_frame_over_the_limit_gets_an_error_and_the_connection_stays(
    client: ClientConnection,
) -> None:
    await client.send("x" * 100_001)
    frame = await next_frame(client, "ramet_error")

    assert frame["error"] == "The frame has 100001 bytes; at most 100000 are allowed."
    await assert_alive(client)


@pytest.mark.behaviour("D25")
async def test_a_frame_over_the_limit_of_the_server_closes_with_1009(
    client: ClientConnection,
) -> None:
    await client.send("x" * 1_000_001)

    code, _ = await until_closed(client)

    assert code == 1009


@pytest.mark.behaviour("D25")
@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (
            {"type": "cf_agent_use_chat_request", "id": "q1", "init": {"method": "POST"}},
            "cf_agent_use_chat_response",
        ),
        ({"type": "cf_agent_chat_request_cancel"}, "ramet_error"),
    ],
)
async def test_a_malformed_frame_gets_its_own_kind_of_error_and_the_connection_stays(
    client: ClientConnection, frame: JsonObject, answer: str
) -> None:
    await client.send(dumps(frame))
    told = await next_frame(client, answer)

    assert told.get("error")
    await assert_alive(client)


@pytest.mark.parametrize(
    ("method", "args", "error"),
    [
        ("nowhere", [], "Method nowhere does not exist"),
        ("describe", ["x"], "Method describe is not callable"),
        ("on_start", [], "Method on_start is not callable"),
        ("make_child", [""], "An agent name must not be empty."),
    ],
)
async def test_a_call_that_cannot_be_made_gets_one_sentence(
    client: ClientConnection, method: str, args: list[object], error: str
) -> None:
    answer = await call(client, method, *args)

    assert answer["success"] is False
    assert answer["error"] == error


async def test_wrong_arguments_are_named(client: ClientConnection) -> None:
    answer = await call(client, "work", "many")

    assert answer["success"] is False
    assert "marks" in str(answer["error"])


async def test_a_page_of_another_origin_is_refused(tmp_path: Path) -> None:
    app.data_dir = tmp_path
    async with (
        serving(app) as address,
        connect(f"ws://{address}/agents/parent/p", additional_headers={"Origin": PAGE}) as client,
    ):
        assert await until_closed(client) == (4403, "Origin not allowed")


async def test_a_class_that_is_only_for_sub_agents_is_no_root(tmp_path: Path) -> None:
    app.data_dir = tmp_path
    async with serving(app) as address, connect(f"ws://{address}/agents/child/c") as client:
        assert await until_closed(client) == (4400, "Invalid request")
