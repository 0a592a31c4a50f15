"""State and calls over real WebSockets."""

import asyncio

import pytest

from ramet.client import AgentClient, ClientOptions
from ramet.core.json import JsonObject
from ramet.errors import CallTimedOut, ConnectionLost, RemoteCallFailed
from tests.integration.client.proxy import proxied

QUICK = ClientOptions(first_delay=0.02, max_delay=0.1)


def counter(address: str, name: str = "c", **query: str) -> AgentClient:
    return AgentClient(
        f"http://{address}", agent="CounterAgent", name=name, query=query, options=QUICK
    )


async def test_a_client_knows_whom_it_reached_and_the_state(address: str) -> None:
    async with counter(address, "two words/🐝") as client:
        assert client.identity is not None
        assert (client.identity.name, client.identity.agent) == ("two words/🐝", "counter-agent")
        assert client.state == {"count": 0}


async def test_methods_are_called_and_change_the_state_before_they_answer(address: str) -> None:
    async with counter(address) as client:
        assert await client.call("increment") == 1
        assert client.state == {"count": 1}
        assert await client.call("increment", 5) == 6
        value: JsonObject = {"text": "naïve 🐝 \u2028", "list": [1, 2.5, None, True, []]}
        assert await client.call("echo", value) == value


async def test_a_slow_call_does_not_hold_up_another(address: str) -> None:
    async with counter(address) as client:
        order: list[object] = []

        async def call(method: str, argument: object) -> None:
            order.append(await client.call(method, argument))

        await asyncio.gather(call("slow", 300), call("echo", "quick"))
        assert order == ["quick", "slow"]


async def test_many_calls_at_once_get_their_own_answers(address: str) -> None:
    async with counter(address) as client:
        answers = await asyncio.gather(*(client.call("echo", number) for number in range(200)))
        assert answers == list(range(200))


@pytest.mark.parametrize(
    ("method", "args", "error"),
    [
        ("fail", ["kaput 🐝"], "^kaput 🐝$"),
        ("secret", [], "Method secret is not callable"),
        ("nope", [], "Method nope does not exist"),
        ("increment", ["many"], "n"),
    ],
)
async def test_a_call_that_goes_wrong_says_what_the_server_says(
    address: str, method: str, args: list[object], error: str
) -> None:
    async with counter(address) as client:
        with pytest.raises(RemoteCallFailed, match=error):
            await client.call(method, *args)
        assert await client.call("echo", "still here") == "still here"


async def test_a_stream_gives_its_numbers_and_ends(address: str) -> None:
    async with counter(address) as client:
        stream = client.stream("count_to", 5)
        assert [number async for number in stream] == [1, 2, 3, 4, 5]
        assert await stream.result() == "done"
        assert await client.stream("countTo", 2).result() == "done"


async def test_a_call_times_out(address: str) -> None:
    async with counter(address) as client:
        with pytest.raises(CallTimedOut, match=r"'slow' gave no answer within 0\.05 s"):
            await client.call("slow", 500, timeout=0.05)


async def test_a_state_that_one_client_sets_reaches_the_others(address: str) -> None:
    async with counter(address) as one, counter(address) as other:
        seen: asyncio.Queue[object] = asyncio.Queue()
        other.on_state(seen.put_nowait)
        await one.set_state({"count": 41})
        assert await seen.get() == {"count": 41}
        assert await other.call("increment") == 42


@pytest.mark.parametrize(
    ("query", "count", "error"),
    [({}, -1, "State update rejected"), ({"mode": "readonly"}, 9, "Connection is readonly")],
)
async def test_a_state_that_is_refused_comes_back_as_it_is(
    address: str, query: dict[str, str], count: int, error: str
) -> None:
    async with counter(address, **query) as client:
        errors: asyncio.Queue[str] = asyncio.Queue()
        client.on_state_error(errors.put_nowait)
        await client.set_state({"count": count})
        assert await errors.get() == error
        await client.call("echo", 1)
        assert client.state == {"count": 0}


async def test_a_silent_connection_gets_replies(address: str) -> None:
    options = ClientOptions(wait_for_identity=False)
    async with AgentClient(
        f"ws://{address}", agent="CounterAgent", query={"mode": "silent"}, options=options
    ) as client:
        assert await client.call("increment") == 1
        assert client.identity is None


async def test_the_client_comes_back_and_a_call_in_between_is_not_repeated(address: str) -> None:
    async with proxied(address) as proxy, counter(proxy.address) as client:
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(lost(client))
            while await counted(address) == 0:
                continue
            proxy.cut()
        assert "got no answer and may have run" in calling.result()
        assert await client.call("increment") == 2
        assert client.state == {"count": 2}
        assert proxy.connections == 2


async def lost(client: AgentClient) -> str:
    """Count, then wait for an answer that does not come; what is said of it."""
    await client.call("increment")
    with pytest.raises(ConnectionLost) as error:
        await client.call("slow", 1_000)
    return str(error.value)


async def counted(address: str) -> int:
    async with counter(address) as client:
        count = client.state
        assert isinstance(count, dict)
        assert isinstance(count["count"], int)
        return count["count"]
