"""What a program hands to a client wrongly is refused before anything is sent or remembered."""

from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from ramet.client import AgentClient
from ramet.errors import InvalidArguments, NotJson
from ramet.protocol import frames
from ramet.protocol.messages import text_of, user_message
from ramet.testing.quiet import quiet
from tests.unit.client.tasks import start
from tests.unit.client.wire import ScriptedServer

HELLO = user_message("hello", id="u1")


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer(
        frames.chat_messages([HELLO], connect=True),
        frames.identity("x", "some-agent", state_follows=False),
    )


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[AgentClient]:
    async with server.connected() as client:
        yield client


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (None, "asked must be a text or a list"),
        (5, "asked must be a text or a list"),
        ({"a": 1}, "asked must be a text or a list"),
        (b"x", "asked must be a text or a list"),
        ([5], r"asked\[0\]\" must be an object"),
        ([{}], r"asked\[0\].id\" must be a string"),
        ([HELLO, {"role": "user"}], r"asked\[1\].id\" must be a string"),
        ([{"id": "x", "role": "user"}], r"asked\[0\].parts\" must be a list"),
        ([{**HELLO, "metadata": {"at": float("nan")}}], "asked cannot be sent"),
    ],
)
async def test_what_is_no_question_is_refused_and_not_in_the_messages(
    server: ScriptedServer, client: AgentClient, asked: object, told: str
) -> None:
    with pytest.raises(InvalidArguments, match=told):
        await client.chat(asked)  # type: ignore[arg-type] # that is the point

    assert server.socket.sent == []
    assert [*client.messages] == [HELLO]


@pytest.mark.parametrize("body", [5, "x", {"a": float("nan")}, {"a": object()}])
async def test_a_body_that_cannot_be_sent_is_refused(
    server: ScriptedServer, client: AgentClient, body: object
) -> None:
    with pytest.raises(InvalidArguments, match="body"):
        await client.chat("hi", body=body)  # type: ignore[arg-type] # that is the point

    assert server.socket.sent == []
    assert [*client.messages] == [HELLO]


async def test_a_question_that_the_server_cannot_read_is_taken_back(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat([user_message("?", id="u2"), {**HELLO, "role": "user"}])
    await server.socket.say(
        frames.chat_response(
            reply.request_id, body="Malformed", done=True, error=True, outcome="error"
        )
    )

    assert (await reply.result()).error == "Malformed"
    assert [*client.messages] == [HELLO]


async def test_a_question_whose_turn_fails_stays(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("why?")
    ids = [str(client.messages[-1]["id"])]
    await server.socket.say(
        frames.chat_response(
            reply.request_id, body="kaput", done=True, error=True, outcome="error", message_ids=ids
        )
    )

    assert text_of(client.messages[-1]) == "why?"


@pytest.mark.parametrize("seconds", [float("nan"), -1, "5", True])
async def test_a_timeout_that_is_none_is_refused(
    server: ScriptedServer, client: AgentClient, seconds: object
) -> None:
    with pytest.raises(InvalidArguments, match="timeout must be a number of seconds"):
        await client.call("add", timeout=seconds)  # type: ignore[arg-type] # that is the point

    assert server.socket.sent == []


async def test_a_timeout_may_be_whole_seconds_or_for_ever(
    server: ScriptedServer, client: AgentClient
) -> None:
    calls = [start(client.call("add", timeout=seconds)) for seconds in (5, float("inf"))]
    await quiet()
    assert len(server.socket.of_type("rpc")) == len(calls)
    for call in calls:
        await call.cancel()


@pytest.mark.parametrize("method", [None, 5, print])
async def test_a_method_that_is_no_text_is_refused(
    server: ScriptedServer, client: AgentClient, method: object
) -> None:
    with pytest.raises(InvalidArguments, match="The method must be a text"):
        await client.call(method)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidArguments, match="The method must be a text"):
        client.stream(method)  # type: ignore[arg-type] # that is the point

    assert server.socket.sent == []


@pytest.mark.parametrize("arg", [float("nan"), [float("inf")], object()])
async def test_an_argument_that_json_cannot_carry_is_refused(
    server: ScriptedServer, client: AgentClient, arg: object
) -> None:
    with pytest.raises(InvalidArguments, match="Argument 2 of 'add' cannot be sent"):
        await client.call("add", 1, arg)

    assert server.socket.sent == []


async def test_a_state_that_json_cannot_carry_is_refused_and_the_old_one_stays(
    server: ScriptedServer, client: AgentClient
) -> None:
    with pytest.raises(NotJson):
        await client.set_state({"at": float("nan")})

    assert (client.state, server.socket.sent) == (None, [])


class Async:
    async def __call__(self, value: object) -> None: ...


async def listen(extra: int, value: object) -> None: ...


@pytest.mark.parametrize(
    ("listener", "told"),
    [(partial(listen, 1), "is async"), (Async(), "is async"), (5, "must be a function")],
)
async def test_a_listener_that_nobody_would_wait_for_is_refused(
    client: AgentClient, listener: Callable[[object], object], told: str
) -> None:
    for add in (client.on_frame, client.on_state, client.on_state_error, client.on_run_event):
        with pytest.raises(InvalidArguments, match=told):
            add(listener)


async def test_a_listener_that_turns_out_to_be_async_is_in_the_log(
    server: ScriptedServer, client: AgentClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.on_frame(lambda frame: listen(1, frame))
    await server.socket.say({"type": "x"})

    assert "A listener of frames is async" in caplog.text
