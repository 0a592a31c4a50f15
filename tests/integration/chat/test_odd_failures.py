"""Failures that are hard to tell or to store: what was shown of an answer must not vanish."""

import pytest

from ramet.core.ids import Ids
from ramet.core.json import JsonValue, dumps
from ramet.core.public_errors import public_text
from ramet.protocol.messages import text_of as words_of
from ramet.storage import Database
from ramet.testing import Harness, TestClient
from tests.integration.chat.support import (
    END,
    Fed,
    ask,
    endings,
    request,
    text_of,
    transcripts,
    user,
)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Wordless(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value] # code of users does such things


ODD = [
    ValueError("caf\udce9.txt is not there"),
    Mute(),
    Wordless(),
    BaseException("b"),
    GeneratorExit(),
    BaseExceptionGroup("g", [BaseException("x")]),
]


async def stored_texts(harness: Harness) -> list[str]:
    agent = await harness.agent(Fed, "a")
    return [words_of(message) for message in agent.messages]


def nested(depth: int) -> list[JsonValue]:
    value: list[JsonValue] = []
    for _ in range(depth):
        value = [value]
    return value


def database_of(agent: Fed) -> Database:
    return agent._ramet_chat.ports.context.database


def fill_disk(agent: Fed) -> None:
    """Let the file grow no more, as on a full disk."""
    row = database_of(agent).one("PRAGMA page_count")
    assert row is not None
    database_of(agent).one(f"PRAGMA max_page_count = {row[0]}")


def free_disk(agent: Fed) -> None:
    database_of(agent).one("PRAGMA max_page_count = 1000000")


async def stream_until_full(harness: Harness, client: TestClient) -> Fed:
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("shown text", *["x" * 100] * 200)
    await harness.settle()
    fill_disk(agent)
    agent.give(*["x" * 1000] * 20)
    await harness.settle()
    return agent


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
def test_what_an_exception_says_can_always_be_told(error: BaseException) -> None:
    assert public_text(error, Ids.seeded(1)).encode()


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
async def test_a_partial_answer_is_kept_whatever_ends_the_turn(
    harness: Harness, error: BaseException
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("shown text", error)
    await harness.settle()
    assert [(end["outcome"], end["error"]) for end in endings(client)] == [("error", True)]
    assert endings(client)[0]["body"]
    assert await stored_texts(harness) == ["hi", "shown text"]


async def test_half_an_emoji_in_an_answer_is_replaced(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("cut \ud83d", {"type": "data-x", "data": {"\ud83d": "\ud83d"}}, END)
    await harness.settle()
    assert endings(client)[0]["outcome"] == "completed"
    assert await stored_texts(harness) == ["hi", "cut \N{REPLACEMENT CHARACTER}"]


async def test_half_an_emoji_in_an_answer_is_replaced_for_who_has_asked_too(
    harness: Harness,
) -> None:
    agent = await harness.agent(Fed, "a")
    agent.give("cut \ud83d", {"type": "data-x", "data": {"\ud83d": "\ud83d"}}, END)
    result = await harness.stub(Fed, "a").save_messages("hi")
    assert result.status == "completed"
    assert result.message == agent.messages[-1]


async def test_an_answer_too_deep_to_store_is_kept_by_its_texts(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await ask(client)
    agent.give("shown text", {"type": "data-x", "data": nested(251)}, END)
    await harness.settle()
    assert endings(client)[0]["outcome"] == "error"
    assert await stored_texts(harness) == ["hi", "shown text"]


async def test_a_full_disk_ends_the_turn_and_takes_nothing_from_the_screen(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    await stream_until_full(harness, client)
    assert endings(client)[0]["outcome"] == "error"
    assert text_of(client).startswith("shown text")
    assert transcripts(client) == []


async def test_the_answer_is_stored_before_the_next_question_once_there_is_space(
    harness: Harness,
) -> None:
    client = await harness.connect(Fed, "a")
    agent = await stream_until_full(harness, client)
    shown = text_of(client)
    free_disk(agent)
    other = await harness.connect(Fed, "a")
    assert text_of(client) == shown
    assert await stored_texts(harness) == ["hi", shown]
    stored = await harness.agent(Fed, "a")
    await other.send(request("r2", [*stored.messages, user("u2", "again")]))
    agent.give(END)
    await harness.settle()
    assert (await stored_texts(harness))[:3] == ["hi", shown, "again"]


async def test_the_answer_is_stored_when_the_agent_is_opened_with_space(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    await stream_until_full(harness, client)
    shown = text_of(client)
    await harness.crash()
    await harness.restart()
    assert await stored_texts(harness) == ["hi", shown]


async def test_a_question_too_deep_to_store_is_answered_with_its_own_end(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    await client.send(request("r1", [{**user("u1", "hi"), "metadata": nested(240)}]))
    assert [end["outcome"] for end in endings(client)] == ["error"]
    assert "deep" in str(endings(client)[0]["body"])
    assert await stored_texts(harness) == []


async def test_a_question_with_half_an_emoji_is_answered(harness: Harness) -> None:
    client = await harness.connect(Fed, "a")
    agent = await harness.agent(Fed, "a")
    await client.send(dumps(request("r1", [user("u1", "cut CUT")])).replace("CUT", r"\\ud83d"))
    agent.give("yes", END)
    await harness.settle()
    assert endings(client)[0]["outcome"] == "completed"
    assert await stored_texts(harness) == ["cut \N{REPLACEMENT CHARACTER}", "yes"]
