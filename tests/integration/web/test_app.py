"""`App`: as an ASGI application of its own, mounted in another one, and without a web server."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from websockets.asyncio.client import connect

import ramet
from ramet.errors import (
    AgentNotRegistered,
    ConfigurationError,
    DataDirectoryInUse,
    DataDirectoryNotWritable,
    DuplicateAgentName,
    InvalidAgentName,
    NotRunning,
)
from tests.integration.web.agents import Child, Guarded, Parent, Unregistered, path_of
from tests.integration.web.support import call, encoded, next_frame, until_closed
from tests.unit.web.serving import serving


def application(data_dir: Path, *, prefix: str = "agents") -> ramet.App:
    return ramet.App(agents=[Parent, Guarded], sub_agents=[Child], data_dir=data_dir, prefix=prefix)


@asynccontextmanager
async def browsing(app: ASGIApp) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        yield f"ws://{address}", client


async def test_an_app_serves_http_and_web_sockets(tmp_path: Path) -> None:
    async with browsing(application(tmp_path)) as (address, client):
        answer = await client.get("/agents/parent/p/x")
        streamed = await client.get("/agents/parent/p/stream")
        async with connect(f"{address}/agents/parent/p") as socket:
            identity = await next_frame(socket, "cf_agent_identity")

    assert answer.text == path_of((Parent, "p")) + " /x"
    assert streamed.text == "piece 0;piece 1;piece 2;"
    assert (identity["name"], identity["agent"]) == ("p", "parent")


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize("name", ["a/b", "50%", "two words", "🐝", "x" * 1024, "sub", "..."])
async def test_every_name_that_a_url_can_carry_works(tmp_path: Path, name: str) -> None:
    async with browsing(application(tmp_path)) as (address, client):
        path = f"/agents/parent/{encoded(name)}"
        answer = await client.get(path)
        async with connect(address + path) as socket:
            identity = await next_frame(socket, "cf_agent_identity")

    assert answer.text == path_of((Parent, name)) + " /"
    assert identity["name"] == name


@pytest.mark.behaviour("D19", "SA-021")
async def test_only_children_that_a_parent_has_made_are_there(tmp_path: Path) -> None:
    app = application(tmp_path)
    async with browsing(app) as (_, client):
        before = await client.get("/agents/parent/p/sub/child/c%2F1/x")
        await app.get_agent(Parent, "p").make_child("c/1")
        after = await client.get("/agents/parent/p/sub/child/c%2F1/x")

    assert before.status_code == 404
    assert (after.status_code, after.text) == (200, path_of((Parent, "p"), (Child, "c/1")) + " /x")


@pytest.mark.behaviour("D19", "D20", "SA-023")
async def test_a_parent_that_decides_admits_or_refuses(tmp_path: Path) -> None:
    async with browsing(application(tmp_path)) as (address, client):
        refused = await client.get("/agents/guarded/g/sub/child/forbidden")
        admitted = await client.get("/agents/guarded/g/sub/child/other")
        async with connect(f"{address}/agents/guarded/g/sub/child/forbidden") as socket:
            closed = await until_closed(socket)

    assert (refused.status_code, refused.text) == (403, "No entry")
    assert admitted.status_code == 200
    assert closed == (4403, "Sub-agent connection rejected (403)")


async def test_an_agent_without_a_handler_does_not_implement_http(tmp_path: Path) -> None:
    async with browsing(application(tmp_path)) as (_, client):
        answer = await client.get("/agents/guarded/g")

    assert (answer.status_code, answer.text) == (404, "Not implemented")


@pytest.mark.behaviour("D28")
async def test_an_app_can_be_mounted_in_fastapi(tmp_path: Path) -> None:
    app = application(tmp_path)
    outer = FastAPI(lifespan=app.lifespan)

    @outer.get("/health")
    async def health() -> dict[str, bool]:
        return {"ok": True}

    outer.mount("/ai", app)
    async with browsing(outer) as (address, client):
        assert (await client.get("/health")).json() == {"ok": True}
        answer = await client.get("/ai/agents/parent/a%2Fb/x")
        async with connect(f"{address}/ai/agents/parent/a%2Fb") as socket:
            identity = await next_frame(socket, "cf_agent_identity")

    assert answer.text == path_of((Parent, "a/b")) + " /x"
    assert identity["name"] == "a/b"


async def test_an_app_mounted_at_the_root_leaves_other_routes_alone(tmp_path: Path) -> None:
    app = application(tmp_path, prefix="api/agents")
    outer = FastAPI(lifespan=app.lifespan)
    outer.mount("/", app)
    async with browsing(outer) as (_, client):
        assert (await client.get("/api/agents/parent/p")).status_code == 200
        assert (await client.get("/elsewhere")).status_code == 404


async def test_mounted_without_its_lifespan_the_first_request_fails_and_says_so(
    tmp_path: Path,
) -> None:
    outer = FastAPI()
    outer.mount("/ai", application(tmp_path))
    async with browsing(outer) as (address, client):
        answer = await client.get("/ai/agents/parent/p")
        async with connect(f"{address}/ai/agents/parent/p") as socket:
            code, reason = await until_closed(socket)

    assert answer.status_code == 503
    assert "pass lifespan=app.lifespan where it is mounted" in answer.text
    assert code == 1011
    assert reason.startswith("The app is not running")


async def test_the_program_itself_calls_agents_through_typed_stubs(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        parent = app.get_agent(Parent, "p")
        assert await parent.describe("hello") == path_of((Parent, "p")) + " hello"
        assert await parent.make_child("c") == "c"


async def test_an_app_is_started_again_after_it_was_stopped(tmp_path: Path) -> None:
    app = application(tmp_path)
    for _ in range(2):
        async with app:
            assert await app.get_agent(Parent, "p").echo("once more") == "once more"
    with pytest.raises(NotRunning, match="The app is not running"):
        app.get_agent(Parent, "p")


async def test_an_app_cannot_run_twice_at_once(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        with pytest.raises(ConfigurationError, match="running already"):
            await app.__aenter__()


async def test_a_class_that_was_not_given_to_the_app_is_refused(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        with pytest.raises(AgentNotRegistered, match=r"'Unregistered' is not registered: give it"):
            app.get_agent(Unregistered, "u")


async def test_a_stub_is_not_given_for_a_name_that_no_agent_can_have(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        with pytest.raises(InvalidAgentName, match="must not be empty"):
            app.get_agent(Parent, "")


def test_two_classes_of_one_name_are_refused_when_the_app_is_made() -> None:
    other = type("Parent", (ramet.Agent,), {})

    with pytest.raises(DuplicateAgentName, match=r"share the URL form 'parent': give one of them"):
        ramet.App(agents=[Parent, other])


@pytest.mark.parametrize("argument", ["agents", "sub_agents"])
@pytest.mark.parametrize(("given", "shown"), [(Parent, "Parent"), ("Parent", "…"), (None, "…")])
def test_a_class_where_a_list_of_them_belongs_is_refused(
    argument: str, given: Any, shown: str
) -> None:
    sentence = re.escape(f": write {argument}=[{shown}]")
    with pytest.raises(ConfigurationError, match=f"^{argument} is a list of classes.*{sentence}$"):
        ramet.App(**{"agents": [], argument: given})


async def test_one_data_directory_serves_one_app_at_a_time(tmp_path: Path) -> None:
    async with application(tmp_path):
        with pytest.raises(DataDirectoryInUse, match="is in use by another process; stop it or"):
            await application(tmp_path).__aenter__()


async def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    with pytest.raises(DataDirectoryNotWritable, match=r"data directory .* cannot be written"):
        await application(tmp_path / "file").__aenter__()


async def test_the_data_directory_comes_from_the_environment_unless_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMET_DATA", str(tmp_path / "there"))
    assert ramet.App(agents=[Parent]).data_dir == tmp_path / "there"
    assert ramet.App(agents=[Parent], data_dir="here").data_dir == Path("here")
    monkeypatch.delenv("RAMET_DATA")
    assert ramet.App(agents=[Parent]).data_dir == Path(".ramet")


async def test_plain_uvicorn_serves_an_app_too(tmp_path: Path) -> None:
    config = uvicorn.Config(application(tmp_path), port=0, lifespan="on", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([listener]))
            async with connect(f"ws://{address}/agents/parent/p") as client:
                answer = await call(client, "echo", "x" * 10_000)
                server.should_exit = True
                await until_closed(client)

    assert answer["result"] == "x" * 10_000
