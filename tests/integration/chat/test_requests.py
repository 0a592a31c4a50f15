"""Questions and answers, frame by frame (PROTOCOL 4.1 … 4.3, 4.8)."""

import pytest

from ramet.core.http import Request
from ramet.core.json import JsonObject, loads
from ramet.protocol import types
from ramet.testing.harness import Harness
from tests.integration.chat.support import (
    END,
    Fed,
    ask,
    assistant,
    chunks_of,
    endings,
    kinds,
    request,
    responses,
    said,
    text_of,
    transcripts,
    user,
)


@pytest.mark.behaviour("CW-002", "D1")
async def test_each_chunk_is_one_numbered_frame_to_every_client(harness: Harness) -> None:
    asking = await harness.connect(Fed, "a")
    watching = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(asking)
    agent.give("Hel", "lo", END)
    await harness.settle()
    live = [frame for frame in responses(asking) if not frame["done"]]
    assert [frame["seq"] for frame in live] == list(range(5))
    assert responses(asking) == responses(watching)
    assert text_of(asking) == "Hello"
    assert [chunk["type"] for chunk in chunks_of(asking)] == [
        "start",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
    ]


async def test_the_first_chunk_carries_the_id_under_which_the_answer_is_stored(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give({"type": "start", "messageId": "mine"}, "Hello", END)
    await harness.settle()
    start = chunks_of(client)[0]
    assert start["type"] == "start"
    assert str(start["messageId"]).startswith("asst_")
    assert agent.messages[-1]["id"] == start["messageId"]


@pytest.mark.behaviour("CW-002")
async def test_a_turn_ends_with_the_stored_answer_then_the_transcript_then_one_final_frame(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("Hello", END)
    await harness.settle()
    assert kinds(client)[-2:] == [types.CHAT_MESSAGES, types.CHAT_RESPONSE]
    assert endings(client) == [
        {
            "type": types.CHAT_RESPONSE,
            "id": "r1",
            "body": "",
            "done": True,
            "messageIds": ["u-r1"],
            "outcome": "completed",
        }
    ]
    answer_id = str(agent.messages[-1]["id"])
    assert transcripts(client)[-1] == [user("u-r1", "hi"), assistant(answer_id, said("Hello"))]
    rows = harness.rows(Fed, "a", "SELECT status, outcome FROM cf_chat_turns")
    assert rows == [{"status": "ended", "outcome": "completed"}]


async def test_the_question_goes_to_all_clients_but_the_one_that_asked(harness: Harness) -> None:
    asking = await harness.connect(Fed, "a")
    watching = await harness.connect(Fed, "a")
    await ask(asking)
    assert transcripts(asking) == []
    assert transcripts(watching) == [[user("u-r1", "hi")]]


async def test_what_the_application_sends_beside_the_messages_reaches_the_turn(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    tools: list[JsonObject] = [{"name": "getWeather"}]
    await client.send(request("r1", [user("u1", "hi")], model="fast", clientTools=tools))
    (turn,) = agent.turns
    assert turn.body == {"model": "fast"}
    assert turn.client_tools == tools
    assert list(turn.messages) == [user("u1", "hi")]
    assert turn.trigger == "ws-chat"


@pytest.mark.behaviour("AT-079", "D26")
async def test_an_exception_ends_the_turn_with_its_message_and_keeps_the_partial_answer(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial", RuntimeError("scripted failure"))
    await harness.settle()
    (ending,) = endings(client)
    assert (ending["body"], ending["error"], ending["outcome"]) == (
        "scripted failure",
        True,
        "error",
    )
    assert agent.messages[-1]["parts"] == [said("partial")]
    assert [error.text for error in agent.errors] == ["scripted failure"]
    assert [(result.status, result.error) for result in agent.results] == [
        ("error", "scripted failure")
    ]


@pytest.mark.behaviour("MB-008")
async def test_an_error_chunk_becomes_the_one_final_frame(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("partial", {"type": "error", "errorText": "out of tokens"}, "more")
    await harness.settle()
    assert [frame["body"] for frame in responses(client) if frame.get("error")] == ["out of tokens"]
    assert len(endings(client)) == 1
    assert "more" not in text_of(client)


@pytest.mark.behaviour("D1")
async def test_a_chunk_over_the_cap_fails_the_turn_before_anything_of_it_is_sent(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("small", "x" * (4 * 2**20 + 1))
    await harness.settle()
    (ending,) = endings(client)
    assert "at most 4194304 are allowed" in str(ending["body"])
    assert text_of(client) == "small"
    assert agent.messages[-1]["parts"] == [said("small")]


@pytest.mark.behaviour("CW-007")
async def test_a_turn_without_chunks_ends_well_and_stores_no_empty_message(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give(END)
    await harness.settle()
    (ending,) = endings(client)
    assert ending["outcome"] == "completed"
    assert agent.messages == [user("u-r1", "hi")]
    assert agent.results == []


@pytest.mark.behaviour("TQ-001")
async def test_turns_run_one_after_another_and_a_failing_one_does_not_block_the_next(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await client.send(request("r1", [user("u1", "one")]))
    await client.send(request("r2", [user("u1", "one"), user("u2", "two")]))
    assert [turn.request_id for turn in agent.turns] == ["r1"]
    agent.give("first", RuntimeError("no"))
    await harness.settle()
    agent.give("second", END)
    await harness.settle()
    assert [turn.request_id for turn in agent.turns] == ["r1", "r2"]
    assert [message["id"] for message in agent.turns[0].messages] == ["u1"]
    roles = [(message["role"], message["parts"]) for message in agent.messages]
    assert roles == [
        ("user", user("u1", "one")["parts"]),
        ("assistant", [said("first")]),
        ("user", user("u2", "two")["parts"]),
        ("assistant", [said("second")]),
    ]


async def test_a_request_id_that_was_used_is_offered_again_not_run_again(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    await ask(client)
    assert client.of_type(types.STREAM_RESUMING) == [{"type": types.STREAM_RESUMING, "id": "r1"}]
    agent.give("Hello", END)
    await harness.settle()
    await ask(client)
    assert len(client.of_type(types.STREAM_RESUMING)) == 2
    assert len(agent.turns) == 1


async def test_regenerating_replaces_the_old_answer(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("first", END)
    await harness.settle()
    await client.send(request("r2", [user("u-r1", "hi")], trigger="regenerate-message"))
    agent.give("second", END)
    await harness.settle()
    assert [message["parts"] for message in agent.messages] == [
        user("u-r1", "hi")["parts"],
        [said("second")],
    ]


async def test_a_submit_deletes_what_the_client_does_not_have_any_more(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("first", END)
    await harness.settle()
    await client.send(request("r2", [user("u9", "anew")]))
    assert [message["id"] for message in agent.messages] == ["u9"]


async def test_a_transcript_that_a_client_changed_is_stored_and_goes_to_the_others(
    harness: Harness,
) -> None:
    changing = await harness.connect(Fed, "a")
    watching = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    pushed = {"type": types.CHAT_MESSAGES, "messages": [user("u1", "edited")]}
    await changing.send(pushed)
    assert agent.messages == [user("u1", "edited")]
    assert transcripts(watching) == [[user("u1", "edited")]]
    assert transcripts(changing) == []


async def test_the_transcript_is_served_over_http(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    assert await _get_messages(harness) == []
    await ask(client)
    agent.give("Hello", END)
    await harness.settle()
    assert await _get_messages(harness) == agent.messages


@pytest.mark.behaviour("D25")
async def test_a_malformed_request_gets_an_error_frame_of_its_own(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    init: JsonObject = {"method": "POST", "body": "not json"}
    await client.send({"type": types.CHAT_REQUEST, "id": "r1", "init": init})
    (ending,) = endings(client)
    assert ending["error"] is True
    assert str(ending["body"]).endswith('"init.body" must be a string that holds a JSON object.')
    assert client.closed is None


@pytest.mark.behaviour("CW-020")
async def test_a_client_that_goes_does_not_stop_its_turn(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    await client.close()
    agent.give("Hello", END)
    await harness.settle()
    assert agent.messages[-1]["parts"] == [said("Hello")]


@pytest.mark.behaviour("D14", "TQ-023")
async def test_a_running_turn_keeps_the_agent_in_memory(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    with pytest.raises(Exception, match="a chat turn is running"):
        await harness.evict(Fed, "a")
    agent.give("Hello", END)
    await harness.settle()
    assert [result.status for result in agent.results] == ["completed"]
    await harness.evict(Fed, "a")


async def _get_messages(harness: Harness) -> object:
    response = await harness.request(Fed, "a", request=Request(path="/get-messages"))
    assert response.status == 200
    assert isinstance(response.content, str)
    return loads(response.content)


async def test_a_question_that_waits_is_not_lost_to_a_tab_that_does_not_know_it(
    harness: Harness,
) -> None:
    first = await harness.connect(Fed, "a")
    second = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await first.send(request("r1", [user("u1", "one")]))
    await second.send(request("r2", [user("u2", "two")]))
    agent.give("first", END, "second", END)
    await harness.settle()
    assert [list(turn.message_ids) for turn in agent.turns] == [["u1"], ["u2"]]
    texts = [message["parts"] for message in agent.messages if message["role"] == "assistant"]
    assert texts == [[said("first")], [said("second")]]
    assert [message["id"] for message in agent.messages if message["role"] == "user"] == [
        "u1",
        "u2",
    ]


async def test_a_turn_that_cannot_be_stored_still_ends_its_request(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.sql("DROP TABLE cf_ai_chat_agent_messages")
    agent.give("Hello", END)
    await harness.settle()
    assert [(end["outcome"], end["body"]) for end in endings(client)] == [
        ("error", "The turn ended unexpectedly")
    ]
    assert await agent.wait_until_stable()
