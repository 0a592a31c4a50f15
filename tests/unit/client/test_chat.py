"""A chat as a client has it: questions, answers over lost connections, and what it must not do."""

from collections.abc import AsyncIterator, Sequence

import pytest

from ramet.client import AgentClient, ChatReply
from ramet.client.ports import Closing
from ramet.core.json import JsonObject, JsonValue, loads_object
from ramet.errors import CallTimedOut, ClientClosed, ConnectionLost, ReaderTooSlow, RemoteCallFailed
from ramet.protocol import chunks, frames
from ramet.protocol.messages import text_of, user_message
from ramet.protocol.ui_message import UIMessage
from ramet.testing.quiet import quiet
from tests.unit.client.tasks import Started, start
from tests.unit.client.wire import ScriptedServer, ScriptedSocket

IDENTITY = frames.identity("x", "some-agent", state_follows=False)
BODIES = [
    chunks.chunk_body(each)
    for each in (
        chunks.start("asst_1"),
        chunks.text_start("t"),
        chunks.text_delta("t", "one"),
        chunks.text_delta("t", " two"),
        chunks.text_delta("t", " three"),
        chunks.text_end("t"),
        chunks.finish("stop"),
    )
]
WHOLE = [loads_object(body) for body in BODIES]


def idle(*messages: UIMessage) -> list[str]:
    """How an idle chat greets."""
    return [frames.chat_messages(messages, connect=True), IDENTITY]


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer(*idle())


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[AgentClient]:
    async with server.connected() as client:
        yield client


def chunk(request_id: str, seq: int, *, replay: bool = False) -> str:
    return frames.chat_response(request_id, body=BODIES[seq], done=False, seq=seq, replay=replay)


async def stream(
    socket: ScriptedSocket, request_id: str, numbers: Sequence[int], *, replay: bool = False
) -> None:
    for number in numbers:
        await socket.say(chunk(request_id, number, replay=replay))


def done(request_id: str, **fields: object) -> str:
    given: dict[str, object] = {"body": "", "done": True, "outcome": "completed", **fields}
    return frames.chat_response(request_id, **given)  # type: ignore[arg-type] # fields by key


def asked(socket: ScriptedSocket, at: int = -1) -> JsonObject:
    """The body of a request that the client has sent."""
    init = socket.of_type("cf_agent_use_chat_request")[at]["init"]
    assert isinstance(init, dict)
    body = loads_object(str(init["body"]))
    assert body is not None
    return body


def acknowledged(socket: ScriptedSocket) -> list[JsonValue]:
    return [frame["id"] for frame in socket.of_type("cf_agent_stream_resume_ack")]


def probes(socket: ScriptedSocket) -> list[str]:
    return [str(f["probeId"]) for f in socket.of_type("cf_agent_stream_resume_request")]


def reading(reply: ChatReply) -> tuple[list[JsonObject], Started[None]]:
    seen: list[JsonObject] = []

    async def read() -> None:
        seen.extend([each async for each in reply])

    return seen, start(read())


async def reconnect(server: ScriptedServer, *greeting: str) -> ScriptedSocket:
    server.greeting = [*greeting]
    await server.socket.hang_up()
    await server.advance(10)
    return server.socket


async def test_a_question_is_sent_with_the_transcript_that_the_server_gave(
    server: ScriptedServer,
) -> None:
    before = user_message("before", id="u1")
    server.greeting = idle(before)
    async with server.connected() as client:
        await client.chat("and now?", body={"model": "fast", "messages": "not these"})

        body = asked(server.socket)
        assert body["trigger"] == "submit-message"
        assert body["model"] == "fast"
        messages = body["messages"]
        assert isinstance(messages, list)
        assert messages[0] == before
        assert [*client.messages] == messages
        assert text_of(client.messages[1]) == "and now?"


async def test_messages_are_added_as_they_are(server: ScriptedServer, client: AgentClient) -> None:
    new = [user_message("a", id="u1"), user_message("b", id="u2")]
    reply = await client.chat(new)
    await server.socket.say(done(reply.request_id))

    assert asked(server.socket)["messages"] == new
    assert (await reply.result()).message_ids == ("u1", "u2")


async def test_an_answer_gives_its_chunks_and_its_message(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    await stream(server.socket, reply.request_id, range(3))
    assert text_of(reply.message) == "one"
    assert not reply.done
    await stream(server.socket, reply.request_id, range(3, len(BODIES)))
    await server.socket.say(done(reply.request_id, message_ids=["u9"]))
    await reader.outcome()
    outcome = await reply.result()

    assert seen == WHOLE
    assert outcome.text == "one two three"
    assert (outcome.status, outcome.error, outcome.message_ids) == ("completed", None, ("u9",))
    assert outcome.message is not None
    assert outcome.message["id"] == "asst_1"
    assert reply.done


async def test_the_answer_is_in_the_messages_also_when_the_server_sends_no_transcript(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    await stream(server.socket, reply.request_id, range(len(BODIES)))
    await server.socket.say(done(reply.request_id))

    assert [text_of(message) for message in client.messages] == ["hi", "one two three"]


async def test_texts_are_the_text_alone(server: ScriptedServer, client: AgentClient) -> None:
    reply = await client.chat("hi")
    await stream(server.socket, reply.request_id, range(len(BODIES)))
    await server.socket.say(done(reply.request_id))

    assert [text async for text in reply.texts()] == ["one", " two", " three"]


@pytest.mark.parametrize("then_done", [True, False])
async def test_an_answer_that_failed_says_what_the_server_said(
    server: ScriptedServer, client: AgentClient, *, then_done: bool
) -> None:
    reply = await client.chat("hi")
    await stream(server.socket, reply.request_id, range(3))
    failed = frames.chat_response(reply.request_id, body="kaput", done=not then_done, error=True)
    await server.socket.say(failed)
    if then_done:
        await server.socket.say(done(reply.request_id))
    outcome = await reply.result()

    assert (outcome.status, outcome.error, outcome.text) == ("error", "kaput", "one")


async def test_an_answer_of_which_nothing_came_has_no_message(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    failed = frames.chat_response(reply.request_id, body="no key", done=True, error=True)
    await server.socket.say(failed)
    outcome = await reply.result()

    assert (outcome.status, outcome.error) == ("error", "no key")
    assert (outcome.message, outcome.text) == (None, "")


@pytest.mark.parametrize("status", ["aborted", "skipped", "completed"])
async def test_how_an_answer_ended_is_told(
    server: ScriptedServer, client: AgentClient, status: str
) -> None:
    reply = await client.chat("hi")
    await server.socket.say(done(reply.request_id, outcome=status))

    assert (await reply.result()).status == status


async def test_an_answer_can_be_cancelled(server: ScriptedServer, client: AgentClient) -> None:
    reply = await client.chat("hi")
    await reply.cancel()
    await client.cancel_chat("another's")

    assert server.socket.of_type("cf_agent_chat_request_cancel") == [
        {"type": "cf_agent_chat_request_cancel", "id": reply.request_id},
        {"type": "cf_agent_chat_request_cancel", "id": "another's"},
    ]


async def test_a_chat_is_cleared_here_and_there(
    server: ScriptedServer, client: AgentClient
) -> None:
    await client.chat("hi")
    await client.clear_chat()
    assert server.socket.of_type("cf_agent_chat_clear")
    assert client.messages == ()

    await server.socket.say(frames.chat_messages([user_message("new", id="u")]))
    await server.socket.say(frames.chat_clear())
    assert client.messages == ()


@pytest.mark.parametrize("by_another", [True, False])
async def test_an_answer_that_ends_after_a_clear_is_not_in_the_messages(
    server: ScriptedServer, client: AgentClient, *, by_another: bool
) -> None:
    reply = await client.chat("hi")
    await stream(server.socket, reply.request_id, range(3))
    if by_another:
        await server.socket.say(frames.chat_clear())
    else:
        await client.clear_chat()
    await server.socket.say(done(reply.request_id, outcome="aborted"))

    assert (await reply.result()).text == "one"
    assert client.messages == ()


async def test_an_agent_that_does_not_chat_says_so() -> None:
    server = ScriptedServer(IDENTITY)
    async with server.connected() as client:
        client._chat.transcript.known = True
        reply, resuming = await client.chat("hi"), start(client.resume())
        await quiet()
        await server.socket.say(frames.ramet_error("This agent takes no messages."))

        for waiting in (start(reply.result()), resuming):
            with pytest.raises(RemoteCallFailed, match="does not chat: This agent takes no mess"):
                await waiting.outcome()


async def test_an_error_over_another_frame_is_not_the_answers(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    await server.socket.say(frames.ramet_error("There is no such frame."))

    assert not reply.done


async def test_a_message_is_replaced_by_id_or_by_a_tool_call_that_both_have(
    server: ScriptedServer, client: AgentClient
) -> None:
    part: JsonObject = {"type": "tool-x", "toolCallId": "c", "state": "input-available"}
    ended: JsonObject = {**part, "state": "output-available"}
    first: JsonObject = {"id": "a", "role": "assistant", "parts": [part]}
    other = user_message("hi", id="u")
    await server.socket.say(frames.chat_messages([other, first]))
    await server.socket.say(frames.message_updated(user_message("changed", id="u")))
    await server.socket.say(frames.message_updated({**first, "id": "b", "parts": [ended]}))
    await server.socket.say(frames.message_updated(user_message("x", id="not there")))
    await server.socket.say({"type": "cf_agent_message_updated", "message": 7})

    assert [*client.messages] == [user_message("changed", id="u"), {**first, "parts": [ended]}]


async def test_answers_of_others_are_not_this_clients(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    await stream(server.socket, "another's", range(3))
    await server.socket.say(done("another's"))

    assert reply.message["parts"] == []
    assert not reply.done


async def test_chunks_that_are_not_read_in_time_are_lost_and_the_message_is_not(
    server: ScriptedServer,
) -> None:
    async with server.connected(max_buffered_bytes=100) as client:
        reply = await client.chat("hi")
        await stream(server.socket, reply.request_id, range(len(BODIES)))
        await server.socket.say(done(reply.request_id))

        with pytest.raises(ReaderTooSlow, match="The answer was not read in time"):
            await anext(reply)
        assert (await reply.result()).text == "one two three"


async def test_nothing_can_be_asked_on_a_client_that_was_closed(client: AgentClient) -> None:
    await client.close()
    with pytest.raises(ClientClosed, match="The client was closed"):
        await client.chat("hi")


@pytest.mark.behaviour("CW-005", "CW-012")
@pytest.mark.parametrize("seen_before", range(len(BODIES) + 1))
async def test_after_a_reconnect_no_chunk_comes_twice_and_none_is_missing(
    server: ScriptedServer, client: AgentClient, seen_before: int
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    await stream(server.socket, reply.request_id, range(seen_before))
    offer = frames.stream_resuming(reply.request_id)
    socket = await reconnect(server, offer, IDENTITY)
    probed = frames.stream_resuming(reply.request_id, probe_id=probes(socket)[0])
    await socket.say(probed)
    await stream(socket, reply.request_id, range(5), replay=True)
    caught_up = frames.chat_response(
        reply.request_id, body="", done=False, replay=True, replay_complete=True
    )
    await socket.say(caught_up)
    await stream(socket, reply.request_id, range(5, len(BODIES)))
    await socket.say(done(reply.request_id))
    await reader.outcome()

    assert acknowledged(socket) == [reply.request_id]
    assert seen == WHOLE
    assert (await reply.result()).text == "one two three"
    assert len(socket.of_type("cf_agent_use_chat_request")) == 0


async def test_the_connection_may_break_again_in_the_replay(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    await stream(server.socket, reply.request_id, range(4))
    for cut in (2, 6):
        socket = await reconnect(server, frames.stream_resuming(reply.request_id), IDENTITY)
        assert acknowledged(socket) == [reply.request_id]
        await stream(socket, reply.request_id, range(cut), replay=True)
    socket = await reconnect(server, frames.stream_resuming(reply.request_id), IDENTITY)
    await stream(socket, reply.request_id, range(len(BODIES)), replay=True)
    await socket.say(done(reply.request_id, replay=True))
    await reader.outcome()

    assert seen == WHOLE


async def test_a_server_that_numbers_no_chunks_is_followed_too(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    for body in BODIES[:3]:
        await server.socket.say(frames.chat_response(reply.request_id, body=body, done=False))
    for cut in (2, len(BODIES)):
        socket = await reconnect(server, frames.stream_resuming(reply.request_id), IDENTITY)
        for body in BODIES[:cut]:
            await socket.say(
                frames.chat_response(reply.request_id, body=body, done=False, replay=True)
            )
    await server.socket.say(done(reply.request_id))
    await reader.outcome()

    assert seen == WHOLE


async def test_a_question_that_was_not_sent_is_not_in_the_messages(
    server: ScriptedServer, client: AgentClient
) -> None:
    server.socket.closed = Closing(code=1006)
    with pytest.raises(ConnectionLost):
        await client.chat("hi")

    assert client.messages == ()


@pytest.mark.behaviour("CW-009")
async def test_an_answer_that_ended_meanwhile_is_fetched(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    await stream(server.socket, reply.request_id, range(3))
    socket = await reconnect(server, *idle())
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[0]))
    assert acknowledged(socket) == [reply.request_id]
    await stream(socket, reply.request_id, range(len(BODIES)), replay=True)
    await socket.say(done(reply.request_id, replay=True))
    await reader.outcome()

    assert seen == WHOLE
    assert (await reply.result()).status == "completed"


async def test_a_question_that_never_arrived_fails_and_is_not_sent_again(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    socket = await reconnect(server, *idle())
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[0]))
    await socket.say(frames.chat_response(reply.request_id, body="", done=True, replay=True))

    with pytest.raises(ConnectionLost, match="before the server had the question"):
        await reply.result()
    assert socket.of_type("cf_agent_use_chat_request") == []


@pytest.mark.behaviour("CW-017")
async def test_a_question_that_waits_its_turn_is_waited_for(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    socket = await reconnect(server, frames.stream_pending(reply.request_id), IDENTITY)
    await socket.say(frames.stream_pending(reply.request_id, probe_id=probes(socket)[0]))
    assert acknowledged(socket) == []
    await socket.say(frames.stream_resuming(reply.request_id))
    await stream(socket, reply.request_id, range(len(BODIES)), replay=True)
    await socket.say(done(reply.request_id))

    assert (await reply.result()).text == "one two three"


async def test_an_answer_that_ended_while_another_clients_is_written_is_fetched_after_it(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    socket = await reconnect(server, frames.stream_resuming("another's"), IDENTITY)
    assert acknowledged(socket) == [reply.request_id]
    await socket.say(frames.chat_messages([user_message("another's", id="u")]))
    assert len(probes(socket)) == 2
    await socket.say(frames.stream_resuming(reply.request_id, probe_id=probes(socket)[1]))
    assert not reply.done


async def test_two_answers_are_taken_up_one_after_the_other(
    server: ScriptedServer, client: AgentClient
) -> None:
    first, second = await client.chat("one"), await client.chat("two")
    socket = await reconnect(server, frames.stream_resuming(first.request_id), IDENTITY)
    await stream(socket, first.request_id, range(len(BODIES)), replay=True)
    await socket.say(done(first.request_id))
    assert len(probes(socket)) == 2
    await socket.say(frames.stream_resuming(second.request_id, probe_id=probes(socket)[1]))
    await stream(socket, second.request_id, range(len(BODIES)), replay=True)
    await socket.say(done(second.request_id))

    assert acknowledged(socket) == [first.request_id, second.request_id]
    assert [(await each.result()).text for each in (first, second)] == ["one two three"] * 2


@pytest.mark.behaviour("D4")
async def test_a_lost_turn_is_followed_to_the_one_that_goes_on_for_it(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    old = reply.request_id
    seen, reader = reading(reply)
    await stream(server.socket, old, range(3))
    socket = await reconnect(server, frames.stream_pending(old), IDENTITY)
    await socket.say(done(old, outcome="recovering"))
    await socket.say(frames.stream_resuming("next", goes_on_for=[old]))
    assert reply.request_id == "next"
    await stream(socket, "next", range(len(BODIES)), replay=True)
    await socket.say(done("next"))
    await reader.outcome()

    assert seen == WHOLE
    assert (await reply.result()).request_id == "next"


@pytest.mark.behaviour("D4")
async def test_the_turn_that_goes_on_may_be_offered_before_the_lost_one_is_known_to_be_lost(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    old = reply.request_id
    seen, reader = reading(reply)
    await stream(server.socket, old, range(4))
    offer = frames.stream_resuming("next", goes_on_for=["before", old])
    socket = await reconnect(server, offer, IDENTITY)
    assert acknowledged(socket) == ["next"]
    await stream(socket, "next", range(len(BODIES)), replay=True)
    await socket.say(done("next"))
    await reader.outcome()

    assert seen == WHOLE


async def test_a_lost_turn_that_is_answered_anew_has_the_new_message_alone(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    seen, reader = reading(reply)
    await stream(server.socket, reply.request_id, range(4))
    await server.socket.say(done(reply.request_id, outcome="recovering"))
    await server.socket.say(frames.stream_resuming("next", goes_on_for=[reply.request_id]))
    anew = [
        chunks.start("asst_2"),
        chunks.text_start("t"),
        chunks.text_delta("t", "other"),
        chunks.text_end("t"),
    ]
    for seq, each in enumerate(anew):
        body = chunks.chunk_body(each)
        await server.socket.say(
            frames.chat_response("next", body=body, done=False, seq=seq, replay=True)
        )
    await server.socket.say(done("next"))
    await reader.outcome()
    outcome = await reply.result()

    assert seen == [*WHOLE[:4], *anew]
    assert outcome.message is not None
    assert (outcome.text, outcome.message["id"]) == ("other", "asst_2")


async def test_a_lost_turn_that_does_not_go_on_ends(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    await server.socket.say(done(reply.request_id, outcome="recovering"))
    await server.socket.say(done(reply.request_id, outcome="aborted"))

    assert (await reply.result()).status == "aborted"


async def test_a_lost_turn_for_which_nothing_comes_any_more_ends_as_it_is_stored(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    await server.socket.say(done(reply.request_id, outcome="recovering"))
    await server.socket.say(frames.stream_resume_none())

    assert (await reply.result()).status == "aborted"


async def test_the_turn_of_another_question_does_not_go_on_for_a_lost_one(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    mine = client.messages[-1]
    await server.socket.say(done(reply.request_id, outcome="recovering"))
    await server.socket.say(frames.chat_messages([mine, user_message("another's", id="u2")]))
    await server.socket.say(frames.stream_resuming("another's"))

    assert acknowledged(server.socket) == []
    assert reply.request_id != "another's"


async def test_a_lost_turn_that_went_on_and_ended_meanwhile_is_taken_from_the_transcript(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    old, mine = reply.request_id, client.messages[-1]
    said = {"type": "text", "text": "all of it"}
    answered: UIMessage = {"id": "a", "role": "assistant", "parts": [said]}
    socket = await reconnect(server, *idle(mine, answered))
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[0]))
    await socket.say(done(old, outcome="recovering", replay=True))
    outcome = await reply.result()

    assert (outcome.status, outcome.text) == ("completed", "all of it")


@pytest.mark.parametrize("anew", [False, True])
async def test_what_was_missed_of_a_lost_turn_that_went_on_and_ended_is_made_from_the_transcript(
    server: ScriptedServer,
    client: AgentClient,
    anew: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    reply = await client.chat("hi")
    old, mine = reply.request_id, client.messages[-1]
    seen, reader = reading(reply)
    await stream(server.socket, old, range(4))
    text: JsonObject = {"type": "text", "text": "one two three", "state": "done"}
    stored: UIMessage = {
        "id": "asst_2" if anew else "asst_1",
        "role": "assistant",
        "parts": [text, {"type": "step-start"}],
    }
    socket = await reconnect(server, *idle(mine, stored))
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[0]))
    await socket.say(done(old, outcome="recovering", replay=True))
    await reader.outcome()
    outcome = await reply.result()

    assert seen[:4] == WHOLE[:4]
    if anew:
        assert [chunk["type"] for chunk in seen[4:]] == [
            "start",
            "text-start",
            "text-delta",
            "text-end",
            "start-step",
        ]
    else:
        assert seen[4:] == [WHOLE[4], WHOLE[5], {"type": "start-step"}]
    assert outcome.message == reply.message == stored


@pytest.mark.behaviour("D4")
async def test_of_two_lost_turns_each_is_followed_to_the_one_that_goes_on_for_it(
    server: ScriptedServer, client: AgentClient
) -> None:
    first, second = await client.chat("one"), await client.chat("two")
    lost, next_lost = first.request_id, second.request_id
    await stream(server.socket, lost, range(3))
    offer = frames.stream_resuming("next", goes_on_for=[lost])
    socket = await reconnect(server, offer, IDENTITY)
    assert acknowledged(socket) == ["next", next_lost]
    await socket.say(done(next_lost, outcome="recovering", replay=True))
    await stream(socket, "next", range(len(BODIES)), replay=True)
    await socket.say(done("next"))
    await socket.say(chunk("after", 0))
    assert (first.request_id, second.request_id) == ("next", next_lost)
    await socket.say(frames.stream_resuming("after", goes_on_for=[next_lost]))
    await stream(socket, "after", range(len(BODIES)), replay=True)
    await socket.say(done("after"))

    assert [(await each.result()).request_id for each in (first, second)] == ["next", "after"]
    assert (await second.result()).text == "one two three"
    assert len(probes(socket)) > 1


async def test_what_went_on_for_a_lost_turn_unseen_is_known_by_its_questions_when_it_ends(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    mine = client.messages[-1]
    await server.socket.say(done(reply.request_id, outcome="recovering"))
    await server.socket.say(frames.chat_messages([mine, user_message("another's", id="u2")]))
    await server.socket.say(done("next", message_ids=[str(mine["id"])]))
    assert acknowledged(server.socket) == ["next"]
    await stream(server.socket, "next", range(len(BODIES)), replay=True)
    await server.socket.say(done("next", replay=True))

    assert (await reply.result()).text == "one two three"


async def test_a_lost_turn_that_went_on_and_ended_before_another_clients_ends_with_that(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    old, mine = reply.request_id, client.messages[-1]
    said = {"type": "text", "text": "all of it"}
    answered: UIMessage = {"id": "a", "role": "assistant", "parts": [said]}
    others = user_message("another's", id="u2")
    socket = await reconnect(server, frames.stream_resuming("another's"), IDENTITY)
    await socket.say(done(old, outcome="recovering", replay=True))
    await socket.say(frames.chat_messages([mine, answered, others]))
    await socket.say(done("another's", message_ids=["u2"]))
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[-1]))

    assert (await reply.result()).text == "all of it"


async def test_a_question_that_never_arrived_fails_once_the_server_has_nothing_else_to_send(
    server: ScriptedServer, client: AgentClient
) -> None:
    reply = await client.chat("hi")
    socket = await reconnect(server, frames.stream_resuming("another's"), IDENTITY)
    await socket.say(done("another's", message_ids=["u2"]))
    await socket.say(frames.stream_resume_none(reason="idle", probe_id=probes(socket)[-1]))
    assert acknowledged(socket) == [reply.request_id] * 2
    await socket.say(frames.chat_response(reply.request_id, body="", done=True, replay=True))

    with pytest.raises(ConnectionLost, match="before the server had the question"):
        await reply.result()


async def test_an_answer_fails_when_the_connection_is_gone_for_good(
    server: ScriptedServer,
) -> None:
    async with server.connected(max_retries=0) as client:
        reply = await client.chat("hi")
        _, reader = reading(reply)
        await stream(server.socket, reply.request_id, range(2))
        await server.socket.hang_up()

        with pytest.raises(ConnectionLost, match="did not come back"):
            await reader.outcome()
        with pytest.raises(ConnectionLost, match="did not come back"):
            await reply.result()


@pytest.mark.behaviour("CW-014", "CW-015")
async def test_an_answer_that_somebody_else_has_asked_for_is_taken_up(
    server: ScriptedServer, client: AgentClient
) -> None:
    resuming = start(client.resume())
    await quiet()
    await server.socket.say(frames.stream_resuming("another's", probe_id=probes(server.socket)[0]))
    reply = await resuming.outcome()
    assert reply is not None
    seen, reader = reading(reply)
    await stream(server.socket, "another's", range(len(BODIES)), replay=True)
    await server.socket.say(done("another's", message_ids=["u1"]))
    await reader.outcome()

    assert seen == WHOLE
    assert (await reply.result()).message_ids == ("u1",)


async def test_where_there_is_no_answer_nothing_is_taken_up(
    server: ScriptedServer, client: AgentClient
) -> None:
    resuming = start(client.resume())
    await quiet()
    probe_id = probes(server.socket)[0]
    await server.socket.say(frames.stream_resume_none(reason="idle", probe_id=probe_id))

    assert await resuming.outcome() is None


async def test_an_answer_that_is_about_to_begin_is_taken_up(
    server: ScriptedServer, client: AgentClient
) -> None:
    resuming = start(client.resume())
    await quiet()
    await server.socket.say(frames.stream_pending("q", probe_id=probes(server.socket)[0]))
    reply = await resuming.outcome()
    assert reply is not None
    await stream(server.socket, "q", range(len(BODIES)))
    await server.socket.say(done("q"))

    assert (await reply.result()).text == "one two three"


async def test_a_server_that_does_not_say_whether_it_answers_is_given_up(
    server: ScriptedServer, client: AgentClient
) -> None:
    resuming = start(client.resume())
    await server.advance(30)
    with pytest.raises(CallTimedOut, match="did not say within 30 s"):
        await resuming.outcome()


async def test_a_stream_that_was_taken_for_another_question_is_taken_up_from_the_first_chunk(
    server: ScriptedServer,
) -> None:
    server.greeting = [
        frames.chat_messages([user_message("another's", id="u")]),
        frames.stream_resuming("another's"),
        IDENTITY,
    ]
    async with server.connected() as client:
        await client.chat("mine")
        await stream(server.socket, "another's", range(3), replay=True)
        resuming = start(client.resume())
        await quiet()
        await server.socket.say(frames.stream_resuming("another's"))
        reply = await resuming.outcome()
        assert reply is not None
        await stream(server.socket, "another's", range(len(BODIES)), replay=True)
        await server.socket.say(done("another's"))

        assert acknowledged(server.socket) == ["another's", "another's"]
        assert (await reply.result()).text == "one two three"


async def test_a_stream_that_nobody_wants_is_not_asked_for(server: ScriptedServer) -> None:
    server.greeting = [frames.stream_resuming("another's"), IDENTITY]
    async with server.connected() as client:
        assert client.connected
        assert server.socket.sent == []
