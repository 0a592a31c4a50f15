"""How a client connects, loses its connection and comes back."""

import logging
import math

import pytest

from ramet.client.options import ClientOptions
from ramet.client.policy import next_attempt
from ramet.client.ports import Rejected, Unreachable
from ramet.errors import (
    CallTimedOut,
    ClientClosed,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    ReaderTooSlow,
    RemoteCallFailed,
)
from ramet.protocol import frames
from ramet.testing.quiet import quiet
from tests.unit.client.tasks import start
from tests.unit.client.wire import ScriptedServer

IDENTITY = frames.identity("x", "some-agent", state_follows=False)
PROMISED = frames.identity("x", "some-agent", state_follows=True)


async def test_connect_waits_for_who_was_reached() -> None:
    server = ScriptedServer(frames.mcp_servers())
    client = server.client()
    connecting = start(client.connect())
    await quiet()
    assert not connecting.done

    await server.socket.say(IDENTITY)
    await connecting.outcome()

    assert client.identity is not None
    assert (client.identity.name, client.identity.agent) == ("x", "some-agent")
    await client.close()


async def test_connect_waits_for_a_state_that_was_promised() -> None:
    server = ScriptedServer(PROMISED)
    client = server.client()
    connecting = start(client.connect())
    await quiet()
    assert not connecting.done

    await server.socket.say(frames.state({"count": 3}))
    await connecting.outcome()

    assert client.state == {"count": 3}
    await client.close()


async def test_headers_and_the_connection_id_are_the_same_on_each_socket() -> None:
    server = ScriptedServer()
    async with server.connected():
        await server.socket.hang_up()
        await server.advance(1)

    assert len(server.attempts) == 2
    assert len(set(server.attempts)) == 1


async def test_a_server_that_does_not_introduce_itself_is_given_up() -> None:
    server = ScriptedServer(frames.mcp_servers())
    connecting = start(server.client(connect_timeout=4).connect())
    await server.advance(4)

    with pytest.raises(ConnectionLost, match="did not say within 4 s who it is"):
        await connecting.outcome()


async def test_a_client_of_a_silent_agent_need_not_wait() -> None:
    server = ScriptedServer(frames.mcp_servers())
    async with server.connected(wait_for_identity=False) as client:
        assert client.connected
        assert client.identity is None


async def test_the_first_connection_is_tried_once() -> None:
    server = ScriptedServer()
    server.fails_with = Unreachable("Connection refused")

    with pytest.raises(ConnectionLost, match=r"^Cannot connect to SomeAgent:x at http://there: Co"):
        await server.client().connect()
    assert len(server.attempts) == 1


async def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    server = ScriptedServer()
    server.stalls = True
    connecting = start(server.client(connect_timeout=4).connect())
    await server.advance(4)

    with pytest.raises(ConnectionLost, match="no answer within 4 s"):
        await connecting.outcome()


async def test_what_is_no_server_of_agents_is_one_sentence() -> None:
    server = ScriptedServer()
    server.fails_with = Rejected("it answered with HTTP 404")

    with pytest.raises(ConnectionRefused, match=r"^There is no agent for SomeAgent:x at .* 404$"):
        await server.client().connect()


@pytest.mark.behaviour("D20")
@pytest.mark.parametrize(
    ("code", "reason"),
    [(4400, "Invalid request"), (4403, "Origin not allowed"), (4404, ""), (1008, "no")],
)
async def test_a_refusal_is_final_and_says_why(code: int, reason: str) -> None:
    server = ScriptedServer(frames.mcp_servers())
    connecting = start(server.client().connect())
    await quiet()
    await server.socket.hang_up(code, reason)

    with pytest.raises(ConnectionRefused, match=rf"refused .*{reason}.*\({code}\)") as refused:
        await connecting.outcome()
    assert (refused.value.code, refused.value.reason) == (code, reason)
    await server.advance(1000)
    assert len(server.attempts) == 1


@pytest.mark.parametrize("code", [1000, 1006, 1011])
async def test_a_connection_that_is_closed_before_the_client_was_let_in_is_not_made_again(
    code: int,
) -> None:
    server = ScriptedServer(frames.mcp_servers())
    connecting = start(server.client().connect())
    await quiet()
    await server.socket.hang_up(code, "The app is not running")

    with pytest.raises(ConnectionLost, match=rf"was lost: The app is not running \({code}\)"):
        await connecting.outcome()
    await server.advance(1000)
    assert len(server.attempts) == 1


async def test_a_refusal_later_ends_the_client_and_what_waits() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("slow"))
        await quiet()
        await server.socket.hang_up(4403, "Sub-agent connection rejected (403)")

        with pytest.raises(ClientError, match=r"rejected \(403\)"):
            await calling.outcome()
        with pytest.raises(ConnectionRefused, match=r"rejected \(403\)"):
            await client.call("again")
        await server.advance(1000)
    assert len(server.attempts) == 1


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, 1012, 1013])
@pytest.mark.behaviour("D21")
async def test_any_other_close_is_followed_by_another_connection(code: int) -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        connected = [client.connected]
        await server.socket.hang_up(code)
        connected.append(client.connected)
        await server.advance(1)
        connected.append(client.connected)

        assert connected == [True, False, True]
        assert len(server.attempts) == 2


async def test_a_frame_that_is_too_large_for_this_client_is_not_asked_for_again() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await server.socket.hang_up(1009, ours=True)
        with pytest.raises(ConnectionLost, match=r"raise ClientOptions\.max_frame_bytes"):
            await client.call("any")


async def test_each_attempt_waits_longer_and_a_good_connection_counts_anew() -> None:
    options = ClientOptions(first_delay=1, max_delay=5, max_retries=6)
    delays = [next_attempt(failures, options=options, luck=0) for failures in range(7)]

    assert [each.delay if each else None for each in delays] == [1, 1.5, 2.25, 3.375, 5, 5, None]


def test_the_delay_is_spread_and_never_longer_than_said() -> None:
    options = ClientOptions(first_delay=1, max_delay=5, max_retries=math.inf)

    for luck in (0, 0.3, 1):
        attempt = next_attempt(10_000, options=options, luck=luck)
        assert attempt is not None
        assert 2.5 <= attempt.delay <= 5


async def test_a_server_that_stays_away_ends_the_client_after_max_retries() -> None:
    server = ScriptedServer()
    async with server.connected(max_retries=3) as client:
        await server.advance(10)
        calling = start(client.call("waits", timeout=math.inf))
        server.fails_with = Unreachable("Connection refused")
        await server.socket.hang_up()
        with pytest.raises(ConnectionLost, match="got no answer and may have run"):
            await calling.outcome()
        waiting = start(client.call("not sent yet", timeout=math.inf))
        await server.advance(1000)

        with pytest.raises(ConnectionLost, match=r"did not come back in 3 attempts: .*refused"):
            await waiting.outcome()
        with pytest.raises(ConnectionLost):
            await client.set_state({})
    assert len(server.attempts) == 4


async def test_connections_that_break_at_once_count_as_failed_attempts() -> None:
    server = ScriptedServer()
    async with server.connected(max_retries=3, min_uptime=5) as client:
        await server.advance(5)
        for _ in range(4):
            await server.socket.hang_up(1013)
            await server.advance(4)
        with pytest.raises(ConnectionLost, match="did not come back in 3 attempts"):
            await client.call("any")
    assert len(server.attempts) == 4


async def test_a_connection_that_held_is_tried_as_often_as_the_first_time() -> None:
    server = ScriptedServer()
    async with server.connected(max_retries=2, min_uptime=5) as client:
        for _ in range(5):
            await server.advance(5)
            await server.socket.hang_up()
            await server.advance(1)
        assert client.connected


async def test_what_stands_in_for_a_server_that_is_away_is_tried_again() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        server.fails_with = Rejected("it answered with HTTP 404")
        await server.socket.hang_up()
        await server.advance(2)
        server.fails_with = None
        await server.advance(10)
        assert client.connected


async def test_a_client_that_gave_up_may_be_connected_again() -> None:
    server = ScriptedServer()
    async with server.connected(max_retries=0) as client:
        await server.socket.hang_up()
        await client.connect()
        assert client.connected


async def test_connecting_twice_is_harmless() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await client.connect()
    assert len(server.attempts) == 1


async def test_a_client_that_is_not_connected_says_so() -> None:
    with pytest.raises(ClientClosed, match=r"await connect\(\)"):
        await ScriptedServer().client().call("any")


async def test_closing_fails_what_waits_and_is_harmless_twice() -> None:
    server = ScriptedServer()
    client = server.client()
    await client.connect()
    calling = start(client.call("slow"))
    reading = start(client.stream("slow").result())
    await quiet()
    await client.close()
    await client.close()

    for waiting in (calling, reading):
        with pytest.raises(ClientError, match="The client was closed"):
            await waiting.outcome()
    with pytest.raises(ClientClosed, match="The client was closed"):
        await client.call("any")
    assert server.socket.closed is not None


async def test_a_call_is_answered_by_its_own_id() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        first, second = start(client.call("one", 1)), start(client.call("two", "a", None))
        await quiet()
        one, two = server.socket.sent
        await server.socket.say(frames.rpc_result("nobody's", 0, done=True))
        await server.socket.say(frames.rpc_result(str(two["id"]), [2], done=True))
        await server.socket.say(frames.rpc_result(str(one["id"]), 1, done=True))

        assert (await first.outcome(), await second.outcome()) == (1, [2])
        assert (one["method"], one["args"]) == ("one", [1])
        assert two["args"] == ["a", None]


async def test_an_answer_without_done_is_the_answer() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("one"))
        await quiet()
        call_id = server.socket.sent[0]["id"]
        await server.socket.say({"type": "rpc", "id": call_id, "success": True, "result": 5})

        assert await calling.outcome() == 5


async def test_an_error_of_the_agent_is_the_callers() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("one"))
        await quiet()
        await server.socket.say(frames.rpc_error(str(server.socket.sent[0]["id"]), "kaput"))

        with pytest.raises(RemoteCallFailed, match=r"^kaput$"):
            await calling.outcome()


async def test_a_call_without_an_answer_times_out() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("slow", timeout=2))
        await server.advance(2)
        with pytest.raises(CallTimedOut, match="'slow' gave no answer within 2 s; it may still"):
            await calling.outcome()
        await server.socket.say(frames.rpc_result(str(server.socket.sent[0]["id"]), 1, done=True))


async def test_a_call_that_waits_for_ever_does() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("slow", timeout=math.inf))
        await server.advance(100_000)
        assert not calling.done
        await server.socket.say(frames.rpc_result(str(server.socket.sent[0]["id"]), 1, done=True))
        assert await calling.outcome() == 1


async def test_a_call_is_never_sent_twice() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("pay"))
        await quiet()
        await server.socket.hang_up()
        with pytest.raises(ConnectionLost, match="'pay' got no answer and may have run"):
            await calling.outcome()
        await server.advance(5)

    assert [len(socket.of_type("rpc")) for socket in server.sockets] == [1, 0]


async def test_a_call_made_in_between_is_sent_once_on_the_next_connection() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await server.socket.hang_up()
        calling = start(client.call("later"))
        await server.advance(1)
        await server.socket.say(frames.rpc_result(str(server.socket.sent[0]["id"]), 1, done=True))

        assert await calling.outcome() == 1
        assert [len(socket.of_type("rpc")) for socket in server.sockets] == [0, 1]


async def test_a_call_that_could_not_be_sent_in_time_says_that_it_was_not() -> None:
    server = ScriptedServer()
    async with server.connected(max_retries=math.inf) as client:
        server.fails_with = Unreachable("down")
        await server.socket.hang_up()
        calling = start(client.call("later", timeout=3))
        setting = start(client.set_state(1))
        await server.advance(40)

        with pytest.raises(CallTimedOut, match="'later' was not sent: there was no connection"):
            await calling.outcome()
        with pytest.raises(CallTimedOut, match="Nothing was sent"):
            await setting.outcome()


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        calling = start(client.call("slow"))
        await quiet()
        await calling.cancel()
        assert client._calls._pending == {}


async def test_a_stream_gives_its_items_and_its_last_value() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        call = client.stream("count", 2)
        assert server.socket.sent == []
        reading = start(collect(call))
        await quiet()
        call_id = str(server.socket.sent[0]["id"])
        await server.socket.say(frames.rpc_result(call_id, 1, done=False))
        await server.socket.say(frames.rpc_result(call_id, 2, done=False))
        await server.socket.say(frames.rpc_result(call_id, "end", done=True))

        assert await reading.outcome() == [1, 2]
        assert await call.result() == "end"
        assert len(server.socket.sent) == 1


async def test_a_stream_that_fails_gives_what_came_and_then_the_error() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        call = client.stream("count")
        seen: list[object] = []
        reading = start(collect(call, seen))
        await quiet()
        call_id = str(server.socket.sent[0]["id"])
        await server.socket.say(frames.rpc_result(call_id, 1, done=False))
        await server.socket.say(frames.rpc_error(call_id, "kaput"))

        for waiting in (reading, start(call.result())):
            with pytest.raises(RemoteCallFailed, match="kaput"):
                await waiting.outcome()
        assert seen == [1]


async def test_a_stream_ends_with_its_connection() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        reading = start(collect(client.stream("count")))
        await quiet()
        await server.socket.hang_up()
        with pytest.raises(ConnectionLost, match="'count' got no answer and may have run"):
            await reading.outcome()


async def test_a_stream_that_is_not_read_in_time_says_so_and_others_go_on() -> None:
    server = ScriptedServer()
    async with server.connected(max_buffered_bytes=1_000) as client:
        slow = client.stream("flood")
        first = start(anext(slow))
        await quiet()
        call_id = str(server.socket.sent[0]["id"])
        for _ in range(20):
            await server.socket.say(frames.rpc_result(call_id, "x" * 100, done=False))
        await first.outcome()
        with pytest.raises(ReaderTooSlow, match="more than 1000 bytes waited"):
            await collect(slow)
        other = start(client.call("other"))
        await quiet()
        await server.socket.say(frames.rpc_result(str(server.socket.sent[1]["id"]), 7, done=True))
        assert await other.outcome() == 7


async def test_the_result_of_a_stream_that_nobody_reads_keeps_nothing() -> None:
    server = ScriptedServer()
    async with server.connected(max_buffered_bytes=1_000) as client:
        waiting = start(client.stream("flood").result())
        await quiet()
        call_id = str(server.socket.sent[0]["id"])
        for _ in range(20):
            await server.socket.say(frames.rpc_result(call_id, "x" * 100, done=False))
        await server.socket.say(frames.rpc_result(call_id, "end", done=True))
        assert await waiting.outcome() == "end"


async def test_a_stream_that_is_closed_takes_no_more() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        call = client.stream("count")
        first = start(anext(call))
        await quiet()
        call_id = str(server.socket.sent[0]["id"])
        await server.socket.say(frames.rpc_result(call_id, 1, done=False))
        assert await first.outcome() == 1
        call.close()
        await server.socket.say(frames.rpc_result(call_id, 2, done=False))
        assert await collect(call) == []
        with pytest.raises(ClientClosed, match="closed before its end"):
            await call.result()


async def test_a_stream_whose_sending_was_cancelled_does_not_hang() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await server.socket.hang_up()
        call = client.stream("count")
        first = start(anext(call))
        await quiet()
        await first.cancel()
        with pytest.raises(ClientClosed, match="'count' was cancelled"):
            await call.result()


async def test_the_state_is_known_at_once_here_and_from_everywhere() -> None:
    server = ScriptedServer(PROMISED, frames.state({"n": 0}))
    async with server.connected() as client:
        seen: list[object] = []
        stop = client.on_state(seen.append)
        await client.set_state({"n": 1})
        assert client.state == {"n": 1}
        await server.socket.say(frames.state({"n": 2}))
        stop()
        await server.socket.say(frames.state({"n": 3}))

        assert seen == [{"n": 1}, {"n": 2}]
        assert client.state == {"n": 3}
        assert server.socket.of_type("cf_agent_state") == [
            {"type": "cf_agent_state", "state": {"n": 1}}
        ]


async def test_a_state_that_is_refused_is_told_and_taken_back_as_the_server_says() -> None:
    server = ScriptedServer(PROMISED, frames.state(0))
    async with server.connected() as client:
        errors: list[str] = []
        client.on_state_error(errors.append)
        await client.set_state(-1)
        await server.socket.say(frames.state_error("State update rejected"), frames.state(0))

        assert errors == ["State update rejected"]
        assert client.state == 0


async def test_the_state_is_new_after_a_reconnect() -> None:
    server = ScriptedServer(PROMISED, frames.state(1))
    async with server.connected() as client:
        server.greeting = [PROMISED, frames.state(2)]
        await server.socket.hang_up()
        await server.advance(1)
        assert client.state == 2


async def test_every_frame_is_seen_in_order_after_it_took_effect() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        seen: list[object] = []
        stop = client.on_frame(lambda frame: seen.append((frame["type"], client.state)))
        await server.socket.say(frames.state(1), {"type": "mine"}, frames.state(2))
        stop()
        await server.socket.say({"type": "late"})

        assert seen == [("cf_agent_state", 1), ("mine", 1), ("cf_agent_state", 2)]


async def test_a_listener_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        seen: list[object] = []

        def fault(frame: object) -> None:
            raise ZeroDivisionError

        client.on_frame(fault)
        client.on_frame(seen.append)
        await server.socket.say({"type": "mine"})

        assert seen == [{"type": "mine"}]
        assert "A listener of frames failed" in caplog.text


@pytest.mark.parametrize("frame", ["not json", "[1]", "", b"\x00\x01", '{"a":'])
async def test_a_frame_that_is_no_json_object_is_one_sentence_in_the_log(
    frame: str | bytes, caplog: pytest.LogCaptureFixture
) -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await server.socket.say(frame)
        assert caplog.messages == [f"Ignored a frame that is not a JSON object: {frame!r}"]
        assert client.connected


async def test_a_frame_of_an_unknown_type_is_for_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    caplog.set_level(logging.DEBUG, "ramet.client")
    async with server.connected():
        await server.socket.say({"type": "their own"}, {"no": "type"}, {"type": 7})
        assert caplog.messages[0] == ("Nobody takes frames of the type 'their own': see on_frame")


async def test_what_the_server_could_not_use_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    async with server.connected():
        await server.socket.say(frames.ramet_error("There is no such frame."))
        assert caplog.messages == ["The server could not use a frame: There is no such frame."]


async def test_any_frame_can_be_sent() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await client.send({"type": "mine", "n": 1})
        await client.send("plain")
        assert server.socket.sent == [{"type": "mine", "n": 1}, {"text": "plain"}]


async def collect(items: object, into: list[object] | None = None) -> list[object]:
    seen = [] if into is None else into
    async for item in items:  # type: ignore[attr-defined] # any async iterator
        seen.append(item)
    return seen
