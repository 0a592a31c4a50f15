"""A server that is killed in the middle of an answer and started again."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from ramet.client import AgentClient, AgentToolEvents, ClientOptions
from ramet.core.json import JsonObject
from ramet.errors import ConnectionLost
from ramet.protocol import AgentToolState
from tests.support import server as servers
from tests.support.server import Server

pytestmark = [pytest.mark.kill, pytest.mark.timeout(120)]

PATIENT = ClientOptions(first_delay=0.05, max_delay=0.2, max_retries=300)
WORDS = "alpha beta gamma delta epsilon zeta eta theta"


class Restarted:
    """A server that is killed and started again on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.server = self._start(servers.free_port())

    def again(self) -> None:
        servers.kill(self.server)
        self.server = self._start(self.server.port)

    def _start(self, port: int) -> Server:
        return servers.start("serve", "tests.wire_app:app", folder=self._folder, port=port)


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Restarted]:
    running = Restarted(tmp_path)
    yield running
    servers.stop(running.server)


def chat(restarted: Restarted, agent: str) -> AgentClient:
    url = f"http://{restarted.server.address}"
    return AgentClient(url, agent=agent, name="ada", options=PATIENT)


@pytest.mark.behaviour("D4", "D5")
@pytest.mark.parametrize("agent", ["ChatAgent", "ThinkAgent"])
async def test_an_answer_goes_on_in_the_next_process(restarted: Restarted, agent: str) -> None:
    async with chat(restarted, agent) as client:
        reply = await client.chat("say 60 20")
        asked_as = reply.request_id
        chunks: list[JsonObject] = []
        async for chunk in reply:
            chunks.append(chunk)
            if len(chunks) == 20:
                await asyncio.to_thread(restarted.again)
        outcome = await reply.result()
        stored = client.messages[-1]

    begun = max(at for at, chunk in enumerate(chunks) if chunk["type"] == "start")
    text = "".join(str(chunk["delta"]) for chunk in chunks[begun:] if chunk["type"] == "text-delta")
    assert outcome.status == "completed"
    assert outcome.request_id != asked_as
    assert outcome.message == stored
    assert outcome.text.replace("\n", "").endswith("w58 w59 w60")
    assert text == outcome.text.replace("\n", "")


@pytest.mark.behaviour("D4")
async def test_two_questions_that_wait_are_both_answered_by_the_next_process(
    restarted: Restarted,
) -> None:
    async with chat(restarted, "ThinkAgent") as client:
        replies = [await client.chat("say 20 20"), await client.chat("say 20 20")]
        await anext(replies[0])
        await asyncio.to_thread(restarted.again)
        outcomes = [await reply.result() for reply in replies]

    assert [outcome.status for outcome in outcomes] == ["completed"] * 2
    assert all(outcome.text.replace("\n", "").endswith("w20") for outcome in outcomes)


@pytest.mark.behaviour("AT-161")
async def test_runs_go_on_in_the_next_process(restarted: Restarted) -> None:
    async with chat(restarted, "ThinkAgent") as client:
        runs = AgentToolEvents(client)
        begun = asyncio.Event()

        def look(state: AgentToolState) -> None:
            if any(run.parts for run in state.runs_by_id.values()):
                begun.set()

        runs.on_change(look)
        reply = await client.chat("think-research bees 100")
        await begun.wait()
        await asyncio.to_thread(restarted.again)
        outcome = await reply.result()
        (run,) = runs.runs_by_id.values()

    assert outcome.text == "Report: bees summary"
    assert run.status == "completed"
    assert "".join(str(part["text"]) for part in run.parts if part["type"] == "text") == WORDS


async def test_a_call_fails_and_the_next_one_reaches_the_next_process(restarted: Restarted) -> None:
    url = f"http://{restarted.server.address}"
    async with AgentClient(url, agent="CounterAgent", name="c", options=PATIENT) as client:
        assert await client.call("increment") == 1
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(refused(client.call("slow", 60_000)))
            await client.call("echo", 1)
            await asyncio.to_thread(restarted.again)
        assert "got no answer and may have run" in calling.result()
        assert await client.call("increment") == 2
        assert client.state == {"count": 2}


async def refused(call: Awaitable[object]) -> str:
    """What is said of a call whose connection breaks."""
    with pytest.raises(ConnectionLost) as error:
        await call
    return str(error.value)
